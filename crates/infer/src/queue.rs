//! Whether a queue overflowed where packets were lost, or they were lost without one.

use crate::recovery::{Kind, Loss};
use crate::rounds::{QUEUE_FLOOR_NS, QUEUE_PART, Rounds};
use crate::sender::Sender;

/// A queue that overflows is as long as it ever was, or nearly: its length varies by what arrives within a round trip. At 80 ms
/// with 20 packets of queue and at 40 ms with 60, the peaks before overflows are within 3 % of each other.
const AS_EVER: f64 = 0.8;
/// Against a round trip this part of it is too short to tell a queue from what hosts add.
const SMALLEST_PART: f64 = 1.0 / 64.0;
/// The peaks of three quarters of the quiet round trips stay below this part of the one before a loss: the path's delay jitters
/// otherwise, at losses and elsewhere alike.
const QUIET_PART: f64 = 0.6;
const QUIET: f64 = 0.75;
/// Quiet round trips enough to judge jitter by.
const ENOUGH_QUIET: usize = 4;
/// A window that doubles each round trip overruns a queue by up to its own half, at twice the path's rate (RFC 5681 §3.1);
/// this part of it must be lost, and so many packets, for that to be told from chance.
const OVERRUN_PART: f64 = 1.0 / 16.0;
const OVERRUN_PACKETS: u64 = 8;
/// Just before an overflow the smoothed round trip is above its mean by this much; with jitter it is near it.
const ABOVE_MEAN: f64 = 1.1;

/// Numbers of losses without a queue before them, and with one.
pub(crate) fn judge(sender: &Sender, rounds: &Rounds<'_>, plateau: Option<f64>, trains: Option<f64>) -> (usize, usize) {
    let losses: Vec<&Loss> = sender.losses.episodes.iter().filter(|loss| loss.kind == Kind::Fast).collect();
    let rtt = &sender.rtt;
    let (Some(min), Some(high), Some(mean)) = (rtt.min.map(|min| min as f64), rtt.quantile(0.95), rtt.mean()) else {
        return (losses.len(), 0);
    };
    if losses.is_empty() {
        return (0, 0);
    }
    let quiet = rounds.rtt_peaks_away_from_losses();
    let quantile = |part: f64| quiet.get((part * quiet.len() as f64) as usize).map_or(0.0, |peak| peak - min);
    let mut peaks: Vec<f64> = losses.iter().map(|loss| rounds.rtt_peak(loss.at) - min).filter(|p| *p >= 0.0).collect();
    peaks.sort_unstable_by(f64::total_cmp);
    let highest = quantile(0.95).max(peaks.get(peaks.len() * 3 / 4).copied().unwrap_or(0.0));
    let congested = losses
        .iter()
        .filter(|loss| {
            let over = loss.rtt_before - min;
            // At least half of what the queue ever was. With random delays and no queue, the smoothed round trip stays near
            // the middle of its range.
            let standing = over >= (min * QUEUE_PART / 2.0).max(QUEUE_FLOOR_NS)
                && over >= 0.5 * (high - min)
                && over >= ABOVE_MEAN * (mean - min);
            // The smoothed round trip lags behind a queue that is short, or filled by one burst.
            let peak = rounds.rtt_peak(loss.at) - min;
            let full = peak >= (min * SMALLEST_PART).max(QUEUE_FLOOR_NS)
                && peak >= AS_EVER * highest
                && quiet.len() >= ENOUGH_QUIET
                && quantile(QUIET) <= QUIET_PART * peak;
            let rate = rounds.rate_at(loss.at);
            let at_rate = plateau
                .zip(trains)
                .is_none_or(|(plateau, trains)| rate >= 0.5 * plateau.max(trains.min(plateau * 1.5)));
            let lost = (loss.packets * sender.mss) as f64;
            let overran = loss.packets >= OVERRUN_PACKETS && lost >= OVERRUN_PART * rate * min / 1e9;
            (standing || full) && at_rate || full && overran
        })
        .count();
    (losses.len() - congested, congested)
}

/// Mean of the largest round trips just before losses, in nanoseconds; `None` without such samples.
pub(crate) fn mean_peak(sender: &Sender, rounds: &Rounds<'_>) -> Option<f64> {
    let losses = sender.losses.episodes.iter().filter(|loss| loss.kind == Kind::Fast);
    let peaks: Vec<f64> = losses.map(|loss| rounds.rtt_peak(loss.at)).filter(|peak| *peak > 0.0).collect();
    (!peaks.is_empty()).then(|| peaks.iter().sum::<f64>() / peaks.len() as f64)
}
