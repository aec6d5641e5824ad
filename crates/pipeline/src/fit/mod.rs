//! Fits a path and its hosts to a captured connection: a model is run in the lab, its captures are measured as the user's was, and its
//! parameters follow the difference.

mod calibrate;
pub(crate) mod check;
pub(crate) mod observed;
pub(crate) mod parameters;

use crate::chance::meets_chance;
use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use check::{checks, same_verdict};
use observed::Observed;
use parameters::{Amount, LossModel, OVERRUN_PACKETS, Parameters, capture_at};
use thalweg_model::{Arm, Code, FittedModel, Flow, LossClass, Series};

/// Runs that a model is held against, each with another seed.
pub(crate) const SEEDS: u32 = 16;
/// Runs of a step of calibration.
const STEP_SEEDS: u32 = 3;
/// Steps of calibration.
const STEPS: usize = 6;
/// What a parameter is known to: rates and round trips are counted in classes of a 32nd (`LogHistogram<5, _>`).
const RESOLUTION: f64 = 1.0 / 32.0;
/// Calibration ends where the runs are as near as this.
const NEAR: f64 = 5e-4;

/// A fitted model.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    pub(crate) parameters: Parameters,
    pub(crate) model: FittedModel,
}

/// Fits models, the likeliest first, until one is accepted; where losses decide what helps, also one of each other origin of losses, since another remedy
/// may belong to it.
pub(crate) fn fit(
    lab: &LabRuns<'_>,
    flow: &Flow,
    series: &Series,
    amount: Amount,
    observer: &mut dyn Observer,
) -> Result<Vec<Fit>, Failure> {
    let capture = Observed::of(flow, series);
    let mut tried: Vec<Fit> = Vec::new();
    for model in models(flow) {
        let start = Parameters::of(flow, model, amount);
        let mut accepted = tried.iter().filter(|fit| fit.model.accepted).peekable();
        if accepted.peek().is_some() {
            let has_own_remedy =
                decides(flow.verdict.code()) && accepted.all(|fit| fit.parameters.loss_model.has_other_origin(model));
            if !has_own_remedy || !has_verdict(lab, &start, &capture, observer)? {
                continue;
            }
        }
        tried.push(held_against(lab, start, &capture, observer)?);
    }
    Ok(tried)
}

/// Whether the origin of the losses decides what helps.
const fn decides(code: Code) -> bool {
    matches!(code, Code::Policer | Code::RandomLoss | Code::CongestionLoss)
}

/// Whether a run of a model, as the capture alone gives it, has the capture's verdict: what never has is not worth calibrating.
fn has_verdict(
    lab: &LabRuns<'_>,
    start: &Parameters,
    capture: &Observed,
    observer: &mut dyn Observer,
) -> Result<bool, Failure> {
    Ok(same_verdict(capture, &runs(lab, std::slice::from_ref(start), STEP_SEEDS, observer)?) > 0.0)
}

/// Calibrates a model, and holds the capture against its runs.
fn held_against(
    lab: &LabRuns<'_>,
    start: Parameters,
    capture: &Observed,
    observer: &mut dyn Observer,
) -> Result<Fit, Failure> {
    let parameters = calibrated(lab, start, capture, observer)?;
    let runs = runs(lab, &spread(&parameters)?, SEEDS, observer)?;
    let checks = checks(capture, &runs);
    let same_verdict = same_verdict(capture, &runs);
    let accepted =
        same_verdict >= FittedModel::SAME_VERDICT && !runs.is_empty() && checks.iter().all(|check| check.inside);
    let model = FittedModel {
        name: parameters.loss_model.name().to_owned(),
        parameters: parameters.list(),
        seeds: runs.len() as u32,
        same_verdict,
        checks,
        accepted,
    };
    Ok(Fit { parameters, model })
}

/// The models of a connection's losses, the likeliest first.
fn models(flow: &Flow) -> Vec<LossModel> {
    if flow.policer.is_some() {
        return vec![LossModel::Policer, LossModel::Queue, LossModel::Random];
    }
    let Some(losses) = flow.facts.losses.as_deref() else { return vec![LossModel::Queue] };
    // The model with fewest parameters comes first where it can be the true one: a slow start that overran the queue loses many at once, and a
    // few losses of a connection that something else limits may be all of that kind.
    let overran = losses.packets_max >= OVERRUN_PACKETS || flow.verdict.code() != Code::RandomLoss;
    match losses.class {
        Some(LossClass::Policer) => vec![LossModel::Policer, LossModel::Queue],
        Some(LossClass::Random | LossClass::Mixed) | None if !overran => vec![LossModel::Random, LossModel::Bursts],
        _ => vec![LossModel::Queue, LossModel::Random, LossModel::Bursts],
    }
}

/// The parameters of the step whose runs were nearest to the capture.
fn calibrated(
    lab: &LabRuns<'_>,
    start: Parameters,
    capture: &Observed,
    observer: &mut dyn Observer,
) -> Result<Parameters, Failure> {
    let mut parameters = start;
    let mut best = (f64::INFINITY, parameters.clone());
    for _ in 0..STEPS {
        let runs = runs(lab, std::slice::from_ref(&parameters), STEP_SEEDS, observer)?;
        let distance = calibrate::distance(capture, &runs);
        if distance < best.0 {
            best = (distance, parameters.clone());
        }
        if distance < NEAR || runs.is_empty() {
            break;
        }
        calibrate::step(&mut parameters, capture, &runs);
    }
    Ok(best.1)
}

/// The models whose runs the capture is held against. Where chance has a part it is one, run with many seeds; else every seed gives the same run,
/// and each parameter is off by what it is known to.
fn spread(parameters: &Parameters) -> Result<Vec<Parameters>, Failure> {
    let mut all = vec![parameters.clone()];
    if !meets_chance(&parameters.scenario("fitted")?.arms[0].experiment) {
        for off in [-RESOLUTION, -RESOLUTION / 2.0, RESOLUTION / 2.0, RESOLUTION] {
            all.extend(Parameters::MEASURED.map(|change| {
                let mut other = parameters.clone();
                change(&mut other, 1.0 + off);
                other
            }));
        }
    }
    Ok(all)
}

fn runs(
    lab: &LabRuns<'_>,
    models: &[Parameters],
    seeds: u32,
    observer: &mut dyn Observer,
) -> Result<Vec<Observed>, Failure> {
    let arm = |(at, model): (usize, &Parameters)| {
        Ok(Arm::new(at.to_string(), model.scenario("fitted")?.arms[0].experiment.clone()))
    };
    let arms: Vec<Arm> = models.iter().enumerate().map(arm).collect::<Result<_, Failure>>()?;
    let title = format!("fitting: {}", models[0].loss_model.name());
    let captured = lab.captured(&title, &arms, seeds, capture_at(models[0].tap), observer)?;
    Ok(captured.iter().flatten().map(|(flow, series)| Observed::of(flow, series)).collect())
}
