//! Figures over repeats: medians and their intervals, differences from a baseline, and outliers.

use crate::quantiles::{median, median_of, quantile};
use std::collections::{BTreeMap, HashMap};
use thalweg_model::{ArmReport, Difference, Metric, Metrics, Outlier};
use thalweg_units::Seed;

/// Resamples of the bootstrap. Source: Efron, Tibshirani, "An Introduction to the Bootstrap", 1993, §13.3.
const RESAMPLES: usize = 2000;
/// With fewer pairs, all on one side of 0 happens by chance more than once in twenty: 2 · ½⁵ = 6.25 %. Source: the sign
/// test; Conover, "Practical Nonparametric Statistics", 3rd ed. 1999, §3.4.
const PAIRS_MIN: usize = 6;
/// Tukey's fences stand so many interquartile ranges outside the quartiles. Source: Tukey, "Exploratory Data Analysis",
/// 1977, §2D.
const FENCE: f64 = 1.5;
/// With fewer values the quartiles are the extremes, and nothing is outside.
const FENCED_MIN: usize = 4;

/// Joins the figures of repeats, given in the order of their seeds: one repeat stays as it is; of several, each figure
/// becomes its median, extremes and the median's bootstrap confidence interval. A figure that not every repeat has is left
/// out.
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

/// Says of each arm how its figures differ from its baseline's, and which of its repeats are far from the others. `seed` is
/// that of the first repeat.
pub fn compare_arms(arms: &mut [ArmReport], seed: u64) {
    let places: HashMap<String, usize> = arms.iter().enumerate().map(|(at, arm)| (arm.name.clone(), at)).collect();
    for at in 0..arms.len() {
        let base = arms[at].baseline.as_ref().and_then(|name| places.get(name));
        let differences = base.map(|base| differences(&arms[at].metrics, &arms[*base].metrics)).unwrap_or_default();
        arms[at].differences = differences;
        arms[at].outliers = outliers(&arms[at].metrics, seed);
    }
}

fn differences(metrics: &Metrics, base: &Metrics) -> BTreeMap<String, Difference> {
    let pairs = Metric::flatten(metrics).into_iter().filter_map(|(name, metric)| {
        let difference = difference(&metric.values(), &Metric::named(base, &name)?.values())?;
        Some((name, difference))
    });
    pairs.collect()
}

/// How `values` differ from `base`, which are paired by their places; `None` where they are not as many, or none.
pub fn difference(values: &[f64], base: &[f64]) -> Option<Difference> {
    if values.len() != base.len() || values.is_empty() {
        return None;
    }
    let differences: Vec<f64> = values.iter().zip(base).map(|(value, base)| value - base).collect();
    let ratio = median(values) / median(base);
    let ci95 = (differences.len() > 1).then(|| interval(&differences));
    let alike = differences.iter().all(|difference| *difference == differences[0]);
    let within_noise = ci95.and_then(|[low, high]| match low <= 0.0 && high >= 0.0 {
        true => Some(true),
        // Where every seed gives the very same difference there is no chance in it.
        false => (differences.len() >= PAIRS_MIN || alike).then_some(false),
    });
    Some(Difference { difference: median(&differences), ratio: ratio.is_finite().then_some(ratio), ci95, within_noise })
}

