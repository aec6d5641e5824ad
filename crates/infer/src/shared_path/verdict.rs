//! What is left of a connection's verdict where it shares its path.

use crate::diagnosis::finding::MIN_GAIN;
use crate::diagnosis::ranking::symptom_of;
use crate::diagnosis::rules::path_rate::{self, USED};
use thalweg_model::{Code, Evidence, Finding, Flow, LossClass, SharedPath, Vantage, Verdict};

/// Part of the time from which on it is the path that holds all of them.
const MOSTLY: f64 = 0.5;
/// Least part of its equal share that one has which could have more.
const OWN_PART: f64 = 0.5;
/// How many times the least round trip the usual one is, at least, where a queue stands.
const WAITS: f64 = 1.5;

/// Judges a connection again by what it shared: none can gain more than all of them could, or than the others leave of the path.
///
/// `least_ms` is the least round trip that any of them met.
pub(crate) fn share(flow: &mut Flow, least_ms: f64) {
    let Some(shared) = flow.facts.shared_path.as_deref().copied() else { return };
    let SharedPath { others, together_bps, path_rate_bps, full_share } = shared;
    let (full, own) = (full_share >= MOSTLY, flow.goodput_bps);
    let left = if full { 0.0 } else { (path_rate_bps - together_bps) / own };
    let most = (path_rate_bps / together_bps).max(1.0 + left).max(1.0);
    if full {
        let path_holds = flow.rtt_min_ms.map(|least_ms| path_rate_bps / 8.0 * least_ms / 1e3);
        flow.measured.capacity_bps = Some(path_rate_bps);
        if let Some(delivery) = &mut flow.facts.delivery {
            (delivery.capacity_bps, delivery.bdp_bytes) = (Some(path_rate_bps), path_holds);
        }
        let waits = waits(flow, least_ms);
        if waits && flow.policer.take().is_some() {
            flow.facts.losses.iter_mut().for_each(|losses| losses.class = Some(LossClass::Queue));
        }
        of_a_queue(waits, &mut flow.verdict.code, &mut flow.verdict.claim, &mut flow.verdict.evidence);
        for finding in &mut flow.findings {
            of_a_queue(waits, &mut finding.code, &mut finding.claim, &mut finding.evidence);
        }
    }
    // Beside the receiver a pause may be the congestion window's: a program that wanted less would have less than its part.
    let pauses = full && flow.vantage != Vantage::Sender && own * (others + 1) as f64 >= OWN_PART * together_bps;
    let is_bound = |code: Code| is_bound(code) || pauses && code == Code::Application;
    for finding in flow.findings.iter_mut().filter(|finding| is_bound(finding.code)) {
        finding.gain = finding.gain.map(|gain| gain.min(most));
    }
    let verdict = &mut flow.verdict;
    if is_bound(verdict.code) {
        verdict.gain = verdict.gain.map(|gain| gain.min(most));
        let gain = verdict.gain.unwrap_or(most);
        if gain < MIN_GAIN || full && gain < 1.0 + USED * full_share {
            let was = std::mem::replace(verdict, path_rate::shared(&shared, own));
            let Verdict { code, share, claim, evidence, weight, .. } = was;
            flow.findings.retain(|finding| finding.code != Code::PathRate);
            flow.findings
                .insert(0, Finding { code, share, depends_on: None, claim, gain: Some(gain), weight, evidence });
        } else if full {
            verdict.evidence.push(path_rate::together(&shared));
        }
    } else if full && verdict.code == Code::PathRate {
        *verdict = path_rate::shared(&shared, own);
    }
    // What another depended on may be told by another name now, or not at all.
    let top = flow.verdict.code;
    let told: Vec<Code> = std::iter::once(top).chain(flow.findings.iter().map(|finding| finding.code)).collect();
    for finding in &mut flow.findings {
        let is_told = |on: &Code| *on != finding.code && told.contains(on);
        finding.depends_on = finding.depends_on.filter(is_told).or_else(|| symptom_of(finding.code, top));
    }
    flow.findings.retain(|finding| finding.depends_on.is_some() || finding.gain.is_none_or(|gain| gain >= MIN_GAIN));
}

/// Causes that hold one connection back, and whose end gains it nothing where others have the path.
const fn is_bound(code: Code) -> bool {
    matches!(
        code,
        Code::ReceiveWindow
            | Code::SendBuffer
            | Code::InitialWindow
            | Code::RandomLoss
            | Code::CongestionLoss
            | Code::RetransmissionTimeout
            | Code::CongestionWindowClamp
            | Code::Reordering
            | Code::Bufferbloat
    )
}

/// Whether its packets wait in a queue most of the time, as they do before no policer.
fn waits(flow: &Flow, least_ms: f64) -> bool {
    flow.facts.rtt.as_deref().and_then(|rtt| rtt.loaded_ms).is_some_and(|loaded| loaded >= WAITS * least_ms)
}

/// Where the path is full a queue loses what does not fit, though a connection that has a small part of it sees no queue grow before.
fn of_a_queue(waits: bool, code: &mut Code, claim: &mut String, evidence: &mut Vec<Evidence>) {
    if *code == Code::RandomLoss || waits && *code == Code::Policer {
        *code = Code::CongestionLoss;
        "A full queue drops packets: the connections that share the path send more than it takes.".clone_into(claim);
        evidence.retain(|fact| !fact.packets.is_empty());
    }
}
