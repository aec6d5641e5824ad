//! Searches, on a fitted path, for the set of changes that gives most where the path is not quite the fitted one.
//!
//! Candidates are what the diagnosis allows, what the next diagnosis allows on top of it, and pairs. Rounds keep the better half by
//! paired seeds; "nothing changed" and the planned remedy stay to the last.

use crate::failure::Failure;
use crate::fit::Fit;
use crate::fit::parameters::{Amount, Parameters, capture_at};
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{AS_FOUND, WORTH, apply, congestion_control, merge, name, ratio};
use thalweg_model::{
    Applicability, Arm, Candidate, Change, Code, Corner, Experiment, Finding, Flow, LabReport, Remedy, Scenario,
    SettingsReport, Stream, Workload,
};
use thalweg_tune::Facts;
use thalweg_units::Span;

/// Remedies laid one upon the other: behind one limit the next one shows.
const CHAIN: usize = 3;
/// Candidates at most, besides those of the chain.
const OTHERS: usize = 6;
/// Seeds of the first round, of the second, and at each corner.
const ROUND_SEEDS: [u32; 2] = [2, 4];
const CORNER_SEEDS: u32 = 2;
/// Candidates in the corners.
const FINALISTS: usize = 3;
/// How far corners are from the fitted path.
const CORNER: f64 = 0.3;
/// Of candidates whose worst corners differ by less, the one with fewer changes is preferred.
const ALIKE: f64 = 0.02;

/// A candidate while it is tried.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) remedy: Remedy,
    pub(crate) candidate: Candidate,
    is_planned: bool,
}

impl Tried {
    fn new(name: String, remedies: &[Remedy], is_planned: bool) -> Option<Self> {
        let codes = remedies.iter().map(|remedy| remedy.code).collect();
        let remedy = merge(remedies.to_vec())?;
        let candidate =
            Candidate { name, codes, changes: remedy.changes.clone(), ratios: Vec::new(), corners: Vec::new() };
        Some(Self { remedy, candidate, is_planned })
    }

    /// The experiment with the candidate's changes.
    pub(crate) fn on(&self, mut experiment: Experiment) -> Experiment {
        self.candidate.changes.iter().for_each(|change| apply(&mut experiment, change));
        experiment
    }

    /// The least gain over all corners, or else that of the last round.
    fn worst(&self) -> f64 {
        let corners = self.candidate.corners.iter().map(|corner| corner.ratio);
        corners.chain(self.candidate.ratios.last().copied()).fold(f64::INFINITY, f64::min)
    }
}

/// What a search left: all candidates, the best first; those that are worth it and came to the last round are at the front. None of them
/// chooses one of the `refused` congestion controls.
pub(crate) fn search(
    lab: &LabRuns<'_>,
    fit: &Fit,
    scenario: &Scenario,
    flow: &Flow,
    refused: &[String],
    observer: &mut dyn Observer,
) -> Result<Vec<Tried>, Failure> {
    let base = scenario.arms[0].experiment.clone();
    // Who sends with BBR is not told to.
    let sends_with = fit.parameters.sends_with_bbr().then(|| "bbr".to_owned());
    let refused: Vec<String> = refused.iter().cloned().chain(sends_with).collect();
    let mut live = candidates(lab, fit, plan_without(&refused), flow, &base, observer)?;
    let mut out: Vec<Tried> = Vec::new();
    for (round, seeds) in ROUND_SEEDS.into_iter().enumerate() {
        if live.is_empty() {
            break;
        }
        let shortened = if round == 0 { shorter(base.clone(), 0.5) } else { base.clone() };
        let title = format!("search, round {}", round + 1);
        let report = compare(lab, &title, &shortened, &live, seeds, observer)?;
        for (at, tried) in live.iter_mut().enumerate() {
            tried.candidate.ratios.push(ratio(&report.arms, &shortened.workload, 0, at + 1).unwrap_or_default());
        }
        live.sort_by(|a, b| last(b).total_cmp(&last(a)));
        let keep = if round == 0 { live.len().div_ceil(2).max(FINALISTS) } else { FINALISTS };
        let (mut kept, mut gone): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        for (at, tried) in live.into_iter().enumerate() {
            let stays = (at < keep && last(&tried) >= WORTH) || tried.is_planned;
            if stays { kept.push(tried) } else { gone.push(tried) }
        }
        live = kept;
        out.splice(0..0, gone);
    }
    corners(lab, fit, &mut live, observer)?;
    live.sort_by(|a, b| b.worst().total_cmp(&a.worst()));
    let alike = live.iter().take_while(|tried| tried.worst() >= live[0].worst() * (1.0 - ALIKE)).count();
    live[..alike].sort_by_key(|tried| tried.candidate.changes.len());
    live.extend(out);
    Ok(live)
}

