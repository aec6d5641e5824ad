//! The path's own rate is used up.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::words;
use thalweg_model::{Code, Evidence, SharedPath, Verdict};

pub(crate) const RULE: Rule = Rule { code: Code::PathRate, judge };

/// Nothing is gained beyond the path's rate, so another cause comes first where its own gain is larger than this. What is told of a gain
/// beside a full path errs by as much: the plateau is known to within 15 %, trains to 9 %.
pub(crate) const USED: f64 = 0.25;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let limits = facts.limits();
    let plateau = facts.plateau?;
    // Repair at the path's rate is no loss of time: the queue was never empty.
    let recovery = facts.split.loss_recovery;
    let full_repair = recovery.seconds > 0.0 && recovery.bytes / recovery.seconds >= 0.85 * plateau;
    let share = limits.path_rate + if full_repair { limits.loss_recovery } else { 0.0 };
    if limits.path_rate <= 0.0 {
        return None;
    }
    let claim = format!(
        "The path delivers {} and no more: its rate is used up for {} of the time (mean {}, round trip {} on average, {} at best).",
        words::rate(plateau),
        words::percent(share),
        words::rate(facts.rate()),
        words::time(facts.rtt_mean_s),
        words::time(facts.rtt_min_s),
    );
    let mut evidence = vec![fact(format!("the highest rate over a round trip is {}", words::rate(plateau)))];
    if let Some(trains) = facts.sender.observers.packet_trains.rate() {
        evidence.push(fact(format!("trains of packets come through at {}", words::rate(trains))));
    }
    Some(Judged { share, weight: 1.0 + USED * share, gain: None, claim, evidence, depends_on: None })
}

/// The verdict of one of several connections that have the path's rate together; `own` is its part, in bits per second.
pub(crate) fn shared(shared: &SharedPath, own: f64) -> Verdict {
    let (path, share) = (words::rate(shared.path_rate_bps / 8.0), words::percent(shared.full_share));
    let others = if shared.others == 1 {
        "another connection of the same two hosts shares".to_owned()
    } else {
        format!("{} other connections of the same two hosts share", shared.others)
    };
    let claim = format!(
        "The path delivers {path} and no more, and {others} it: together they use it up for {share} of the time, and this one has {} of it.",
        words::rate(own / 8.0),
    );
    Verdict {
        code: Code::PathRate,
        share: shared.full_share,
        claim,
        gain: None,
        weight: None,
        evidence: vec![together(shared)],
    }
}

/// What connections carry together.
pub(crate) fn together(shared: &SharedPath) -> Evidence {
    let [together, path] = [shared.together_bps, shared.path_rate_bps].map(|rate| words::rate(rate / 8.0));
    fact(format!("the {} connections carry {together} together on average, of {path}", shared.others + 1))
}
