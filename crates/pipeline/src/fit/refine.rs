//! What no single figure of a capture decides: a search for the parameters whose runs are nearest to it.
//!
//! The longest round trip errs by a delayed acknowledgement, and few losses tell little of how often packets are lost; what the connection delivered
//! follows both.

use super::calibrate::distance;
use super::observed::Observed;
use super::parameters::Parameters;
use super::runs;
use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use thalweg_model::Origin;

/// Runs of each set of parameters: the same seeds for all, so that chance favours none.
const REFINE_SEEDS: u32 = 4;
/// The part by which a parameter is changed at first; half of that where nothing came nearer.
const FIRST_STEP: f64 = 0.2;
/// Rounds, in each of which every parameter is made smaller and larger.
const ROUNDS: usize = 5;
/// Standard deviations that a count of independent losses is within, 95 of 100 times.
const DEVIATIONS: f64 = 1.96;

/// A parameter, multiplied.
type Change = fn(&mut Parameters, f64);

/// The parameters around these whose runs are nearest to the capture.
pub(super) fn refined(
    lab: &LabRuns<'_>,
    start: &Parameters,
    capture: &Observed,
    observer: &mut dyn Observer,
) -> Result<Parameters, Failure> {
    let changes = free(start);
    if changes.is_empty() {
        return Ok(start.clone());
    }
    let losses = loss_range(start, capture);
    let mut best = start.clone();
    let mut nearest = f64::INFINITY;
    let mut step = FIRST_STEP;
    for round in 0..ROUNDS {
        let around = changes.iter().flat_map(|change| [1.0 - step, 1.0 / (1.0 - step)].map(|factor| (change, factor)));
        // How near the best is stays known: the seeds are the same.
        let mut all: Vec<Parameters> = if round == 0 { vec![best.clone()] } else { Vec::new() };
        all.extend(around.map(|(change, factor)| {
            let mut other = best.clone();
            change(&mut other, factor);
            other.loss = other.loss.clamp(losses.0, losses.1);
            other
        }));
        let found = runs(lab, &all, REFINE_SEEDS, observer)?;
        let each = found.len() / all.len();
        if each == 0 || found.len() % all.len() != 0 {
            break;
        }
        let distances = found.chunks(each).map(|runs| distance(capture, runs));
        let (place, least) = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, f64::INFINITY));
        if least < nearest && (round > 0 || place > 0) {
            best = all.swap_remove(place);
        } else {
            step /= 2.0;
        }
        nearest = nearest.min(least);
        if nearest < super::NEAR {
            break;
        }
    }
    Ok(best)
}

/// What the model leaves to be searched for: the queue or the bucket, the part that is lost, and what a host limits itself to.
fn free(model: &Parameters) -> Vec<Change> {
    let [_, _, queue, _] = Parameters::MEASURED;
    let mut all: Vec<Change> = Vec::new();
    if model.queue_origin != Origin::Assumed || model.policer.is_some() {
        all.push(queue);
    }
    if model.loss_model.is_random() {
        all.push(|model, factor| model.loss *= factor);
    }
    if model.is_bounded() {
        all.push(Parameters::multiply_bounds);
    }
    all
}

/// The parts of packets lost that the capture's number of episodes allows.
fn loss_range(model: &Parameters, capture: &Observed) -> (f64, f64) {
    if !model.loss_model.is_random() {
        return (model.loss, model.loss);
    }
    let off = DEVIATIONS / capture.loss_episodes.max(1.0).sqrt();
    (model.loss / (1.0 + off), model.loss * (1.0 + off))
}

#[cfg(test)]
mod tests {
    use super::super::parameters::LossModel;
    use super::super::parameters::tests::parameters;
    use super::*;

    #[test]
    fn what_a_model_assumes_is_not_searched_for() {
        let count = |model, change: fn(&mut Parameters)| {
            let mut parameters = parameters(model);
            (parameters.clamp, parameters.pacing_bps, parameters.queue_origin) = (None, None, Origin::Assumed);
            change(&mut parameters);
            free(&parameters).len()
        };
        assert_eq!(count(LossModel::Queue, |_| ()), 0);
        assert_eq!(count(LossModel::Queue, |model| model.queue_origin = Origin::Measured), 1);
        assert_eq!(count(LossModel::Policer, |_| ()), 1, "the bucket");
        assert_eq!(count(LossModel::Random, |model| model.send.origin = Origin::Calibrated), 2);
    }

    #[test]
    fn few_losses_leave_more_open() {
        let range = |episodes| {
            let mut capture = super::super::check::tests::seen(10e6, episodes);
            capture.data_packets = 1e4;
            let (least, most) = loss_range(&parameters(LossModel::Random), &capture);
            most / least
        };
        assert!((range(4.0) / 1.98f64.powi(2) - 1.0).abs() < 1e-9, "{}", range(4.0));
        assert!(range(400.0) < 1.21);
    }
}
