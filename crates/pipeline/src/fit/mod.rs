//! Fits a path and its hosts to a captured connection: a model is run in the lab, its captures are measured as the user's was, and its
//! parameters follow the difference.

mod calibrate;
pub(crate) mod check;
pub(crate) mod observed;
pub(crate) mod parameters;
mod refine;

use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use check::{checks, same_verdict};
use observed::Observed;
use parameters::{Amount, LossModel, OVERRUN_PACKETS, Parameters, capture_at};
use thalweg_model::{Arm, Code, FittedModel, Flow, LossClass, Series};

/// Runs that a model is held against, each with another seed.
pub(crate) const SEEDS: u32 = 16;
/// Runs that it is held against once more where chance alone may put a few of its figures outside of those.
const MORE_SEEDS: u32 = 48;
/// Figures that chance may put there.
const FEW_FIGURES: usize = 2;
/// Runs of a step of calibration.
const STEP_SEEDS: u32 = 3;
/// A gain is in proportion to what was delivered before: a model that delivers so much more or less is looked at again.
const OFF: f64 = 0.1;
/// Unless that is less than this part of its runs' range: chance makes one run differ so from another.
const OFF_BY_CHANCE: f64 = 0.2;
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
/// may belong to it. If none is, or it delivers more or less than the capture, what no single figure decides is searched for.
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
        tried.push(calibrated_and_held(lab, start, &capture, observer)?);
    }
    if !tried.iter().any(|fit| fit.model.accepted) {
        by_bbr(lab, flow, amount, &capture, &mut tried, observer)?;
    }
    if !tried.iter().any(|fit| fit.model.accepted) {
        if let Some(bounded) = bounded(flow, amount, &tried) {
            tried.insert(0, calibrated_and_held(lab, bounded, &capture, observer)?);
        }
        search_further(lab, &capture, &mut tried, observer)?;
        return Ok(tried);
    }
    for one in tried.iter_mut().filter(|fit| fit.model.accepted && is_off(&fit.model)) {
        let refined = refined(lab, &one.parameters, &capture, observer)?;
        if refined.model.accepted {
            *one = refined;
        }
    }
    Ok(tried)
}

/// The models by BBR, until one is accepted, where the capture does not show the sender's congestion control and none is accepted with the one assumed.
fn by_bbr(
    lab: &LabRuns<'_>,
    flow: &Flow,
    amount: Amount,
    capture: &Observed,
    tried: &mut Vec<Fit>,
    observer: &mut dyn Observer,
) -> Result<(), Failure> {
    for model in models(flow) {
        let Some(start) = Parameters::of(flow, model, amount).by_bbr(flow) else { return Ok(()) };
        if !has_verdict(lab, &start, capture, observer)? {
            continue;
        }
        let fit = calibrated_and_held(lab, start, capture, observer)?;
        let is_accepted = fit.model.accepted;
        tried.push(fit);
        if is_accepted {
            break;
        }
    }
    Ok(())
}

/// A queue behind a send buffer that the capture shows by nothing but what it never exceeded, where a queue alone would let through more.
fn bounded(flow: &Flow, amount: Amount, tried: &[Fit]) -> Option<Parameters> {
    let lets_more = |fit: &&Fit| {
        let goodput = fit.model.checks.iter().find(|check| check.figure == check::GOODPUT);
        fit.parameters.loss_model == LossModel::Queue && goodput.is_some_and(|check| check.capture < check.least)
    };
    let queue = tried.iter().find(lets_more).filter(|fit| !fit.parameters.is_bounded())?;
    let mut model = Parameters::of(flow, queue.parameters.loss_model, amount);
    model.bound_flight(flow);
    Some(model)
}

/// Replaces models by what a search around their parameters finds, the likeliest first, until one is accepted. One that never has the capture's verdict
/// is not worth it.
fn search_further(
    lab: &LabRuns<'_>,
    capture: &Observed,
    tried: &mut [Fit],
    observer: &mut dyn Observer,
) -> Result<(), Failure> {
    for one in tried.iter_mut().filter(|fit| fit.model.same_verdict > 0.0) {
        *one = refined(lab, &one.parameters, capture, observer)?;
        if one.model.accepted {
            return Ok(());
        }
    }
    Ok(())
}

