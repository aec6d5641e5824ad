//! Round-trip times: samples, their smoothing as RFC 6298 has it, and their distribution.

use crate::observe::log_histogram::LogHistogram;

/// Samples kept one by one, before there is a distribution. Bounds memory.
const EXACT_SAMPLES: usize = 15;

/// Round-trip times of one direction, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct RttEstimator {
    pub(crate) min: Option<u64>,
    pub(crate) smoothed: f64,
    pub(crate) variation: f64,
    pub(crate) samples: u64,
    pub(crate) sum: f64,
    /// The handshake's round trip, which timers go by until data has been timed.
    pub(crate) handshake: Option<u64>,
    pub(crate) max: u64,
    first: [u64; EXACT_SAMPLES],
    /// In tenths of a microsecond, up to seven minutes.
    distribution: LogHistogram<5, 32>,
}

impl RttEstimator {
    /// Takes a sample in.
    ///
    /// Source: RFC 6298 §2, α = 1/8, β = 1/4.
    pub(crate) fn sample(&mut self, nanos: u64) {
        let value = nanos as f64;
        if self.samples == 0 {
            self.smoothed = value;
            self.variation = value / 2.0;
        } else {
            self.variation = 0.75 * self.variation + 0.25 * (self.smoothed - value).abs();
            self.smoothed = 0.875 * self.smoothed + 0.125 * value;
        }
        if let Some(kept) = self.first.get_mut(self.samples as usize) {
            *kept = nanos;
        }
        self.samples += 1;
        self.sum += value;
        self.max = self.max.max(nanos);
        self.min = Some(self.min.map_or(nanos, |min| min.min(nanos)));
        // A handful of samples has no distribution worth its kilobytes.
        if self.samples > EXACT_SAMPLES as u64 {
            if self.distribution.total == 0 {
                self.first.iter().for_each(|nanos| self.distribution.add(nanos / 100, 1));
            }
            self.distribution.add(nanos / 100, 1);
        }
    }

    /// Whether data was timed: elsewhere than at the sender, without timestamps, the handshake's sample is all there is.
    pub(crate) const fn is_of_data(&self) -> bool {
        self.samples > 1
    }

    /// The mean, in nanoseconds.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / self.samples as f64)
    }

    /// The smoothed round trip and its variation, in nanoseconds.
    fn estimate(&self) -> Option<(f64, f64)> {
        let first = self.handshake.map(|nanos| (nanos as f64, nanos as f64 / 2.0));
        if self.samples == 0 { first } else { Some((self.smoothed, self.variation)) }
    }

    /// The least of all, the handshake's included, in nanoseconds.
    pub(crate) fn least(&self) -> Option<u64> {
        self.min.into_iter().chain(self.handshake).min()
    }

    /// The smoothed round trip, or the handshake's before data was timed; 0 where nothing is known, in nanoseconds.
    pub(crate) fn usual(&self) -> f64 {
        self.estimate().map_or(0.0, |(smoothed, _)| smoothed)
    }

    /// The values that these parts of the samples stay at or under, in nanoseconds: exact of a few samples, else to 1.6 %.
    pub(crate) fn percentiles<const N: usize>(&self, parts: [f64; N]) -> [f64; N] {
        let mut first = self.first;
        let first = &mut first[..(self.samples as usize).min(EXACT_SAMPLES)];
        first.sort_unstable();
        parts.map(|part| {
            if self.distribution.total > 0 {
                let nanos = self.distribution.percentile(part) as f64 * 100.0;
                return nanos.clamp(self.min.unwrap_or(0) as f64, self.max as f64);
            }
            let at = (part * first.len() as f64).ceil().max(1.0) as usize - 1;
            first.get(at).map_or(0.0, |nanos| *nanos as f64)
        })
    }

    /// The retransmission timeout less its margin: silences shorter than this are not a timer's.
    ///
    /// The RTO is SRTT + max(rto_min, 4·RTTVAR). A route may set any rto_min, and the kernel's floor is two jiffies, so only
    /// the smoothed RTT and a part of the variation are certain. Linux `tcp_set_rto`, `TCP_RTO_MIN`; RFC 6298 §2.3.
    pub(crate) fn shortest_timeout(&self) -> f64 {
        self.estimate().map_or(150e6, |(smoothed, variation)| (smoothed + variation).max(5e6))
    }

    /// About the retransmission timeout, where nothing shortens it.
    ///
    /// `margin` is the least that was seen of what it adds to the round trip.
    ///
    /// Source: Linux `__tcp_set_rto`; `TCP_RTO_MIN`, 200 ms.
    pub(crate) fn timeout(&self, margin: Option<f64>) -> f64 {
        let least = margin.map_or(200e6, |margin| margin.min(200e6));
        self.estimate().map_or(1e9, |(smoothed, variation)| smoothed + (4.0 * variation).max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_of_a_few_and_near_of_many() {
        let mut rtt = RttEstimator::default();
        (1..=10).for_each(|ms| rtt.sample(ms * 1_000_000));
        assert_eq!(rtt.percentiles([0.5, 0.9, 0.99]), [5e6, 9e6, 10e6]);
        (11..=1_000).for_each(|ms| rtt.sample(ms * 1_000_000));
        for (found, wanted) in rtt.percentiles([0.5, 0.9, 0.99]).into_iter().zip([500e6, 900e6, 990e6]) {
            assert!((found / wanted - 1.0f64).abs() < 0.022, "{found} {wanted}");
        }
        assert_eq!(rtt.max, 1_000_000_000);
    }
}
