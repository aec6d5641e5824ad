//! The congestion window stands at a fixed size.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::words;
use model::{Code, Vantage};

pub(crate) const RULE: Rule = Rule { code: Code::CongestionWindowClamp, explain: EXPLAIN, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().send_buffer;
    let clamp = facts.clamp.filter(|_| share > 0.0)?;
    let mss = facts.sender.mss;
    let claim = format!(
        "The congestion window never passes {} segments, for {} of the time: over a round trip of {} that allows {}.",
        clamp / mss,
        words::percent(share),
        words::time(facts.rtt_min_s),
        words::rate(clamp as f64 / facts.rtt_min_s.max(1e-6)),
    );
    let mut evidence = vec![fact(format!(
        "the flight of round trip after round trip is {clamp} bytes at its largest, {} whole segments of {mss}; the receiver's window is up to {} bytes",
        clamp / mss,
        facts.sender.window_max
    ))];
    if facts.vantage != Vantage::Sender {
        evidence.push(fact(
            "the flight is what the sender had sent, less what it had heard of, as its packets' timestamps tell"
                .to_owned(),
        ));
    }
    let (weight, gain) = facts.weigh_bound(facts.split.send_buffer);
    Some(Judged { share, weight, gain, claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
congestion-window-clamp

What it means
  The congestion window grew to a whole number of segments and stayed there, without loss, below what the receiver and the path would
  take.

Why it matters
  Nothing of the path holds the connection: a metric of the route does (cwnd, locked), a congestion control with a bound of its own, or a
  middlebox that ends the connection and has one.

Evidence
  The largest flight of each round trip is the same to the byte and a whole number of segments; a socket buffer counts memory, and
  holds a segment more or less. Elsewhere than at the sender the flight is told by timestamps: what was sent, less what the echoed
  acknowledgement covers (RFC 7323 section 4.3).

How to confirm
  On the sender: ip route get ADDRESS, and ip tcp_metrics show ADDRESS, for cwnd; ss -ti shows a cwnd that does not move.

References
  ip-route(8), cwnd; Linux tcp_init_metrics, snd_cwnd_clamp.
";
