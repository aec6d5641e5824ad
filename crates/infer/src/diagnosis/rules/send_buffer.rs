//! The sender's socket buffer holds less than the path.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::words;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::SendBuffer, explain: EXPLAIN, judge };

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
            words::size(facts.sender.flight_max as f64)
        )));
        format!(
            "The sender's socket buffer is full for {share_of_time} of the time: its program is let write again only when no more than {} of what it sent is unacknowledged, two thirds of what the buffer is to hold.",
            words::size(wakes.level())
        )
    } else {
        let flight = facts.wakes.and_then(SndbufWakeups::full).unwrap_or(facts.split.buffered_flight);
        evidence.push(fact(format!(
            "the flight stands at {flight:.0} bytes, neither growing nor cut; the receiver's window is up to {} bytes",
            facts.sender.window_max
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
    if facts.vantage != model::Vantage::Sender {
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

const EXPLAIN: &str = "\
send-buffer

What it means
  The sender's socket buffer was full below the receiver's window, so the program could hand over no more until something was
  acknowledged: it waited, and so did the path.

Why it matters
  The rate is at most about the buffer divided by the round-trip time. A program that sets SO_SNDBUF switches auto-tuning off;
  net.ipv4.tcp_wmem's third number bounds the rest. Linux lets a program write past the limit at times (new_segment), and then waits
  the longer: flights of many times the buffer, with silence between, are a full buffer as well.

Evidence
  Pauses that end with an acknowledgement, each time with as much still in flight: a program is let write again when a third of its
  buffer is free. At the sender as they are; from elsewhere as timestamps tell when data was sent and what had been heard by then, which
  takes both directions and a path on which data comes faster than on average.
  Or flight constant to within two segments over at least four round trips, at the largest the flow ever had; or, where losses come
  between, within one percent of one level for most of the time. A congestion window would have grown.
  No gain is told where data never came faster and the path was never full, or delays that vary blur how fast it comes: the
  path's rate is not known then.

How to confirm
  ss -tm on the sender: w in skmem, what is queued, is at tb, the limit, or above it. sndbuf_limited of ss -ti grows only where the
  buffer is full when the last of what was written leaves; with a program that writes large pieces it may stay at nothing.

References
  RFC 5681 section 3.1; Linux sk_stream_is_writeable, tcp_sndbuf_expand, tcp_cwnd_validate (tcpi_sndbuf_limited).
";
