//! What is left of a connection's verdict where it shares its path.

use crate::diagnosis::finding::MIN_GAIN;
use crate::diagnosis::ranking::symptom_of;
use crate::diagnosis::rules::path_rate::GAIN_ERROR;
use thalweg_model::{
    Cause, Code, CongestionLosses, Context, Dropped, Finding, Flow, LossClass, SharedPath, UsedPath, Vantage, Verdict,
};

/// Part of the time from which on it is the path that holds all of them.
const FULL_SHARE: f64 = 0.5;
/// Least part of its equal share that one has which could have more.
const MIN_PART_OF_EQUAL_SHARE: f64 = 0.5;
/// How many times the least round trip the usual one is, at least, where a queue stands.
const MIN_QUEUED_RTT_RATIO: f64 = 1.5;

/// Judges a connection again by what it shared: none can gain more than all of them could, or than the others leave of the path.
///
/// `least_ms` is the least round trip that any of them met.
pub(crate) fn share(flow: &mut Flow, least_ms: f64) {
    let Some(shared) = flow.facts.shared_path.as_deref().copied() else { return };
    let SharedPath { others, together_bps, path_rate_bps, full_share } = shared;
    let (full, own) = (full_share >= FULL_SHARE, flow.goodput_bps);
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
        of_a_queue(waits, &mut flow.verdict.cause);
        flow.findings.iter_mut().for_each(|finding| of_a_queue(waits, &mut finding.verdict.cause));
    }
    // Beside the receiver a pause may be the congestion window's: a program that wanted less would have less than its part.
    let pauses =
        full && flow.vantage != Vantage::Sender && own * (others + 1) as f64 >= MIN_PART_OF_EQUAL_SHARE * together_bps;
    let is_bound = |code: Code| code.is_bounded_by_shared_path() || pauses && code == Code::Application;
    for finding in flow.findings.iter_mut().filter(|finding| is_bound(finding.code())) {
        finding.verdict.gain = finding.verdict.gain.map(|gain| gain.min(most));
    }
    let verdict = &mut flow.verdict;
    if is_bound(verdict.code()) {
        verdict.gain = verdict.gain.map(|gain| gain.min(most));
        let gain = verdict.gain.unwrap_or(most);
        if gain < MIN_GAIN || full && gain < 1.0 + GAIN_ERROR * full_share {
            let was = std::mem::replace(verdict, used_together(&shared, own));
            flow.findings.retain(|finding| finding.code() != Code::PathRate);
            let was = Finding { verdict: Verdict { gain: Some(gain), ..was }, depends_on: None };
            flow.findings.insert(0, was);
        } else if full {
            verdict.context.push(Context::SharedPath(shared));
        }
    } else if full && verdict.code() == Code::PathRate {
        *verdict = used_together(&shared, own);
    }
    // What another depended on may have another name now, or be gone.
    let top = flow.verdict.code();
    let told: Vec<Code> = std::iter::once(top).chain(flow.findings.iter().map(Finding::code)).collect();
    for finding in &mut flow.findings {
        let code = finding.code();
        let is_told = |on: &Code| *on != code && told.contains(on);
        finding.depends_on = finding.depends_on.filter(is_told).or_else(|| symptom_of(code, top));
    }
    flow.findings
        .retain(|finding| finding.depends_on.is_some() || finding.verdict.gain.is_none_or(|gain| gain >= MIN_GAIN));
}

/// The verdict of one of several connections that have the path's rate together; `own` is its part, in bits per second.
fn used_together(shared: &SharedPath, own_bps: f64) -> Verdict {
    let SharedPath { others, path_rate_bps: rate_bps, full_share, .. } = *shared;
    let path = Cause::PathRate(UsedPath::Several { rate_bps, own_bps, others });
    Verdict { context: vec![Context::SharedPath(*shared)], ..Verdict::new(path, full_share, None) }
}

/// Whether its packets wait in a queue most of the time, as they do before no policer.
fn waits(flow: &Flow, least_ms: f64) -> bool {
    flow.facts
        .rtt
        .as_deref()
        .and_then(|rtt| rtt.loaded_ms)
        .is_some_and(|loaded| loaded >= MIN_QUEUED_RTT_RATIO * least_ms)
}

/// Where the path is full a queue loses what does not fit, though a connection that has a small part of it sees no queue grow before.
fn of_a_queue(waits: bool, cause: &mut Cause) {
    let repairs = match cause {
        Cause::RandomLoss(losses) => &mut losses.repairs,
        Cause::Policer(policed) if waits => &mut policed.repairs,
        _ => return,
    };
    let repairs = std::mem::take(repairs);
    *cause = Cause::CongestionLoss(CongestionLosses::SharedPath(Dropped { repairs }));
}
