//! Options for requests, responses and messages: timers, acknowledgements and handshakes.

use super::{Connections, Work, option};
use crate::facts::{Facts, route, socket, sysctl};
use crate::human_time;
use thalweg_model::{Code, Remedy, Side};

/// Least timeouts, smallest first.
const RTO_MIN: [&str; 4] = ["5ms", "10ms", "20ms", "50ms"];

/// Least timeouts of the sender, and of both hosts where the other one sends requests: its timer repairs those.
pub(super) fn least_timeout(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    if !work.losses {
        return Vec::new();
    }
    let of = |sides: &[Side], value: &str| {
        let reason = format!("Let the retransmission timer fire {value} after a round trip instead of 200 ms.");
        let changes = sides.iter().filter_map(|side| facts.set(*side, route("rto_min"), value)).collect();
        option(Code::RetransmissionTimeout, reason, changes, "The loss itself.")
    };
    let asks = work.connections != Connections::Once || work.object.is_some();
    let both = [Side::Client, Side::Server];
    let sets: &[&[Side]] = if asks { &[&[facts.sender()], &both] } else { &[&[facts.sender()]] };
    sets.iter().flat_map(|sides| RTO_MIN.into_iter().filter_map(|value| of(sides, value))).collect()
}

pub(super) fn acknowledge_at_once(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    if work.object.is_none() && work.connections != Connections::Kept {
        return Vec::new();
    }
    let of = |sides: &[Side]| {
        let changes = sides.iter().filter_map(|side| facts.set(*side, route("quickack"), "1")).collect();
        let reason = "Acknowledge every segment at once.".to_owned();
        option(Code::DelayedAck, reason, changes, "Connections over other routes.")
    };
    [of(&[facts.receiver()]), of(&[Side::Client, Side::Server])].into_iter().flatten().collect()
}

pub(super) fn no_delay(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    if work.object.is_none() && work.connections != Connections::Kept {
        return Vec::new();
    }
    let on = |side: Side| facts.value(side, &socket("nodelay")).is_some_and(|value| value == "1" || value == "true");
    let of = |sides: &[Side]| {
        let sides = sides.iter().filter(|side| !on(**side));
        let changes = sides.filter_map(|side| facts.set(*side, socket("nodelay"), "true")).collect();
        let reason = "Send the last segment of a message without waiting for an acknowledgement.".to_owned();
        option(Code::DelayedAck, reason, changes, "Time that the other side takes to answer.")
    };
    [of(&[facts.sender()]), of(&[Side::Client, Side::Server])].into_iter().flatten().collect()
}

pub(super) fn fast_open(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    if work.connections != Connections::PerExchange {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for side in [Side::Client, Side::Server] {
        changes.extend(facts.set(side, sysctl("net.ipv4.tcp_fastopen"), "3"));
        changes.extend(facts.set(side, socket("fastopen"), "true"));
    }
    let reason = format!(
        "Send the request with the SYN (RFC 7413): each connection but a client's first saves a round trip of {}.",
        human_time(facts.rtt)
    );
    let wont_help = "A client's first connection, which gets the cookie; paths on which a middlebox drops SYNs with data; requests that must \
                     not be executed twice.";
    option(Code::InitialWindow, reason, changes, wont_help).into_iter().collect()
}