/// The ratio of the last round a candidate was in.
fn last(tried: &Tried) -> f64 {
    tried.candidate.ratios.last().copied().unwrap_or_default()
}

/// Runs nothing changed, and every candidate, on paired seeds.
fn compare(
    lab: &LabRuns<'_>,
    title: &str,
    base: &Experiment,
    candidates: &[Tried],
    seeds: u32,
    observer: &mut dyn Observer,
) -> Result<LabReport, Failure> {
    let mut arms = vec![Arm::new(AS_FOUND, base.clone())];
    arms.extend(candidates.iter().map(|tried| Arm::new(tried.candidate.name.clone(), tried.on(base.clone()))));
    lab.report(title, &arms, seeds, observer)
}

/// The experiment for a part of its time; a transfer with a size in bytes stays whole.
fn shorter(mut experiment: Experiment, part: f64) -> Experiment {
    if let Workload::Stream(Stream { amount: thalweg_model::Amount::Seconds(seconds), .. }) = &mut experiment.workload {
        *seconds = Span::from_secs_f64(seconds.as_secs_f64() * part);
    }
    experiment
}

/// What the diagnosis allows, what the diagnoses after it allow on top, and pairs.
fn candidates(
    lab: &LabRuns<'_>,
    fit: &Fit,
    plan: impl Fn(&Flow) -> Vec<Remedy>,
    flow: &Flow,
    base: &Experiment,
    observer: &mut dyn Observer,
) -> Result<Vec<Tried>, Failure> {
    let plans = plan(flow);
    let mut found: Vec<Tried> = Vec::new();
    let mut add = |tried: Option<Tried>| {
        if let Some(tried) = tried
            && !found.iter().any(|other| other.candidate.changes == tried.candidate.changes)
        {
            found.push(tried);
        }
    };
    let mut chain: Vec<Remedy> = plans.first().cloned().into_iter().collect();
    while !chain.is_empty() {
        let tried = Tried::new(name(&chain), &chain, chain.len() == 1);
        let next = tried.as_ref().map(|tried| Arm::new(name(&chain), tried.on(base.clone())));
        add(tried);
        let Some(arm) = next.filter(|_| chain.len() < CHAIN) else { break };
        let end = capture_at(fit.parameters.tap);
        let captured = lab.captured("search: what limits it then", &[arm], 1, end, observer)?;
        let Some((after, _)) = captured.into_iter().flatten().next() else { break };
        let known: Vec<Change> = chain.iter().flat_map(|remedy| remedy.changes.clone()).collect();
        let further =
            plan(&after).into_iter().find(|remedy| remedy.changes.iter().any(|change| !known.contains(change)));
        let Some(further) = further else { break };
        chain.push(further);
    }
    if fit.parameters.sends_with_bbr() || chain.iter().any(|remedy| congestion_control(&remedy.changes).is_some()) {
        // With another congestion control more may be in flight than the buffers hold that were enough so far, and BBR's flight is more where it repairs.
        let roomy: Vec<Remedy> = chain.iter().cloned().chain([room(&fit.parameters)]).collect();
        add(Tried::new(name(&roomy), &roomy, false));
    }
    for one in plans.iter().skip(1).take(OTHERS) {
        add(Tried::new(name(std::slice::from_ref(one)), std::slice::from_ref(one), false));
    }
    let pairs =
        plans.iter().enumerate().flat_map(|(at, a)| plans[at + 1..].iter().map(move |b| [a.clone(), b.clone()]));
    for pair in pairs.filter(|[a, b]| a.code != b.code && !conflict(a, b)).take(OTHERS) {
        add(Tried::new(name(&pair), &pair, false));
    }
    number(&mut found);
    Ok(found)
}

/// Whether two remedies set one thing to two values.
fn conflict(a: &Remedy, b: &Remedy) -> bool {
    a.changes.iter().any(|one| b.changes.iter().any(|other| one.is_of_same(other) && one.to != other.to))
}

/// Names that are taken get a number.
fn number(found: &mut [Tried]) {
    for at in 1..found.len() {
        let taken = found[..at].iter().filter(|other| other.candidate.name == found[at].candidate.name).count();
        if taken > 0 {
            found[at].candidate.name = format!("{} ({})", found[at].candidate.name, taken + 1);
        }
    }
}

/// Every remedy with changes for a connection's verdict and findings; the hosts' settings are not known.
pub(crate) fn plans(flow: &Flow) -> Vec<Remedy> {
    let settings = SettingsReport::default();
    let facts = Facts::of_flow(flow, None, &settings);
    let codes: Vec<Code> =
        std::iter::once(flow.verdict.code()).chain(flow.findings.iter().map(Finding::code)).collect();
    let mut plans: Vec<Remedy> = Vec::new();
    for remedy in codes.into_iter().flat_map(|code| thalweg_tune::plan(code, &facts)) {
        if !remedy.changes.is_empty() && !plans.iter().any(|other| other.changes == remedy.changes) {
            plans.push(remedy);
        }
    }
    plans
}

