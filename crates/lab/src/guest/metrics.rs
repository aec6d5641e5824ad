//! Metrics that several workloads report.

use crate::quantiles::{median, nearest_rank};
use std::collections::BTreeMap;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::{Metric, Metrics};

/// The senders' `tcp_info`: retransmissions, round-trip times, and how long each side held
/// them up. Counts are added up; of the others, several connections give the median.
pub(super) fn sender_metrics(infos: &[TcpInfo], metrics: &mut Metrics) {
    let sum = |name: &str| Metric::Count(infos.iter().map(|info| info.get(name)).sum());
    let middle = |name: &str| median(&infos.iter().map(|info| info.get(name) as f64).collect::<Vec<_>>());
    let millis = |name: &str| Metric::One(middle(name) / 1e3);
    for (name, metric) in [
        ("retransmits", sum("tcpi_total_retrans")),
        ("retransmission_timeouts", sum("tcpi_total_rto")),
        ("rtt_ms", millis("tcpi_rtt")),
        ("min_rtt_ms", millis("tcpi_min_rtt")),
        ("cwnd_packets", Metric::Count(middle("tcpi_snd_cwnd") as u64)),
        ("busy_ms", millis("tcpi_busy_time")),
        ("rwnd_limited_ms", millis("tcpi_rwnd_limited")),
        ("sndbuf_limited_ms", millis("tcpi_sndbuf_limited")),
    ] {
        metrics.insert(name.to_owned(), metric);
    }
}

/// One value as it is, several as their percentiles.
pub(super) fn one_or_percentiles(values: Vec<f64>) -> Metric {
    match values.as_slice() {
        [one] => Metric::One(*one),
        _ => percentiles(values),
    }
}

/// Percentiles by nearest rank.
pub(super) fn percentiles(mut values: Vec<f64>) -> Metric {
    values.sort_by(f64::total_cmp);
    let mut group = BTreeMap::new();
    if let (Some(min), Some(max)) = (values.first(), values.last()) {
        group.insert("min".to_owned(), Metric::One(*min));
        group.insert("max".to_owned(), Metric::One(*max));
        group.insert("mean".to_owned(), Metric::One(values.iter().sum::<f64>() / values.len() as f64));
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            group.insert(name.to_owned(), Metric::One(nearest_rank(&values, part)));
        }
    }
    Metric::Group(group)
}

/// Jain's index: 1 where all have the same, 1/n where one has all.
///
/// Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
pub(super) fn fairness(rates: &[f64]) -> f64 {
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 { rates.iter().sum::<f64>().powi(2) / (rates.len() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let Metric::Group(group) = percentiles((1..=1000).map(f64::from).collect()) else { panic!("a group") };
        for (name, value) in [("p50", 500.0), ("p90", 900.0), ("p99", 990.0), ("p999", 999.0), ("max", 1000.0)] {
            assert_eq!(group[name], Metric::One(value), "{name}");
        }
    }

    #[test]
    fn fairness_is_one_among_equals() {
        assert_eq!(fairness(&[3.0, 3.0]), 1.0);
        assert_eq!(fairness(&[4.0, 0.0]), 0.5);
    }
}
