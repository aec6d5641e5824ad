//! Measured figures, once or over repeats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures by name; names carry their units.
pub type Metrics = BTreeMap<String, Metric>;

/// A figure, or a group of figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Metric {
    /// A count.
    Count(u64),
    /// One measurement.
    One(#[schemars(extend("minimum" = null))] f64),
    /// The same measurement over repeats.
    Summary {
        /// The median.
        #[schemars(extend("minimum" = null))]
        median: f64,
        /// The least.
        #[schemars(extend("minimum" = null))]
        min: f64,
        /// The greatest.
        #[schemars(extend("minimum" = null))]
        max: f64,
        /// 95 % confidence interval of the median.
        #[schemars(extend("minimum" = null))]
        ci95: [f64; 2],
        /// Each repeat's value, in the order of their seeds.
        #[schemars(extend("minimum" = null))]
        values: Vec<f64>,
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

    /// The value of each repeat, in the order of their seeds; none for a group.
    pub fn values(&self) -> Vec<f64> {
        match self {
            Self::Summary { values, .. } => values.clone(),
            metric => metric.value().into_iter().collect(),
        }
    }

    /// Every figure by its whole name, members of groups as `latency_ms.p50`.
    pub fn flatten(metrics: &Metrics) -> Vec<(String, &Self)> {
        let mut flat = Vec::new();
        for (name, metric) in metrics {
            match metric {
                Self::Group(group) => {
                    flat.extend(Self::flatten(group).into_iter().map(|(below, one)| (format!("{name}.{below}"), one)));
                }
                metric => flat.push((name.clone(), metric)),
            }
        }
        flat
    }

    /// The figure of that whole name.
    pub fn named<'a>(metrics: &'a Metrics, name: &str) -> Option<&'a Self> {
        Self::find(metrics, &name.split('.').collect::<Vec<_>>())
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
