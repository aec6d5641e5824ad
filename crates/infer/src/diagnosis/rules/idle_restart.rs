//! After each pause the congestion window begins anew.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact, seen};
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::IdleRestart, judge };

/// Bursts that must have begun anew and lost nothing: one may be chance.
const ENOUGH: u64 = 2;
/// How much faster they must be with the window kept for that to outweigh the pauses between them, which are the program's own.
const IN_BURST: f64 = 1.3;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let restarts = &facts.sender.observers.idle_restarts;
    if restarts.whole < ENOUGH || restarts.whole * 2 < restarts.bursts {
        return None;
    }
    let count = restarts.whole as f64;
    let spent = restarts.time as f64 / 1e9;
    let kept = count * facts.rtt_low_s + facts.capacity.map_or(0.0, |capacity| restarts.bytes as f64 / capacity);
    let gain = spent / kept.max(1e-9);
    if gain < IN_BURST {
        return None;
    }
    let share = (spent / facts.phase_s.max(1e-9)).min(1.0);
    let claim = format!(
        "After each pause the congestion window begins anew: {} of {} bursts took {} on average, where one round trip of {} and the path's rate would do in {}.",
        restarts.whole,
        restarts.bursts,
        words::time(spent / count),
        words::time(facts.rtt_low_s),
        words::time(kept / count),
    );
    let evidence = vec![
        seen(
            "bursts that began with half of the flight there was before, or less, and grew it again".to_owned(),
            &restarts.sights,
        ),
        fact(format!("together they carried {} in {}", words::size(restarts.bytes as f64), words::time(spent))),
    ];
    Some(Judged { share, weight: facts.weight_in_bursts(gain), gain: Some(gain), claim, evidence, depends_on: None })
}
