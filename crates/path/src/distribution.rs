//! The delay tables netem takes its distributions from.

use statrs::distribution::{ContinuousCDF, Normal, Pareto};
use thalweg_model::{Distribution, Jitter};

/// netem's fixed-point unit of one standard deviation. Source: net/sched/sch_netem.c, `NETEM_DIST_SCALE`.
const SCALE: f64 = 8192.0;
/// Entries, as in iproute2's own table.
const ENTRIES: u32 = 4096;
/// Shape of the Pareto distribution: that of iproute2's `pareto.c`.
const PARETO_SHAPE: f64 = 3.0;
/// iproute2's `paretonormal.c` mixes them so.
const NORMAL_PART: f64 = 0.25;

/// The table of a distribution: mean 0, deviation 1 in units of [`SCALE`]; empty is netem's own uniform distribution.
pub fn table(distribution: &Distribution) -> Vec<i16> {
    let normal = Normal::new(0.0, 1.0).expect("invariant: one is a deviation");
    let pareto = Pareto::new(1.0, PARETO_SHAPE).expect("invariant: scale and shape are positive");
    let normal = |part: f64| normal.inverse_cdf(part);
    let pareto = |part: f64| pareto.inverse_cdf(part);
    match distribution {
        Distribution::Uniform => Vec::new(),
        Distribution::Table(entries) => entries.clone(),
        Distribution::Normal => normalized(parts().map(normal).collect()),
        Distribution::Pareto => normalized(parts().map(pareto).collect()),
        Distribution::ParetoNormal => {
            // A sum of two independent draws: every entry of one with a scattered entry of the other.
            let scattered = |entry: u32| (f64::from(entry.wrapping_mul(1021) % ENTRIES) + 0.5) / f64::from(ENTRIES);
            let mixed = (0..ENTRIES).zip(parts());
            let (half, whole) = (0.75_f64.sqrt(), 1.5);
            let draw = |(entry, part): (u32, f64)| {
                NORMAL_PART * normal(scattered(entry)) + (1.0 - NORMAL_PART) * (pareto(part) - whole) / half
            };
            normalized(mixed.map(draw).collect())
        }
    }
}

/// By how many nanoseconds a packet is late, for each of `scores` of a normal distribution: the deviation that is as likely.
pub fn deviations(jitter: &Jitter, scores: impl Iterator<Item = f64>) -> Vec<i64> {
    let normal = Normal::new(0.0, 1.0).expect("invariant: one is a deviation");
    let stddev = jitter.stddev.as_nanos() as f64;
    let mut sorted = table(&jitter.distribution);
    sorted.sort_unstable();
    let deviation = |score: f64| match (&jitter.distribution, sorted.len()) {
        (Distribution::Normal, _) => score,
        (_, 0) => 2.0 * normal.cdf(score) - 1.0,
        (_, entries) => f64::from(sorted[((normal.cdf(score) * entries as f64) as usize).min(entries - 1)]) / SCALE,
    };
    scores.map(|score| (deviation(score) * stddev).round() as i64).collect()
}

/// Evenly spaced probabilities.
fn parts() -> impl Iterator<Item = f64> {
    (0..ENTRIES).map(|entry| (f64::from(entry) + 0.5) / f64::from(ENTRIES))
}

/// Moves and scales values so that the table, cut where 16 bits end (four deviations), has mean 0 and deviation 1: what
/// is cut from a heavy tail would take from both.
fn normalized(mut values: Vec<f64>) -> Vec<i16> {
    let most = f64::from(i16::MAX) / SCALE;
    let count = values.len() as f64;
    for _ in 0..64 {
        let cut = |value: &f64| value.clamp(-most, most);
        let mean = values.iter().map(cut).sum::<f64>() / count;
        let deviation = (values.iter().map(|value| (cut(value) - mean).powi(2)).sum::<f64>() / count).sqrt();
        values.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
    }
    values.iter().map(|value| (value.clamp(-most, most) * SCALE).round() as i16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_mean_zero_and_deviation_one() {
        for distribution in [Distribution::Normal, Distribution::Pareto, Distribution::ParetoNormal] {
            let table = table(&distribution);
            let n = table.len() as f64;
            let mean = table.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let variance = table.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
            assert!(mean.abs() < 8.0, "{distribution:?}: mean {mean}");
            assert!((variance.sqrt() - SCALE).abs() < SCALE * 0.002, "{distribution:?}: {}", variance.sqrt());
        }
    }

    #[test]
    fn pareto_is_late_more_than_early() {
        let table = table(&Distribution::Pareto);
        assert_eq!(table.iter().max(), Some(&i16::MAX));
        assert!(*table.iter().min().expect("entries") > -SCALE as i16 * 2);
    }
}
