//! Small writes wait for acknowledgements that the other side delays.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN, Rule, seen};
use crate::diagnosis::words;
use model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::DelayedAck, explain: EXPLAIN, judge };

/// So often at least: a program's own timer may fall upon an acknowledgement once.
const ENOUGH: u64 = 3;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let held = facts.held;
    if held.count < ENOUGH || facts.phase_s <= 0.0 {
        return None;
    }
    let waited = held.time as f64 / 1e9;
    let share = (waited / facts.phase_s).min(1.0);
    let gain = 1.0 / (1.0 - share).max(1e-3);
    if gain < MIN_GAIN {
        return None;
    }
    let claim = format!(
        "{} small writes waited {} each for an acknowledgement that the other side delays: {} of the time.",
        held.count,
        words::time(waited / held.count as f64),
        words::percent(share),
    );
    let evidence = vec![seen(
        "small segments that left the moment the one before them was acknowledged, long after a round trip".to_owned(),
        &held.sights,
    )];
    Some(Judged { share, weight: facts.weight_in_bursts(gain), gain: Some(gain), claim, evidence, depends_on: None })
}

const EXPLAIN: &str = "\
delayed-ack

What it means
  A program writes a small piece, then another, and waits for the answer. Nagle's algorithm keeps the second until the first is
  acknowledged, and the other side delays that acknowledgement, as it waits for data to send along.

Why it matters
  Each exchange takes 40 ms more on Linux, up to 200 ms elsewhere, whatever the path. On a local network that is all of the time.

Evidence
  Segments smaller than full ones that leave at once when an acknowledgement without payload arrives, 25 to 520 ms later than a round
  trip, with nothing else out.

How to confirm
  strace the writing program: two writes before a read. With TCP_NODELAY, or both pieces in one write (writev, TCP_CORK), the waits end.

References
  RFC 896; RFC 1122 section 4.2.3.2; RFC 9293 section 3.7.4; Linux tcp_nagle_check, TCP_DELACK_MIN.
";
