//! The sender's socket buffer holds less than the path.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::words;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::SendBuffer, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().send_buffer;
    if share <= 0.0 || facts.clamp.is_some() {
        return None;
    }
    let (weight, gain) = facts.weigh_bound(facts.split.send_buffer);
    let share_of_time = words::percent(share);
    let mut evidence = Vec::new();
    let claim = if let Some(wakes) = facts.wakes.filter(|wakes| wakes.full().is_none()) {
        evidence.push(fact(format!(
            "up to {} are in flight in between: Linux lets a program write past the limit while the congestion window is open",
            words::size(facts.sender.totals.flight_max as f64)
        )));
        format!(
            "The sender's socket buffer is full for {share_of_time} of the time: its program is let write again only when no more than {} of what it sent is unacknowledged, two thirds of what the buffer is to hold.",
            words::size(wakes.level())
        )
    } else {
        let flight = facts.wakes.and_then(SndbufWakeups::full).unwrap_or(facts.split.buffered_flight);
        evidence.push(fact(format!(
            "the flight stands at {flight:.0} bytes, neither growing nor cut; the receiver's window is up to {} bytes",
            facts.sender.window.max
        )));
        format!(
            "The sender's socket buffer is full for {share_of_time} of the time: the flight stands at {}, below the receiver's window, which over {} allows {}.",
            words::size(flight),
            words::time(facts.rtt_min_s),
            words::rate(flight / facts.rtt_min_s.max(1e-6)),
        )
    };
    if let Some(wakes) = facts.wakes {
        evidence.push(fact(format!(
            "{} pauses, {} together, ended with an acknowledgement that left about {} in flight: a program is let write again when a third of its buffer is free, which holds about {} then",
            wakes.woken,
            words::time(wakes.time as f64 / 1e9),
            words::size(wakes.level()),
            words::size(wakes.buffer()),
        )));
    }
    if facts.vantage != thalweg_model::Vantage::Sender {
        evidence.push(fact(
            match facts.wakes {
                Some(_) => "when the sender sent, and what it had heard by then, are as its packets' timestamps tell it",
                None => {
                    "the flight is reconstructed from round-trip times, and a clamped congestion window may look the same from here; capture at the sender"
                }
            }
            .to_owned(),
        ));
    }
    Some(Judged { share, weight, gain, claim, evidence, depends_on: None })
}
