//! Figures over repeats.

use model::{Metric, Metrics};
use std::collections::BTreeMap;
use units::Seed;

/// Resamples of the bootstrap. Source: Efron, Tibshirani, "An Introduction to the Bootstrap", 1993, §13.3.
const RESAMPLES: usize = 2000;

/// Joins the figures of repeats: one repeat stays as it is; of several, each figure becomes its median, extremes and the
/// median's bootstrap confidence interval. A figure that not every repeat has is left out.
pub(crate) fn summarize(mut repeats: Vec<Metrics>) -> Metrics {
    if repeats.len() == 1 {
        return repeats.remove(0);
    }
    let Some(first) = repeats.first() else { return Metrics::new() };
    let mut joined = BTreeMap::new();
    for name in first.keys() {
        let of_each: Vec<&Metric> = repeats.iter().filter_map(|metrics| metrics.get(name)).collect();
        if of_each.len() == repeats.len() {
            joined.insert(name.clone(), join(&of_each));
        }
    }
    joined
}

fn join(of_each: &[&Metric]) -> Metric {
    let values: Vec<f64> = of_each.iter().filter_map(|metric| metric.value()).collect();
    if values.len() == of_each.len() {
        return summary(values);
    }
    let groups = of_each.iter().filter_map(|metric| match metric {
        Metric::Group(group) => Some(group.clone()),
        _ => None,
    });
    Metric::Group(summarize(groups.collect()))
}

fn summary(mut values: Vec<f64>) -> Metric {
    values.sort_by(f64::total_cmp);
    let mut medians: Vec<f64> = Vec::with_capacity(RESAMPLES);
    let mut seed = Seed::new(0);
    for _ in 0..RESAMPLES {
        let mut sample: Vec<f64> = values
            .iter()
            .map(|_| {
                seed = seed.derive(1);
                values[(seed.get() % values.len() as u64) as usize]
            })
            .collect();
        sample.sort_by(f64::total_cmp);
        medians.push(median(&sample));
    }
    medians.sort_by(f64::total_cmp);
    let at = |part: f64| medians[((part * RESAMPLES as f64) as usize).min(RESAMPLES - 1)];
    Metric::Summary {
        median: median(&values),
        min: values[0],
        max: values[values.len() - 1],
        ci95: [at(0.025), at(0.975)],
    }
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_become_median_extremes_and_interval() {
        let repeats = [3.0, 1.0, 2.0, 5.0, 4.0].map(|v| Metrics::from([("x".to_owned(), Metric::One(v))]));
        let joined = summarize(repeats.to_vec());
        let Metric::Summary { median, min, max, ci95 } = joined["x"] else { panic!("a summary") };
        assert_eq!((median, min, max), (3.0, 1.0, 5.0));
        assert!(ci95[0] >= 1.0 && ci95[0] <= 3.0 && ci95[1] >= 3.0 && ci95[1] <= 5.0, "{ci95:?}");
    }

    #[test]
    fn one_repeat_stays_a_number() {
        let one = Metrics::from([("x".to_owned(), Metric::Count(7))]);
        assert_eq!(summarize(vec![one.clone()]), one);
    }
}