/// [`plans`] without those that choose one of the `refused` congestion controls.
fn plan_without(refused: &[String]) -> impl Fn(&Flow) -> Vec<Remedy> {
    let is_refused =
        |one: &Remedy| congestion_control(&one.changes).is_some_and(|one| refused.iter().any(|other| other == one));
    move |flow| plans(flow).into_iter().filter(|one| !is_refused(one)).collect()
}

/// Buffers of both hosts for twice what the path holds: BBR keeps that much in flight.
fn room(model: &Parameters) -> Remedy {
    Remedy {
        code: Code::SendBuffer,
        reason: "Let the buffers of both hosts hold two bandwidth-delay products, which BBR keeps in flight."
            .to_owned(),
        changes: model.buffers_for(model.rate_bps * 2.0),
        commands: Vec::new(),
        kernels: None,
        applicability: Applicability::Safe,
        wont_help: "Connections whose programs set SO_RCVBUF or SO_SNDBUF, and those already open.".to_owned(),
        notes: Vec::new(),
    }
}

/// Runs the candidates where one parameter of the path is larger or smaller.
fn corners(lab: &LabRuns<'_>, fit: &Fit, live: &mut [Tried], observer: &mut dyn Observer) -> Result<(), Failure> {
    if live.iter().all(|tried| last(tried) < WORTH) {
        return Ok(());
    }
    for (parameter, factor, parameters) in corner_paths(&fit.parameters) {
        let corner = parameters.scenario("corner")?;
        let experiment = shorter(corner.arms[0].experiment.clone(), 0.5);
        let title = format!("{parameter} × {factor}");
        let report = compare(lab, &title, &experiment, live, CORNER_SEEDS, observer)?;
        for (at, tried) in live.iter_mut().enumerate() {
            let ratio = ratio(&report.arms, &experiment.workload, 0, at + 1).unwrap_or_default();
            tried.candidate.corners.push(Corner { parameter: parameter.to_owned(), factor, ratio });
        }
    }
    Ok(())
}

/// The fitted path with one parameter changed.
fn corner_paths(fitted: &Parameters) -> Vec<(&'static str, f64, Parameters)> {
    let mut all = Vec::new();
    for factor in [1.0 - CORNER, 1.0 + CORNER] {
        let with = |change: &dyn Fn(&mut Parameters)| {
            let mut parameters = fitted.clone();
            change(&mut parameters);
            parameters
        };
        all.push((
            "rate",
            factor,
            with(&|path| {
                path.rate_bps *= factor;
                path.policer = path.policer.map(|(rate, burst)| (rate * factor, burst));
            }),
        ));
        all.push(("rtt", factor, with(&|path| path.rtt_s *= factor)));
        all.push(("queue", factor, with(&|path| path.queue_bytes *= factor)));
        if fitted.loss > 0.0 {
            all.push(("loss", factor, with(&|path| path.loss *= factor)));
        }
    }
    all
}

/// Seconds at most that are reproduced, and payload at most at the path's rate: what a run may cost.
const SECONDS: f64 = 10.0;
const PAYLOAD: f64 = 600e6;
/// Seconds at most where the first ones are limited by something else than the whole.
const SECONDS_MOST: f64 = 60.0;
/// Seconds at least, and round trips at least: below that slow start is most of it.
const SECONDS_LEAST: f64 = 2.5;
const ROUND_TRIPS: f64 = 60.0;

/// How much of a connection is reproduced: all of it, or its first seconds.
pub(crate) fn amount(flow: &Flow) -> Amount {
    first(flow, SECONDS)
}

/// Twice as much, where that is not too long.
pub(crate) fn longer(flow: &Flow, amount: Amount) -> Option<Amount> {
    let Amount::Seconds(seconds) = amount else { return None };
    let longer = first(flow, (seconds * 2.0).min(SECONDS_MOST));
    (longer != amount).then_some(longer)
}

fn first(flow: &Flow, seconds: f64) -> Amount {
    let rate = flow.measured.capacity_bps.unwrap_or(flow.goodput_bps * 4.0).max(1.0);
    let rtt = flow.rtt_min_ms.unwrap_or(1.0) / 1e3;
    let most = seconds.min(PAYLOAD * 8.0 / rate).max(SECONDS_LEAST).max(rtt * ROUND_TRIPS);
    let bytes = flow.bytes_up.max(flow.bytes_down);
    if flow.phase_s <= most { Amount::Bytes(bytes) } else { Amount::Seconds((most * 10.0).round() / 10.0) }
}
