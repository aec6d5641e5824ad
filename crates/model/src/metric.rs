//! Measured figures, once or over repeats.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures by name; names carry their units.
pub type Metrics = BTreeMap<String, Metric>;

/// A figure, or a group of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metric {
    /// A count.
    Count(u64),
    /// One measurement.
    One(f64),
    /// The same measurement over repeats.
    Summary {
        /// The median.
        median: f64,
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
        /// 95 % confidence interval of the median.
        ci95: [f64; 2],
    },
    /// Figures under one name, such as the percentiles of a latency.
    Group(BTreeMap<String, Metric>),
}

impl Metric {
    /// The figure, or the median over repeats; `None` for a group.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::One(value) => Some(*value),
            Self::Summary { median, .. } => Some(*median),
            Self::Group(_) => None,
        }
    }

    /// The figure at `path`, such as `["time_to_bytes_ms", "1000000"]`.
    pub fn find<'a>(metrics: &'a Metrics, path: &[&str]) -> Option<&'a Self> {
        let (first, rest) = path.split_first()?;
        let metric = metrics.get(*first)?;
        match (rest, metric) {
            ([], metric) => Some(metric),
            (rest, Self::Group(group)) => Self::find(group, rest),
            _ => None,
        }
    }
}
