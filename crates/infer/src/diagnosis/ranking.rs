//! Which finding is the verdict, and which are its symptoms.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MAX_WEIGHT, MIN_GAIN};
use crate::diagnosis::no_cause;
use crate::diagnosis::rules::RULES;
use thalweg_model::{Code, Finding, Verdict};

/// Part of what a symptom costs that its cause must save for the symptom to be its.
const BY_ITSELF: f64 = 0.5;

/// The verdict, and the other findings, costliest first.
pub(crate) fn judge(facts: &Facts<'_>) -> (Verdict, Vec<Finding>) {
    let mut found: Vec<(Code, Judged)> =
        RULES.iter().filter_map(|rule| (rule.judge)(facts).map(|judged| (rule.code, judged))).collect();
    put_cause_first(&mut found);
    // A stable sort: equal weights keep the rules' order, so the same capture always gives the same text.
    found.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
    let verdict = if found.first().is_some_and(|(_, judged)| judged.weight >= MIN_GAIN) {
        let (code, judged) = found.remove(0);
        Verdict {
            code,
            share: judged.share,
            claim: judged.claim,
            gain: judged.gain,
            weight: Some(judged.weight.min(MAX_WEIGHT)),
            evidence: judged.evidence,
        }
    } else {
        no_cause::verdict(facts)
    };
    let top = verdict.code;
    let depends_on =
        |code: Code, judged: &Judged| judged.depends_on.filter(|on| *on != code).or_else(|| symptom_of(code, top));
    // What would change less than a repetition does is not reported, unless a cause that is reported brings it about.
    let findings = found
        .into_iter()
        .filter(|(code, judged)| judged.weight >= MIN_GAIN || depends_on(*code, judged).is_some())
        .map(|(code, judged)| Finding {
            code,
            share: judged.share,
            depends_on: depends_on(code, &judged),
            claim: judged.claim,
            gain: judged.gain,
            weight: Some(judged.weight.min(MAX_WEIGHT)),
            evidence: judged.evidence,
        })
        .collect();
    (verdict, findings)
}

/// The queue that acknowledgements wait in makes all that goes by round trips cost more: it comes before what it brings about, unless that
/// costs far more by itself.
fn put_cause_first(found: &mut [(Code, Judged)]) {
    let saves = |weight: f64| 1.0 - 1.0 / weight.max(1.0);
    let Some(at) = found.iter().position(|(code, judged)| *code == Code::Bufferbloat && judged.weight >= MIN_GAIN)
    else {
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
pub(crate) fn symptom_of(code: Code, verdict: Code) -> Option<Code> {
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
