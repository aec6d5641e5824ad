//! The delay table netem takes its normal distribution from.

use statrs::distribution::{ContinuousCDF, Normal};

/// netem's fixed-point unit of one standard deviation. Source: net/sched/sch_netem.c, `NETEM_DIST_SCALE`.
const SCALE: f64 = 8192.0;
/// Entries, as in iproute2's own table.
const ENTRIES: u32 = 4096;

/// The inverse of the normal distribution at evenly spaced probabilities, cut where 16 bits end: four deviations.
pub(super) fn normal() -> Vec<i16> {
    let normal = Normal::new(0.0, 1.0).expect("invariant: one is a deviation");
    (0..ENTRIES)
        .map(|entry| {
            let deviation = normal.inverse_cdf((f64::from(entry) + 0.5) / f64::from(ENTRIES));
            (deviation * SCALE).round().clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_mean_zero_and_deviation_one() {
        let table = normal();
        let n = table.len() as f64;
        let mean = table.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = table.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n;
        assert!(mean.abs() < 1.0, "{mean}");
        assert!((variance.sqrt() / SCALE - 1.0).abs() < 0.005, "{}", variance.sqrt() / SCALE);
    }
}
