//! The congestion window stands at a fixed size.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::words;
use thalweg_model::{Code, Vantage};

pub(crate) const RULE: Rule = Rule { code: Code::CongestionWindowClamp, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().send_buffer;
    let clamp = facts.clamp.filter(|_| share > 0.0)?;
    let mss = facts.sender.space.mss;
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
        facts.sender.window.max
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
