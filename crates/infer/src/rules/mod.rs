//! Rules: each turns facts into at most one finding, and explains itself.

mod application;
mod bufferbloat;
mod congestion_loss;
mod congestion_window_clamp;
mod delayed_ack;
mod idle_restart;
pub(crate) mod initial_window;
mod losses;
mod path_mtu_black_hole;
mod path_rate;
mod policer;
mod random_loss;
mod reader;
mod receive_window;
mod reordering;
mod retransmission_timeout;
mod send_buffer;
mod share;
mod window_scaling_missing;
mod without_cause;

pub(crate) use share::share;

use crate::facts::Facts;
use model::{Code, Evidence, Finding, Verdict};

/// Gains below this are not worth a change: run-to-run spread of a bulk transfer on a quiet path is of this size.
///
/// Below it the verdict is `nothing-to-gain`.
pub(crate) const WORTH: f64 = 1.05;

/// The weight of what lets nothing through, and the most that is told.
const MOST: f64 = 1e6;

/// Part of what a symptom costs that its cause must save for the symptom to be its.
const BY_ITSELF: f64 = 0.5;

/// A rule: one cause.
pub(crate) struct Rule {
    pub(crate) code: Code,
    /// What `thalweg explain` prints.
    pub(crate) explain: &'static str,
    pub(crate) judge: fn(&Facts<'_>) -> Option<Judged>,
}

/// What a rule found.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) share: f64,
    /// By what the causes are ranked: how many times faster without it, even where that is only a bound.
    pub(crate) weight: f64,
    /// How many times faster without it, where it can be told.
    pub(crate) gain: Option<f64>,
    pub(crate) claim: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) depends_on: Option<Code>,
}

/// Every rule, in the order of [`Code::ALL`].
pub(crate) const RULES: [Rule; 17] = [
    receive_window::RULE,
    window_scaling_missing::RULE,
    reader::RULE,
    send_buffer::RULE,
    initial_window::RULE,
    random_loss::RULE,
    congestion_loss::RULE,
    policer::RULE,
    retransmission_timeout::RULE,
    path_rate::RULE,
    congestion_window_clamp::RULE,
    idle_restart::RULE,
    delayed_ack::RULE,
    path_mtu_black_hole::RULE,
    reordering::RULE,
    bufferbloat::RULE,
    application::RULE,
];

/// What a code means, why it matters, what it rests on, how to confirm it, and where it is described.
pub fn explain(code: Code) -> &'static str {
    match code {
        Code::NothingToGain => without_cause::NOTHING_TO_GAIN,
        Code::Unknown => without_cause::UNKNOWN,
        _ => RULES.iter().find(|rule| rule.code == code).map_or(without_cause::UNKNOWN, |rule| rule.explain),
    }
}

/// The verdict, and the other findings, costliest first.
pub(crate) fn judge(facts: &Facts<'_>) -> (Verdict, Vec<Finding>) {
    let mut found: Vec<(Code, Judged)> =
        RULES.iter().filter_map(|rule| (rule.judge)(facts).map(|judged| (rule.code, judged))).collect();
    put_cause_first(&mut found);
    // A stable sort: equal weights keep the rules' order, so the same capture always gives the same text.
    found.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
    let verdict = if found.first().is_some_and(|(_, judged)| judged.weight >= WORTH) {
        let (code, judged) = found.remove(0);
        Verdict {
            code,
            share: judged.share,
            claim: judged.claim,
            gain: judged.gain,
            weight: Some(judged.weight.min(MOST)),
            evidence: judged.evidence,
        }
    } else {
        without_cause::verdict(facts)
    };
    let top = verdict.code;
    let depends_on =
        |code: Code, judged: &Judged| judged.depends_on.filter(|on| *on != code).or_else(|| symptom_of(code, top));
    // What would change less than a repetition does is not reported, unless a cause that is reported brings it about.
    let findings = found
        .into_iter()
        .filter(|(code, judged)| judged.weight >= WORTH || depends_on(*code, judged).is_some())
        .map(|(code, judged)| Finding {
            code,
            share: judged.share,
            depends_on: depends_on(code, &judged),
            claim: judged.claim,
            gain: judged.gain,
            weight: Some(judged.weight.min(MOST)),
            evidence: judged.evidence,
        })
        .collect();
    (verdict, findings)
}

/// The queue that acknowledgements wait in makes all that goes by round trips cost more: it comes before what it brings about, unless that
/// costs far more by itself.
fn put_cause_first(found: &mut [(Code, Judged)]) {
    let saves = |weight: f64| 1.0 - 1.0 / weight.max(1.0);
    let Some(at) = found.iter().position(|(code, judged)| *code == Code::Bufferbloat && judged.weight >= WORTH) else {
        return;
    };
    let brought_about = found.iter().filter(|(code, _)| symptom_of(*code, Code::Bufferbloat).is_some());
    let most = brought_about.map(|(_, judged)| judged.weight).fold(1.0, f64::max);
    let own = &mut found[at].1.weight;
    if saves(*own) >= BY_ITSELF * saves(most) {
        *own = own.max(most * 1.01);
    }
}

/// Symptoms that a verdict explains.
fn symptom_of(code: Code, verdict: Code) -> Option<Code> {
    let explained = match verdict {
        Code::PathRate => matches!(code, Code::CongestionLoss | Code::RetransmissionTimeout | Code::Bufferbloat),
        Code::RandomLoss | Code::CongestionLoss => matches!(code, Code::RetransmissionTimeout),
        Code::WindowScalingMissing => matches!(code, Code::ReceiveWindow),
        Code::Policer => matches!(code, Code::PathRate | Code::RetransmissionTimeout | Code::InitialWindow),
        Code::PathMtuBlackHole => matches!(code, Code::RetransmissionTimeout | Code::RandomLoss | Code::CongestionLoss),
        Code::Reordering => matches!(code, Code::RetransmissionTimeout | Code::PathRate),
        // As a verdict it is the other direction's.
        Code::Bufferbloat => matches!(
            code,
            Code::RetransmissionTimeout
                | Code::RandomLoss
                | Code::CongestionLoss
                | Code::InitialWindow
                | Code::Application
        ),
        Code::IdleRestart => matches!(code, Code::InitialWindow),
        _ => false,
    };
    explained.then_some(verdict)
}

/// A fact without packets to point at.
pub(crate) fn fact(text: String) -> Evidence {
    Evidence { text, packets: Vec::new(), time_s: None }
}

/// A fact that the packets of `sights` (number and nanoseconds) show.
pub(crate) fn seen(text: String, sights: &[(u64, u64)]) -> Evidence {
    Evidence { text, packets: sights.iter().map(|s| s.0).collect(), time_s: sights.first().map(|s| s.1 as f64 / 1e9) }
}

/// The weight of removing a limit whose next one is not known: its time vanishes.
pub(crate) fn weight_of_time(share: f64) -> f64 {
    1.0 / (1.0 - share.min(0.99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_in_the_same_parts() {
        for code in Code::ALL {
            let text = explain(code);
            assert!(text.starts_with(code.as_str()), "{code}");
            for part in ["What it means", "Why it matters", "Evidence", "How to confirm", "References"] {
                assert!(text.contains(part), "{code}: {part}");
            }
        }
    }
}