fn outliers(metrics: &Metrics, seed: u64) -> Vec<Outlier> {
    let mut found = Vec::new();
    for (name, metric) in Metric::flatten(metrics) {
        let values = metric.values();
        if values.len() < FENCED_MIN {
            continue;
        }
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
        let reach = FENCE * (high - low);
        for (repeat, value) in values.into_iter().enumerate() {
            if value < low - reach || value > high + reach {
                found.push(Outlier { metric: name.clone(), seed: seed.wrapping_add(repeat as u64), value });
            }
        }
    }
    found
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

fn summary(values: Vec<f64>) -> Metric {
    Metric::Summary {
        median: median(&values),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ci95: interval(&values),
        values,
    }
}

/// 95 % confidence interval of the median, by the percentiles of the bootstrap.
fn interval(values: &[f64]) -> [f64; 2] {
    if values.iter().all(|value| *value == values[0]) {
        return [values[0]; 2];
    }
    let mut medians: Vec<f64> = Vec::with_capacity(RESAMPLES);
    let mut sample = vec![0.0; values.len()];
    let mut seed = Seed::new(0);
    for _ in 0..RESAMPLES {
        for drawn in &mut sample {
            seed = seed.derive(1);
            *drawn = values[(seed.get() % values.len() as u64) as usize];
        }
        medians.push(median_of(&mut sample));
    }
    medians.sort_by(f64::total_cmp);
    let at = |part: f64| medians[((part * RESAMPLES as f64) as usize).min(RESAMPLES - 1)];
    [at(0.025), at(0.975)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Metrics {
        summarize(values.iter().map(|v| Metrics::from([("x".to_owned(), Metric::One(*v))])).collect())
    }

    #[test]
    fn repeats_become_median_extremes_and_interval() {
        let joined = of(&[3.0, 1.0, 2.0, 5.0, 4.0]);
        let Metric::Summary { median, min, max, ci95, values } = &joined["x"] else { panic!("a summary") };
        assert_eq!((*median, *min, *max), (3.0, 1.0, 5.0));
        assert!(ci95[0] >= 1.0 && ci95[0] <= 3.0 && ci95[1] >= 3.0 && ci95[1] <= 5.0, "{ci95:?}");
        assert_eq!(values, &[3.0, 1.0, 2.0, 5.0, 4.0], "in the order of their seeds");
        assert_eq!(of(&[1.0, 4.0])["x"].value(), Some(2.5));
    }

    #[test]
    fn one_repeat_stays_a_number() {
        let one = Metrics::from([("x".to_owned(), Metric::Count(7))]);
        assert_eq!(summarize(vec![one.clone()]), one);
    }

    #[test]
    fn pairs_show_what_spread_over_seeds_would_hide() {
        // The seeds differ by far more than the arms; each seed's two arms differ by about 1.
        let base = [10.0, 50.0, 30.0, 90.0, 20.0, 70.0, 40.0, 80.0];
        let arm: Vec<f64> = base.iter().zip([1.0, 1.2, 0.9, 1.1, 1.0, 0.8, 1.3, 1.0]).map(|(b, d)| b + d).collect();
        let paired = difference(&arm, &base).expect("pairs");
        assert!((paired.difference - 1.0).abs() < 1e-9, "{paired:?}");
        assert_eq!(paired.within_noise, Some(false));
        let mut shuffled = arm;
        shuffled.rotate_left(3);
        assert_eq!(difference(&shuffled, &base).expect("pairs").within_noise, Some(true));
    }

    #[test]
    fn few_pairs_prove_nothing_unless_no_chance_is_in_them() {
        assert_eq!(
            difference(&[2.0], &[1.0]).map(|d| (d.difference, d.ratio, d.ci95, d.within_noise)),
            Some((1.0, Some(2.0), None, None))
        );
        let three = difference(&[2.0, 3.0, 4.0], &[1.0, 1.5, 2.0]).expect("pairs");
        assert_eq!((three.within_noise, three.ci95), (None, Some([1.0, 2.0])));
        assert_eq!(difference(&[2.0, 3.0], &[1.0, 2.0]).expect("pairs").within_noise, Some(false));
        assert_eq!(difference(&[2.0, 2.0], &[2.0, 2.0]).expect("pairs").within_noise, Some(true));
        assert_eq!(difference(&[2.0], &[0.0]).expect("pairs").ratio, None);
        assert_eq!(difference(&[2.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn what_is_outside_the_fences_is_named_by_its_seed() {
        let far = outliers(&of(&[10.0, 11.0, 10.5, 30.0, 10.2, 10.8]), 7);
        assert_eq!(far, [Outlier { metric: "x".to_owned(), seed: 10, value: 30.0 }]);
        assert!(outliers(&of(&[1.0, 2.0, 3.0, 4.0, 5.0]), 7).is_empty());
        assert!(outliers(&of(&[1.0, 1.0, 9.0]), 7).is_empty(), "three have no fences");
    }
}
