//! Medians and other quantiles.

/// The median; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}

/// The median, by putting `values` in some order.
pub(crate) fn median_of(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if !even {
        return *upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower, *upper)
}

/// The quantile of ascending values, between those beside it, by their distance. Source: Hyndman, Fan, "Sample Quantiles in Statistical Packages", 1996,
/// definition 7.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// The quantile of ascending values by nearest rank: one that occurred.
pub(crate) fn nearest_rank(sorted: &[f64], part: f64) -> f64 {
    let rank = ((part * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
    sorted[rank - 1]
}
