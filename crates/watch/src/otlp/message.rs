//! The messages of OTLP that metrics take, as its JSON encoding has them.
//!
//! Source: opentelemetry-proto, `metrics/v1/metrics.proto`, `collector/metrics/v1/metrics_service.proto`; OTLP specification, "JSON
//! Protobuf Encoding": names in lowerCamelCase, enumerations as numbers, 64-bit integers as decimal strings.

use serde::{Serialize, Serializer};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
pub(super) const CUMULATIVE: u8 = 2;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportMetricsServiceRequest {
    pub(super) resource_metrics: [ResourceMetrics; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceMetrics {
    pub(super) resource: Resource,
    pub(super) scope_metrics: [ScopeMetrics; 1],
}

#[derive(Debug, Serialize)]
pub(super) struct Resource {
    pub(super) attributes: Vec<KeyValue>,
}

#[derive(Debug, Serialize)]
pub(super) struct ScopeMetrics {
    pub(super) scope: Scope,
    pub(super) metrics: Vec<Metric>,
}

#[derive(Debug, Serialize)]
pub(super) struct Scope {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) description: &'static str,
    pub(super) unit: &'static str,
    #[serde(flatten)]
    pub(super) data: Data,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Data {
    #[serde(rename_all = "camelCase")]
    Sum { data_points: Vec<NumberDataPoint>, aggregation_temporality: u8, is_monotonic: bool },
    #[serde(rename_all = "camelCase")]
    Histogram { data_points: Vec<HistogramDataPoint>, aggregation_temporality: u8 },
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Times {
    pub(super) start_time_unix_nano: Integer,
    pub(super) time_unix_nano: Integer,
}

#[derive(Debug, Serialize)]
pub(super) struct NumberDataPoint {
    pub(super) attributes: Vec<KeyValue>,
    #[serde(flatten)]
    pub(super) times: Times,
    #[serde(flatten)]
    pub(super) value: Number,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Number {
    AsInt(Integer),
    AsDouble(f64),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistogramDataPoint {
    pub(super) attributes: Vec<KeyValue>,
    #[serde(flatten)]
    pub(super) times: Times,
    pub(super) count: Integer,
    pub(super) sum: f64,
    /// One more than bounds.
    pub(super) bucket_counts: Vec<Integer>,
    pub(super) explicit_bounds: Vec<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct KeyValue {
    pub(super) key: String,
    pub(super) value: AnyValue,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnyValue {
    pub(super) string_value: String,
}

impl KeyValue {
    pub(super) fn new(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), value: AnyValue { string_value: value.to_owned() } }
    }
}

/// An integer of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Integer(pub(super) u64);

impl Serialize for Integer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
