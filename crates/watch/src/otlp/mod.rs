//! The sums as OpenTelemetry's collectors read them.

mod message;

use crate::metrics::{
    BY_PROGRAM, ByProgram, CLOSED_MISSED, Figure, LIMITED, MEMORY, MEMORY_LIMIT, RTT, SOCKETS, shown,
};
use crate::totals::{ProgramTotals, RTT_BOUNDS_S, Totals};
use message::{
    CUMULATIVE, Data, ExportMetricsServiceRequest, HistogramDataPoint, Integer, KeyValue, Metric, Number,
    NumberDataPoint, Resource, ResourceMetrics, Scope, ScopeMetrics, Times,
};
use thalweg_model::{LimitName, SocketState};

/// The attribute with a program's name.
const PROGRAM: &str = "process.executable.name";

/// The time that sums are over, in nanoseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct OtlpPeriod {
    /// When counting began.
    pub from_ns: u64,
    /// Now.
    pub until_ns: u64,
}

/// All sums as the body of an export by OTLP/HTTP, in its JSON encoding; `resource` says whose they are.
#[must_use]
pub fn otlp_request(totals: &Totals, resource: &[(String, String)], period: OtlpPeriod) -> Vec<u8> {
    let times = Times { start_time_unix_nano: Integer(period.from_ns), time_unix_nano: Integer(period.until_ns) };
    let request = ExportMetricsServiceRequest {
        resource_metrics: [ResourceMetrics {
            resource: Resource { attributes: resource.iter().map(|(key, value)| KeyValue::new(key, value)).collect() },
            scope_metrics: [ScopeMetrics {
                scope: Scope { name: "thalweg.watch", version: env!("CARGO_PKG_VERSION") },
                metrics: metrics(totals, times),
            }],
        }],
    };
    serde_json::to_vec(&request).expect("invariant: every key is a text")
}

fn metrics(totals: &Totals, times: Times) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let states = SocketState::LIVE.iter().zip(totals.sockets).map(|(state, count)| {
        let state = state.to_string().replace('-', "_");
        point(vec![KeyValue::new("network.connection.state", &state)], times, Figure::Count(count))
    });
    metrics.push(sum("connection.count", SOCKETS, "{connection}", false, states.collect()));
    for of_one_name in BY_PROGRAM.chunk_by(|a, b| a.open_telemetry == b.open_telemetry) {
        metrics.extend(by_program(totals, times, of_one_name));
    }
    let limited = totals.programs.iter().flat_map(|(program, total)| {
        LimitName::ALL.iter().zip(total.limited_s).map(move |(limit, seconds)| {
            let attributes = vec![of(program), KeyValue::new("thalweg.tcp.cause", limit.as_str())];
            point(attributes, times, Figure::Seconds(seconds))
        })
    });
    metrics.push(sum("limited.time", LIMITED, "s", true, limited.collect()));
    let round_trips = totals.programs.iter().map(|(program, total)| histogram(program, total, times)).collect();
    metrics.push(Metric {
        name: name("rtt"),
        description: RTT,
        unit: "s",
        data: Data::Histogram { data_points: round_trips, aggregation_temporality: CUMULATIVE },
    });
    if let Some(missed) = totals.closed_missed {
        let missed = point(Vec::new(), times, Figure::Count(missed));
        metrics.push(sum("connection.missed", CLOSED_MISSED, "{connection}", true, vec![missed]));
    }
    if let Some(memory) = totals.tcp_memory {
        let used = point(Vec::new(), times, Figure::Count(memory.used_bytes));
        metrics.push(sum("memory.usage", MEMORY, "By", false, vec![used]));
        let limits = [("pressure", memory.pressure_bytes), ("limit", memory.limit_bytes)].map(|(threshold, bytes)| {
            point(vec![KeyValue::new("thalweg.tcp.memory.threshold", threshold)], times, Figure::Count(bytes))
        });
        metrics.push(sum("memory.limit", MEMORY_LIMIT, "By", false, limits.into()));
    }
    // A metric without a value is none.
    metrics.retain(|metric| match &metric.data {
        Data::Sum { data_points, .. } => !data_points.is_empty(),
        Data::Histogram { data_points, .. } => !data_points.is_empty(),
    });
    metrics
}

fn by_program(totals: &Totals, times: Times, all: &[ByProgram]) -> Option<Metric> {
    let first = all.first()?;
    let points = all.iter().flat_map(|metric| {
        totals.programs.iter().map(move |(program, total)| {
            let attribute = metric.attribute.map(|(key, value)| KeyValue::new(key, value));
            point([of(program)].into_iter().chain(attribute).collect(), times, (metric.figure)(total))
        })
    });
    let help = if all.len() > 1 { "Payload, by direction" } else { first.help };
    Some(sum(first.open_telemetry, help, first.unit, first.is_counter, points.collect()))
}

fn histogram(program: &str, total: &ProgramTotals, times: Times) -> HistogramDataPoint {
    HistogramDataPoint {
        attributes: vec![of(program)],
        times,
        count: Integer(total.rtt_counts.iter().sum()),
        sum: total.rtt_sum_s,
        bucket_counts: total.rtt_counts.map(Integer).into(),
        explicit_bounds: RTT_BOUNDS_S.into(),
    }
}

fn sum(
    end: &str,
    description: &'static str,
    unit: &'static str,
    is_monotonic: bool,
    data_points: Vec<NumberDataPoint>,
) -> Metric {
    let data = Data::Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic };
    Metric { name: name(end), description, unit, data }
}

fn point(attributes: Vec<KeyValue>, times: Times, figure: Figure) -> NumberDataPoint {
    let value = match figure {
        Figure::Count(count) => Number::AsInt(Integer(count)),
        Figure::Seconds(seconds) => Number::AsDouble(seconds),
    };
    NumberDataPoint { attributes, times, value }
}

fn of(program: &str) -> KeyValue {
    KeyValue::new(PROGRAM, shown(program))
}

fn name(end: &str) -> String {
    format!("thalweg.tcp.{end}")
}

#[cfg(test)]
mod tests;
