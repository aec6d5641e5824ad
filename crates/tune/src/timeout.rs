//! Silences until the retransmission timer fires: repair what lets the timer decide.

use crate::facts::{Facts, route, sysctl};
use crate::{advice, congestion, human_time, noted, remedy};
use thalweg_model::{Applicability, Change, Code, Remedy, Side};
use thalweg_units::Span;

/// Round trips below this are a local network's, where 200 ms of silence is a hundred round trips and more.
const LOCAL: Span = Span::from_millis(5);
/// Least timeout proposed there. A timer of 250 Hz turns 10 ms into 16.
const LOCAL_RTO_MIN: &str = "10ms";
/// Round trips up to this still wait mostly for the kernel's 200 ms.
const NEAR: Span = Span::from_millis(50);
/// Least timeout there: past the 40 ms by which acknowledgements are delayed (Linux `TCP_DELACK_MIN`), with a timer's tick of 10.
const NEAR_RTO_MIN: &str = "50ms";

/// Silences from this on are more than one timeout: the first is of 200 ms and little more than a round trip, and each doubles (RFC 6298
/// §5.5), so all that was sent for that long was lost.
const GONE: Span = Span::from_millis(1_000);
const PATH_GONE: &str =
    "On the path: a silence of seconds is a path that was gone for as long, and no timer makes up for it.";

/// Where fewer segments are in flight no three can tell of the loss of one before them (RFC 5681 §3.2), and no congestion control sends more.
const MIN_FLIGHT_SEGMENTS: u64 = 4;

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let code = Code::RetransmissionTimeout;
    let changes = switched_off(facts);
    if !changes.is_empty() {
        let reason = "Allow selective acknowledgements (RFC 2018) and timestamps (RFC 7323): without them losses beyond the \
                      first of a round trip wait for the timer, and no tail loss probe is sent.";
        return vec![remedy(
            code,
            reason.to_owned(),
            changes,
            Applicability::Safe,
            "The loss itself, connections already open, and paths on which a middlebox strips the options from the SYN.",
        )];
    }
    let mut remedies: Vec<Remedy> = rto_min(facts).into_iter().collect();
    if facts.measured.flight_max_bytes >= MIN_FLIGHT_SEGMENTS * facts.measured.segment_bytes {
        remedies.extend(congestion::bbr(code, facts));
    }
    remedies.push(advice(code, if facts.silence >= GONE { PATH_GONE } else { congestion::VANISH }));
    remedies
}

/// What lets a sender do without the timer, and is off.
fn switched_off(facts: &Facts<'_>) -> Vec<Change> {
    let mut changes = Vec::new();
    for (name, agreed) in [("net.ipv4.tcp_sack", facts.handshake.sack), ("net.ipv4.tcp_timestamps", None)] {
        for side in [Side::Client, Side::Server] {
            let off = match facts.sysctl(side, name) {
                Some(value) => value == "0",
                // Of both sides one at least did not offer it.
                None => agreed == Some(false),
            };
            changes.extend(off.then(|| facts.set(side, sysctl(name), "1")).flatten());
        }
    }
    changes
}

fn rto_min(facts: &Facts<'_>) -> Option<Remedy> {
    let value = match facts.rtt {
        rtt if rtt <= LOCAL => LOCAL_RTO_MIN,
        rtt if rtt <= NEAR => NEAR_RTO_MIN,
        _ => return None,
    };
    let change = facts.set(facts.sender(), route("rto_min"), value)?;
    let reason = format!(
        "Let the timer fire {value} after a round trip instead of 200 ms: the round trip is {}, and a lost last packet is \
         noticed by the timer alone.",
        human_time(facts.rtt)
    );
    // Too small a value resends what a delayed acknowledgement (up to 40 ms) would have confirmed.
    let sooner =
        remedy(Code::RetransmissionTimeout, reason, vec![change], Applicability::NeedsThought, "The loss itself.");
    let delayed = "Below the receiver's delayed acknowledgement, 40 ms on Linux, it causes needless retransmissions: lower that too, with \
                   the route's quickack.";
    Some(noted(sooner, &[delayed]))
}
