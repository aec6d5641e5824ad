//! The whole life of a connection, as the report has it.

use crate::observe::connection_phases::Phase;
use crate::tcp::connection::Connection;
use thalweg_model::{ConnectionReset, Failure, Life, LifePhases, Resent, Side, Silence, TooSoon, Way};

/// Where the time of the connection went, what was sent again, and how it failed.
pub(crate) fn life(connection: &Connection) -> Life {
    let (phases, [client, server]) = (&connection.observers.phases, &connection.sides);
    let [syn, syn_ack] = &connection.opening.syn;
    let looked_up = connection.lookup.as_ref().map_or(0, |lookup| lookup.ended.saturating_sub(lookup.began));
    let spent = LifePhases {
        lookup_s: looked_up as f64 / 1e9,
        connecting_s: phases.seconds(Phase::Connecting),
        accept_queue_s: phases.seconds(Phase::AcceptQueue),
        request_s: phases.seconds(Phase::Request),
        waiting_server_s: phases.seconds(Phase::Server),
        waiting_client_s: phases.seconds(Phase::Client),
        transfer_s: phases.seconds(Phase::Transfer),
        tls_s: phases.seconds(Phase::Tls),
        close_s: phases.seconds(Phase::Close),
    };
    let mut life = Life {
        phases: spent,
        shares: spent.shares(),
        verdict_share: 0.0,
        resent: Resent {
            syn: syn.count.saturating_sub(1),
            syn_ack: syn_ack.count.saturating_sub(1),
            // What was sent before the server had the connection is counted by its phases alone.
            data_up: client.sender.losses.total.max(phases.requests_resent()),
            data_down: server.sender.losses.total,
            fin_up: phases.fins_resent(0),
            fin_down: phases.fins_resent(1),
        },
        reset: phases.end.reset.map(|reset| ConnectionReset {
            direction: if reset.side == 0 { Way::Up } else { Way::Down },
            packet: reset.number,
            at_s: reset.at as f64 / 1e9,
            idle_s: reset.idle as f64 / 1e9,
            ttl: reset.ttl,
            usual_ttl: reset.usual_ttl,
            ip_ids: reset.ip_ids,
            followed_by_data: reset.followed_by_data,
            too_soon: reset.too_soon.map(|(after, round_trip)| TooSoon {
                after_s: after as f64 / 1e9,
                round_trip_s: round_trip as f64 / 1e9,
            }),
        }),
        silence: phases.end.silent().map(|silent| Silence {
            side: if silent.side == 0 { Side::Client } else { Side::Server },
            since_s: silent.since as f64 / 1e9,
            asked_s: silent.asked_at as f64 / 1e9,
            unanswered: silent.unanswered,
            packet: silent.number,
        }),
        failure: None,
    };
    life.failure = failure(connection, &life);
    life
}

fn failure(connection: &Connection, life: &Life) -> Option<Failure> {
    let phases = &connection.observers.phases;
    let [client, server] = &connection.sides;
    if phases.is_opening() {
        let [syn, syn_ack] = &connection.opening.syn;
        // In a capture of one direction the client goes on.
        let only_syns = client.packets == u64::from(syn.count) + connection.tap_duplicates;
        return match (phases.end.reset, syn_ack.seen) {
            (Some(reset), false) if reset.side == 1 && syn.seen => Some(Failure::Refused),
            (None, false) if syn.count > 1 && server.packets == 0 && only_syns => Some(Failure::NoAnswer),
            (None, true) if syn_ack.count > 2 && client.packets > 0 && only_syns => Some(Failure::NoAnswer),
            _ => None,
        };
    }
    if life.reset.is_some_and(|reset| reset.is_foreign()) {
        Some(Failure::ForeignReset)
    } else if life.silence.is_some() {
        Some(Failure::VanishedPeer)
    } else if phases.end.reset.is_some_and(|reset| reset.interrupts) {
        Some(Failure::Reset)
    } else {
        None
    }
}
