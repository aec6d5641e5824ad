//! Which way packets wait: of what makes round trips longer, the part that acknowledgements spend on theirs.

use crate::estimate::busy_bottleneck::QUEUED_RTT_RATIO;
use crate::estimate::sliding_min;
use crate::estimate::view::View;
use crate::tcp::sender::Sender;

/// By this part the clock of timestamps may seem to differ from 1 kHz: of a few round trips it is known no better.
const MAX_CLOCK_ERROR: f64 = 1e-2;
/// Views with a round trip, at least.
const MIN_VIEWS: usize = 16;
/// The part of what round trips vary by that is on the way of acknowledgements where they wait: 0.95 and more in our lab, 0.02 and less where
/// data does, and 0.3 to 0.7 where both ways jitter.
const MIN_ACK_PART: f64 = 0.85;

/// What the clocks tell of a connection some of whose round trips were long.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueDirection {
    /// Of what round trips vary by, the part on the way of acknowledgements.
    pub(super) of_acknowledgements: f64,
    /// The mean time that these wait, in nanoseconds, where that is what makes round trips long.
    pub(super) wait: Option<f64>,
}

/// Tells the ways apart; `None` where no round trip was long, or the clocks do not tell.
///
/// Of each round trip without losses the least counts, and the least that a packet was late: what varies from packet to packet is no queue.
pub(super) fn tell(views: &[View], sender: &Sender) -> Option<QueueDirection> {
    let rtt = &sender.rtt;
    let min = rtt.min.map(|min| rtt.handshake.map_or(min, |handshake| handshake.min(min)))? as f64;
    // Of most connections none ever waited.
    let mean = rtt.mean()?;
    if sender.remote.one_way_delay.unstamped || (rtt.max as f64) < QUEUED_RTT_RATIO * min {
        return None;
    }
    let rtts = sliding_min::least(views, |slice| slice.prompt.map(|(rtt, _)| rtt as f64));
    let lates = sliding_min::least(views, |slice| slice.prompt.map(|(_, late)| late as f64));
    let timed =
        views.iter().zip(rtts.iter().zip(&lates)).filter(|(view, _)| view.slice.prompt.is_some() && !view.lossy);
    // Time, round trip, lateness.
    let points: Vec<[f64; 3]> =
        timed.filter_map(|(view, (rtt, late))| Some([view.at as f64, (*rtt)?, (*late)?])).collect();
    if points.len() < MIN_VIEWS {
        return None;
    }
    let late = by_round_trip(&points)?;
    let of_acknowledgements = if sender.is_exact() { late } else { 1.0 - late };
    // The direction of a queue that always stands is not known: there must be one that varies.
    let least = points.iter().map(|point| point[1]).fold(f64::INFINITY, f64::min);
    let usual = points.iter().map(|point| point[1]).sum::<f64>() / points.len() as f64;
    let jitters = sliding_min::MIN_RISE_JITTERS * sliding_min::varies(views, &rtts);
    let long = usual >= (QUEUED_RTT_RATIO * least).max(least + jitters);
    let wait = (long && of_acknowledgements >= MIN_ACK_PART).then_some(of_acknowledgements * (mean - min));
    Some(QueueDirection { of_acknowledgements, wait })
}

/// How much later packets come for each nanosecond that the round trip is longer by; `None` where the clocks do not tell.
fn by_round_trip(points: &[[f64; 3]]) -> Option<f64> {
    let means = [0, 1, 2].map(|of| points.iter().map(|point| point[of]).sum::<f64>() / points.len() as f64);
    let sum =
        |a: usize, b: usize| points.iter().map(|point| (point[a] - means[a]) * (point[b] - means[b])).sum::<f64>();
    // Lateness by round trip and by time, along which the clocks drift apart.
    let (tt, rr, tr, tl, rl) = (sum(0, 0), sum(1, 1), sum(0, 1), sum(0, 2), sum(1, 2));
    let determinant = tt * rr - tr * tr;
    if determinant <= 1e-6 * tt * rr {
        return None;
    }
    let part = (rl * tt - tl * tr) / determinant;
    let drift = (tl * rr - rl * tr) / determinant;
    (drift.abs() <= MAX_CLOCK_ERROR && part.is_finite()).then_some(part.clamp(0.0, 1.0))
}
