//! Small writes wait for acknowledgements that the other side delays.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN, Rule, seen};
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::DelayedAck, judge };

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