/// The model after a search around these parameters, held against more runs where chance may be what sets a few of the capture's figures apart.
fn refined(
    lab: &LabRuns<'_>,
    around: &Parameters,
    capture: &Observed,
    observer: &mut dyn Observer,
) -> Result<Fit, Failure> {
    let parameters = refine::refined(lab, around, capture, observer)?;
    let fit = held_against(lab, parameters, SEEDS, capture, observer)?;
    let outside = fit.model.checks.iter().filter(|check| !check.inside).count();
    // Chance has no part in a policer's losses, whatever the model.
    if capture.code != Code::Policer && (1..=FEW_FIGURES).contains(&outside) {
        return held_against(lab, fit.parameters, MORE_SEEDS, capture, observer);
    }
    Ok(fit)
}

/// Whether an accepted model delivers so much more or less than the capture, in the middle, that its gain is another one.
fn is_off(model: &FittedModel) -> bool {
    let goodput = model.checks.iter().find(|check| check.figure == check::GOODPUT);
    goodput.is_some_and(|check| {
        let chance = (check.most / check.least.max(1.0)).ln() * OFF_BY_CHANCE;
        (check.median / check.capture).ln().abs() > chance.max(OFF)
    })
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

/// Calibrates a model and holds the capture against it.
fn calibrated_and_held(
    lab: &LabRuns<'_>,
    start: Parameters,
    capture: &Observed,
    observer: &mut dyn Observer,
) -> Result<Fit, Failure> {
    let calibrated = calibrated(lab, start, capture, observer)?;
    held_against(lab, calibrated, SEEDS, capture, observer)
}

/// Holds the capture against a model's runs.
fn held_against(
    lab: &LabRuns<'_>,
    parameters: Parameters,
    seeds: u32,
    capture: &Observed,
    observer: &mut dyn Observer,
) -> Result<Fit, Failure> {
    let runs = runs(lab, &spread(&parameters, seeds)?, seeds, observer)?;
    let checks = checks(capture, &runs);
    let same_verdict = same_verdict(capture, &runs);
    let accepted =
        same_verdict >= FittedModel::SAME_VERDICT && !runs.is_empty() && checks.iter().all(|check| check.inside);
    let model = FittedModel {
        name: parameters.name(),
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

/// The models whose runs the capture is held against. Where chance has a part it is one, run with this many seeds; else every seed gives the same run,
/// and each parameter is off by what it is known to: one at a time, and, for more runs than these, all at once.
fn spread(parameters: &Parameters, seeds: u32) -> Result<Vec<Parameters>, Failure> {
    let mut all = vec![parameters.clone()];
    if parameters.is_of_chance()? {
        return Ok(all);
    }
    let off_by = |offs: [f64; 4]| {
        let mut other = parameters.clone();
        Parameters::MEASURED.into_iter().zip(offs).for_each(|(change, off)| change(&mut other, 1.0 + off * RESOLUTION));
        other
    };
    for off in [-1.0, -0.5, 0.5, 1.0] {
        all.extend((0..4).map(|place| off_by(std::array::from_fn(|at| if at == place { off } else { 0.0 }))));
    }
    // Points that lie evenly in all four dimensions: Halton, Numerische Mathematik 2, 1960.
    all.extend((all.len() as u32..seeds).map(|point| off_by([2, 3, 5, 7].map(|base| halton(point, base) * 2.0 - 1.0))));
    Ok(all)
}

/// The digits of a number, mirrored at the point: evenly between 0 and 1.
fn halton(mut number: u32, base: u32) -> f64 {
    let (mut value, mut digit) = (0.0, 1.0);
    while number > 0 {
        digit /= f64::from(base);
        value += digit * f64::from(number % base);
        number /= base;
    }
    value
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
