//! Silences until the retransmission timer fires: repair what lets the timer decide.

use crate::{Facts, congestion, human_time};
use model::{Applicability, Change, Code, Remedy, Setting, Side};
use units::Span;

/// Round trips below this are a local network's, where 200 ms of silence is a hundred round trips and more.
const LOCAL: Span = Span::from_millis(5);
/// Least timeout proposed there. A timer of 250 Hz turns 10 ms into 16.
const RTO_MIN: &str = "10ms";

pub(crate) fn plan(facts: &Facts<'_>) -> Option<Remedy> {
    let off = |name: &'static str| {
        [Side::Client, Side::Server]
            .into_iter()
            .filter(move |side| facts.sysctl(*side, name).as_deref() == Some("0"))
            .map(move |side| Change {
                side,
                setting: Setting::Sysctl(name.to_owned()),
                from: Some("0".to_owned()),
                to: "1".to_owned(),
            })
    };
    let changes: Vec<Change> = off("net.ipv4.tcp_sack").chain(off("net.ipv4.tcp_timestamps")).collect();
    if !changes.is_empty() {
        return Some(Remedy {
            code: Code::RetransmissionTimeout,
            reason:
                "Allow selective acknowledgements (RFC 2018) and timestamps (RFC 7323): without them losses beyond the \
                     first of a round trip wait for the timer."
                    .to_owned(),
            changes,
            applicability: Applicability::Safe,
            wont_help: "The loss itself, and connections already open.".to_owned(),
        });
    }
    if facts.rtt <= LOCAL {
        let side = facts.sender();
        let from = facts.route(side, "rto_min");
        return (from.as_deref() != Some(RTO_MIN)).then(|| Remedy {
            code: Code::RetransmissionTimeout,
            reason: format!(
                "Let the timer fire after {RTO_MIN} instead of 200 ms: the round trip is {}, and a lost last packet is \
                 noticed by the timer alone.",
                human_time(facts.rtt)
            ),
            changes: vec![Change { side, setting: Setting::Route("rto_min".to_owned()), from, to: RTO_MIN.to_owned() }],
            // Too small a value resends what a delayed acknowledgement (up to 40 ms) would have confirmed.
            applicability: Applicability::NeedsThought,
            wont_help:
                "The loss itself. Below the receiver's delayed acknowledgement it causes needless retransmissions: \
                        lower that too, with the route's quickack."
                    .to_owned(),
        });
    }
    congestion::plan(Code::RetransmissionTimeout, facts)
}
