//! Which finding is the verdict, and which are its symptoms.
//!
//! Findings are ranked by weight. Two exceptions: a cause that slows bursts down weighs as much as the pauses between them, and a cause
//! that comes before its symptoms weighs as much as they do. Between equal weights [`Precedence`] decides, then the order of the rules.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MAX_WEIGHT, MIN_GAIN};
use crate::diagnosis::no_cause;
use crate::diagnosis::rules::RULES;
use thalweg_model::{Code, Finding, Verdict};

/// The queue in which acknowledgements wait comes before its symptoms if it costs this part of what they do: its own cost counts round
/// trips alone, and what remains of its symptoms without it is unknown. So it is with a receive buffer that overruns, of whose cost only the
/// repair counts.
const PART_OF_SYMPTOMS: f64 = 0.5;

/// The verdict, and the other findings, costliest first.
pub(crate) fn judge(facts: &Facts<'_>) -> (Verdict, Vec<Finding>) {
    let mut found: Vec<Judged> = RULES.iter().filter_map(|rule| rule(facts)).collect();
    put_causes_first(&mut found);
    // A stable sort: what is equal keeps the rules' order, so the same capture always gives the same text.
    let precedence = |judged: &Judged| Precedence::of(judged.cause.code());
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| precedence(b).cmp(&precedence(a))));
    let verdict = if found.first().is_some_and(|judged| judged.weight >= MIN_GAIN) {
        verdict_of(found.remove(0)).0
    } else {
        no_cause::verdict(facts)
    };
    let top = verdict.code();
    let findings = found
        .into_iter()
        .map(|judged| {
            let weight = judged.weight;
            let (verdict, depends_on) = verdict_of(judged);
            let code = verdict.code();
            let depends_on = depends_on.filter(|on| *on != code).or_else(|| symptom_of(code, top));
            (weight, Finding { verdict, depends_on })
        })
        // What would change less than a repetition does is not reported, unless a cause that is reported brings it about.
        .filter(|(weight, finding)| *weight >= MIN_GAIN || finding.depends_on.is_some())
        .map(|(_, finding)| finding)
        .collect();
    (verdict, findings)
}

fn verdict_of(judged: Judged) -> (Verdict, Option<Code>) {
    let weight = Some(judged.weight.min(MAX_WEIGHT));
    (Verdict { weight, ..Verdict::new(judged.cause, judged.share, judged.gain) }, judged.depends_on)
}

/// Lets causes weigh as much as what they come before.
fn put_causes_first(found: &mut [Judged]) {
    let heaviest = |found: &[Judged], codes: &[Code]| {
        let those = found.iter().filter(|judged| codes.contains(&judged.cause.code()));
        those.map(|judged| judged.weight).fold(1.0, f64::max)
    };
    let pauses = heaviest(found, &[Code::Application]);
    for judged in found.iter_mut().filter(|judged| judged.in_bursts) {
        judged.weight = judged.weight.max(pauses);
    }
    for at in 0..found.len() {
        let code = found[at].cause.code();
        let symptoms = heaviest(found, code.symptoms());
        let own = &mut found[at].weight;
        if *own >= MIN_GAIN && Precedence::of(code).is_before_symptoms(*own, symptoms) {
            *own = own.max(symptoms);
        }
    }
}

/// When a finding comes before others of less or equal weight. Of two with equal weight the greater is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    ByWeight,
    /// It explains findings of equal weight.
    Explains,
    /// It slows bursts down, and explains the pauses between them.
    SlowsBursts,
    /// It comes before its symptoms if it saves a good part of what they cost.
    BeforeSymptomsItSaves,
    /// It comes before its symptoms: nothing that is sent again gets through.
    BeforeSymptoms,
}

impl Precedence {
    const fn of(code: Code) -> Self {
        match code {
            Code::PathMtuBlackHole | Code::WindowScaleIgnored | Code::SackNotTranslated => Self::BeforeSymptoms,
            Code::Bufferbloat | Code::ReceiveBufferOverrun => Self::BeforeSymptomsItSaves,
            Code::IdleRestart | Code::DelayedAck | Code::ApplicationWindow => Self::SlowsBursts,
            Code::InitialWindow | Code::Reordering => Self::Explains,
            Code::ReceiveWindow
            | Code::WindowScalingMissing
            | Code::Reader
            | Code::SendBuffer
            | Code::ReceiverDrops
            | Code::RandomLoss
            | Code::CongestionLoss
            | Code::Policer
            | Code::RetransmissionTimeout
            | Code::PathRate
            | Code::CongestionWindowClamp
            | Code::PacingRate
            | Code::Connecting
            | Code::AcceptQueue
            | Code::RequestLost
            | Code::WaitingForServer
            | Code::WaitingForClient
            | Code::Reset
            | Code::VanishedPeer
            | Code::Application
            | Code::NothingToGain
            | Code::Unknown => Self::ByWeight,
        }
    }

    /// Whether a cause of this weight comes before its symptoms, of which the heaviest weighs `symptoms`.
    fn is_before_symptoms(self, own: f64, symptoms: f64) -> bool {
        let saves = |weight: f64| 1.0 - 1.0 / weight.max(1.0);
        self == Self::BeforeSymptoms
            || self == Self::BeforeSymptomsItSaves && saves(own) >= PART_OF_SYMPTOMS * saves(symptoms)
    }
}

/// The verdict, where `code` is a symptom that it explains.
pub(crate) fn symptom_of(code: Code, verdict: Code) -> Option<Code> {
    verdict.symptoms().contains(&code).then_some(verdict)
}
