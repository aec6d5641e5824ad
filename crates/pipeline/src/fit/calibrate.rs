//! One step of calibration: each parameter follows the one figure it decides.

use super::RESOLUTION;
use super::observed::{Observed, median};
use super::parameters::{LossModel, Parameters};
use thalweg_model::{Code, Origin};

/// A parameter changes by this factor at most in one step.
const STEP: f64 = 3.0;

/// How far the runs are from the capture: 0 is the same. Distances are of logarithms, so that twice and half are alike.
pub(crate) fn distance(capture: &Observed, runs: &[Observed]) -> f64 {
    let far = |value: Option<f64>, median: Option<f64>, weight: f64| match (value, median) {
        (Some(value), Some(median)) if value > 0.0 && median > 0.0 => ((median / value).ln() * weight).powi(2),
        _ => 0.0,
    };
    let ratio = |figure: &dyn Fn(&Observed) -> Option<f64>, weight| far(figure(capture), median(runs, figure), weight);
    let verdict = runs.iter().filter(|run| run.code != capture.code).count() as f64 / runs.len().max(1) as f64;
    ratio(&|seen| Some(seen.goodput_bps), 2.0)
        + ratio(&|seen| seen.shown_rate(capture.shown_by), 1.0)
        + ratio(&|seen| seen.rtt_p50_ms, 1.0)
        + ratio(&|seen| seen.rtt_p90_ms, 1.0)
        + ratio(&|seen| Some(seen.loss_episodes), 0.3)
        + ratio(&Observed::episode_packets, 0.2)
        + verdict * 0.1
}

/// Moves the parameters towards what makes the runs like the capture.
pub(crate) fn step(parameters: &mut Parameters, capture: &Observed, runs: &[Observed]) {
    let factor = |value: Option<f64>, median: Option<f64>| match (value, median) {
        (Some(value), Some(median)) if value > 0.0 && median > 0.0 => (value / median).clamp(1.0 / STEP, STEP),
        _ => 1.0,
    };
    let ratio = |figure: fn(&Observed) -> Option<f64>| factor(figure(capture), median(runs, figure));
    let difference = |figure: fn(&Observed) -> Option<f64>| Some(figure(capture)? - median(runs, figure)?);

    if let Some(more) = difference(|seen| seen.rtt_min_ms) {
        parameters.rtt_s = (parameters.rtt_s + more / 1e3).max(parameters.rtt_s / STEP);
    }
    if parameters.rate_origin != Origin::Assumed {
        let shown = |seen: &Observed| seen.shown_rate(capture.shown_by);
        parameters.rate_bps *= factor(shown(capture), median(runs, shown));
    }
    if parameters.queue_origin != Origin::Assumed {
        let waits = |seen: &Observed| seen.waits_ms(capture.code);
        // What waits in a short queue is lost in the classes of round trips; how much is lost at once follows the queue, too.
        let shown = waits(capture).is_none_or(|waits| waits > parameters.rtt_s * 1e3 * RESOLUTION);
        parameters.queue_bytes *=
            if shown { factor(waits(capture), median(runs, waits)) } else { ratio(Observed::episode_packets) };
        parameters.queue_origin = Origin::Calibrated;
    }
    if parameters.loss_model.is_random() {
        // What a queue loses is in both, so the difference is what vanishes besides.
        let (seen, had) = match parameters.loss_model {
            LossModel::Random => (
                capture.loss_episodes / capture.data_packets.max(1.0),
                median(runs, |run| Some(run.loss_episodes / run.data_packets.max(1.0))).unwrap_or_default(),
            ),
            _ => (capture.loss(), median(runs, |run| Some(run.loss())).unwrap_or_default()),
        };
        let floor = parameters.loss / STEP;
        parameters.loss = (parameters.loss + seen - had).clamp(floor, (parameters.loss * STEP).max(1e-6));
    }
    if let Some((rate, burst)) = parameters.policer {
        // A larger bucket lets a window grow further before it is empty, so more is lost at once.
        parameters.policer = Some((rate, burst * ratio(Observed::episode_packets)));
    }
    // Where a buffer is the limit the goodput is in proportion to it. Its largest window, and a flight that passed it once, are not.
    if parameters.receive.origin == Origin::Calibrated {
        let limits = capture.code == Code::ReceiveWindow;
        parameters.receive.bytes *= if limits {
            ratio(|seen| Some(seen.goodput_bps))
        } else {
            ratio(|seen| Some(seen.measured.window_max_bytes as f64))
        };
    }
    if parameters.send.origin == Origin::Calibrated {
        // Where the program waits for room, that shows the buffer. The goodput does not follow it: what a buffer of this size lets through at
        // times fills the queue.
        let shown = |seen: &Observed| seen.measured.send_buffer_bytes.map(|bytes| bytes as f64);
        let by_goodput = shown(capture).is_none() || median(runs, shown).is_none();
        parameters.send.bytes *= if by_goodput { ratio(|seen| Some(seen.goodput_bps)) } else { ratio(shown) };
    }
    parameters.clamp = parameters.clamp.map(|segments| segments * ratio(|seen| Some(seen.goodput_bps)));
    parameters.pacing_bps = parameters.pacing_bps.map(|bps| bps * ratio(|seen| Some(seen.goodput_bps)));
    if parameters.jitter_s > 0.0 {
        parameters.jitter_s *= ratio(|seen| Some((seen.rtt_p90_ms? - seen.rtt_min_ms?).max(0.01)));
    }
}
