//! The whole life of a connection, as the report has it.

use crate::observe::connection_phases::Phase;
use crate::tcp::connection::Connection;
use thalweg_model::{ConnectionReset, Life, LifePhases, Resent, Way};

/// Where the time of the connection went, and what was sent again.
pub(crate) fn life(connection: &Connection) -> Life {
    let (phases, [client, server]) = (&connection.phases, &connection.sides);
    let [syn, syn_ack] = &connection.opening.syn;
    let mut life = Life {
        phases: LifePhases {
            connecting_s: phases.seconds(Phase::Connecting),
            accept_queue_s: phases.seconds(Phase::AcceptQueue),
            request_s: phases.seconds(Phase::Request),
            waiting_server_s: phases.seconds(Phase::Server),
            waiting_client_s: phases.seconds(Phase::Client),
            transfer_s: phases.seconds(Phase::Transfer),
            close_s: phases.seconds(Phase::Close),
        },
        resent: Resent {
            syn: syn.count.saturating_sub(1),
            syn_ack: syn_ack.count.saturating_sub(1),
            // What was sent before the server had the connection is counted by its phases alone.
            data_up: client.sender.losses.total.max(phases.requests_resent()),
            data_down: server.sender.losses.total,
            fin_up: phases.fins_resent(0),
            fin_down: phases.fins_resent(1),
        },
        reset: phases.reset.map(|reset| ConnectionReset {
            direction: if reset.side == 0 { Way::Up } else { Way::Down },
            packet: reset.number,
            at_s: reset.at as f64 / 1e9,
            idle_s: reset.idle as f64 / 1e9,
            ttl: reset.ttl,
            usual_ttl: reset.usual_ttl,
            followed_by_data: reset.followed_by_data,
        }),
        failure: None,
    };
    life.failure = life.find_failure();
    life
}
