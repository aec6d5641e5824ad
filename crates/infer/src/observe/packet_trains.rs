//! How fast the path delivers: bursts' own rate, from trains of segments.

use crate::observe::log_histogram::LogHistogram;
use crate::reset::{Reset, reset_keeping};
use std::collections::VecDeque;

/// Segments in a train: long enough to average out delayed acknowledgements and timer ticks, short enough to lie within one
/// window of a slow flow. Dovrolis et al., "Packet-dispersion techniques and a capacity-estimation methodology", IEEE/ACM ToN
/// 2004, §V: dispersion of trains of tens of packets tends to the capacity when there is no cross traffic.
pub(crate) const TRAIN_SEGMENTS: u64 = 16;

/// How many times as fast at least a quarter of the bytes is as half of them, and a tenth as a quarter, where delays that vary bunch packets up. Of
/// no transfer of 1,600 of ours without such delays are they that far apart, and a fiftieth from a tenth, while round trips vary by as much
/// as a train takes.
const MIN_BLURRED_RATIO: f64 = 1.5;
/// And a fiftieth as a tenth.
const MIN_BLURRED_TOP_RATIO: f64 = 1.25;

/// The rates of trains, by bytes.
#[derive(Debug, Default)]
pub(crate) struct PacketTrains {
    recent: VecDeque<(u64, u64)>,
    /// Bytes by the rate that they came at, in bytes per second.
    rates: LogHistogram<5, 40>,
}

impl Reset for PacketTrains {
    fn reset(&mut self) {
        reset_keeping!(self, recent);
    }
}

impl PacketTrains {
    /// Notes that `delivered` bytes in all have been delivered at `now` (nanoseconds).
    pub(crate) fn delivered(&mut self, now: u64, delivered: u64, mss: u64) {
        let train = TRAIN_SEGMENTS * mss;
        let mut start = None;
        while self.recent.len() > 1 && self.recent[1].1 + train <= delivered {
            self.recent.pop_front();
        }
        if let Some(&first) = self.recent.front()
            && first.1 + train <= delivered
        {
            start = Some(first);
        }
        let step = self.recent.back().map_or(0, |last| delivered.saturating_sub(last.1));
        // What was held and let go at one instant has no rate.
        if let Some((at, before)) = start.filter(|&(at, _)| now > at) {
            let rate = (delivered - before) as f64 / ((now - at) as f64 / 1e9);
            self.rates.add(rate as u64, step);
        }
        // Several acknowledgements at one instant count once, so that a burst released at once is measured from its start.
        if self.recent.len() < 4096 {
            if self.recent.capacity() == 0 {
                self.recent.reserve(2 * TRAIN_SEGMENTS as usize);
            }
            self.recent.push_back((now, delivered));
        }
    }

    /// The rate, in bytes per second, that a quarter of the bytes arrived at or above; `None` for less than two trains.
    ///
    /// A quarter: windows as small as one and a half trains still have that many trains without their idle gap.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.quantile(4.0).filter(|rate| *rate > 0.0)
    }

    /// The rate that half of the bytes arrived at or above, where delays that vary by `varies` nanoseconds bunch packets up: trains come at no rate
    /// more than at another then, and at the path's as little. `None` elsewhere.
    pub(crate) fn blurred(&self, mss: u64, varies: impl Fn() -> f64) -> Option<f64> {
        let [half, quarter, tenth, fastest] = [2.0, 4.0, 10.0, 50.0].map(|part| self.quantile(part));
        let (half, quarter) = (half?, quarter?);
        let is_spread = quarter >= MIN_BLURRED_RATIO * half
            && tenth? >= MIN_BLURRED_RATIO * quarter
            && fastest? >= MIN_BLURRED_TOP_RATIO * tenth?;
        let train = (TRAIN_SEGMENTS * mss) as f64 / quarter * 1e9;
        (is_spread && varies() >= train).then_some(half)
    }

    /// The rate that a fiftieth of the bytes arrived at or above: at times at least the path delivered so fast, whatever held the sender later.
    pub(crate) fn fastest(&self) -> Option<f64> {
        self.quantile(50.0)
    }

    /// The rate that one part in `parts` of the bytes arrived at or above.
    fn quantile(&self, parts: f64) -> Option<f64> {
        (self.rates.total > 0).then(|| self.rates.percentile(1.0 - 1.0 / parts) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_at_one_instant_has_no_rate() {
        let mut trains = PacketTrains::default();
        for delivered in 1..=400u64 {
            // Half a window is held somewhere and let go at once.
            trains.delivered(
                if delivered % 40 < 20 { delivered / 40 * 40 } else { delivered } * 1_000_000,
                delivered * 1_500,
                1_500,
            );
        }
        let rate = trains.rate().expect("trains");
        assert!(rate < 1e8, "{rate}");
    }

    #[test]
    fn bursts_tell_the_line_rate_though_the_mean_is_far_below() {
        let mut trains = PacketTrains::default();
        let (mut now, mut delivered) = (0u64, 0u64);
        for _ in 0..20 {
            for _ in 0..100 {
                now += 12_000;
                delivered += 1_500;
                trains.delivered(now, delivered, 1_500);
            }
            now += 50_000_000;
        }
        let rate = trains.rate().expect("trains") * 8.0;
        assert!((0.9e9..1.1e9).contains(&rate), "{rate}");
    }
}
