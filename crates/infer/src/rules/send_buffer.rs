//! The sender's socket buffer holds less than the path.

use super::{Judged, Rule, fact};
use crate::facts::Facts;
use crate::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::SendBuffer, explain: EXPLAIN, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().send_buffer;
    if share <= 0.0 || facts.clamp.is_some() {
        return None;
    }
    let (weight, gain) = facts.weigh_bound(facts.split.send_buffer);
    let flight = facts.split.buffered_flight;
    let claim = format!(
        "The sender's socket buffer is full for {1} of the time: the flight stands at {0}, below the receiver's window, which over {2} allows {3}.",
        words::size(flight),
        words::percent(share),
        words::time(facts.rtt_min_s),
        words::rate(flight / facts.rtt_min_s.max(1e-6)),
    );
    let mut evidence = vec![fact(format!(
        "the flight stands at {:.0} bytes, neither growing nor cut; the receiver's window is up to {} bytes",
        flight, facts.sender.window_max
    ))];
    if let Some(wakes) = facts.wakes {
        evidence.push(fact(format!(
            "{} pauses, {} together, began at about that flight and ended with an acknowledgement while much of it was still out: the program waited to be let write",
            wakes.woken,
            words::time(wakes.time as f64 / 1e9)
        )));
    }
    if facts.vantage != model::Vantage::Sender {
        evidence.push(fact(
            "the flight is reconstructed from round-trip times, and a clamped congestion window may look the same from here; capture at the sender"
                .to_owned(),
        ));
    }
    Some(Judged { share, weight, gain, claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
send-buffer

What it means
  The bytes in flight stayed the same, below the receiver's window and without loss: the sender's socket buffer was full, so the
  program could hand over no more until something was acknowledged.

Why it matters
  The rate is at most the buffer divided by the round-trip time. A program that sets SO_SNDBUF switches auto-tuning off;
  net.ipv4.tcp_wmem's third number bounds the rest.

Evidence
  Flight constant to within two segments over at least four round trips, at the largest the flow ever had; or, where losses come
  between, within one percent of one level for most of the time. A congestion window would have grown.
  At the sender also pauses that begin at one same flight and end with an acknowledgement, a third or more of that flight still
  out: a full buffer wakes its program when a third is free. From elsewhere such pauses look like the application's. No gain is told
  where data never came faster and the path was never full: its rate is not known then.

How to confirm
  ss -tim on the sender: sndbuf_limited grows and wmem_queued stays at the limit.

References
  RFC 5681 section 3.1; Linux tcp_sndbuf_expand, tcpi_sndbuf_limited.
";
