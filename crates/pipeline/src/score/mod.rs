//! How good a run was, as one number: more is better.

use crate::remedy::{goodput, value};
use thalweg_model::{Amount, ArmReport, Metric, Metrics, Workload};

/// Payload of a full segment, as the share of resent data counts it.
const SEGMENT: f64 = 1448.0;
/// From this many messages on the 99th percentile leaves the first one out: connections that go on for days begin once.
const MESSAGES_FOR_P99: f64 = 101.0;

/// By how much a rate may fall, and a typical and a late answer or message may come later, for what the others gain: a rate as much as another
/// flow that comes costs it, a median by no more than runs differ by. Source: `what_makes_one_topic_worse_is_worth_nothing`, score/tests.rs, and
/// `answers_that_come_later_are_no_gain`, crates/thalweg/tests/fix_scenario.rs.
const RATE_TOLERABLE: f64 = 1.25;
const TYPICAL_TOLERABLE: f64 = 1.1;
const LATE_TOLERABLE: f64 = 1.5;

/// How good a run of `workload` was; `None` where it has no such figure.
///
/// A stream's rate counts only as far as it was not sent twice. Messages count by the typical and the late ones of each topic alike.
pub(crate) fn score(workload: &Workload, arm: &ArmReport) -> Option<f64> {
    of_part(workload, &arm.metrics).filter(|score| score.is_finite() && *score > 0.0)
}

/// How good the first part of a long stream was: what its start takes is little of the whole stream, so the rate after it counts.
pub(crate) fn score_of_first_part(arm: &ArmReport) -> Option<f64> {
    of_stream("goodput_steady_bps", &arm.metrics).filter(|score| score.is_finite() && *score > 0.0)
}

/// A stream's rate, less the part that was sent twice.
fn of_stream(goodput: &str, metrics: &Metrics) -> Option<f64> {
    let get = |name: &str| Metric::named(metrics, name).and_then(Metric::value);
    let resent = get("retransmits").unwrap_or_default() * SEGMENT;
    let bytes = get("bytes").filter(|bytes| *bytes > 0.0)?;
    Some(get(goodput)? * bytes / (bytes + resent))
}

fn of_part(workload: &Workload, metrics: &Metrics) -> Option<f64> {
    let get = |name: &str| Metric::named(metrics, name).and_then(Metric::value);
    match workload {
        Workload::Stream(stream) => of_stream(goodput(stream), metrics),
        Workload::Rr(_) | Workload::Crr(_) => get("transactions_per_s"),
        Workload::Burst(burst) => {
            let times = get(&format!("time_to_bytes_ms.{}", burst.total.get()));
            times.or_else(|| get("duration_s").map(|seconds| seconds * 1e3)).map(|time| 1e3 / time)
        }
        Workload::UdpTrain(_) => None,
        Workload::Topics(topics) => mean(topics.topics.iter().map(|topic| {
            let of = |path: &[&str]| find(metrics, &[&["topics", topic.name.as_str()], path].concat());
            let messages = of(&["messages"])?;
            let late = if messages >= MESSAGES_FOR_P99 { "p99" } else { "p90" };
            Some(1e3 / (of(&["latency_ms", "p50"])? * of(&["latency_ms", late])?).sqrt())
        })),
        Workload::Mixed { parts } => {
            mean(parts.iter().filter(|part| !matches!(part.workload, Workload::UdpTrain(_))).map(|part| {
                match metrics.get(&part.name)? {
                    Metric::Group(group) => of_part(&part.workload, group),
                    _ => None,
                }
            }))
        }
        Workload::Command(_) if get("failed_runs").is_some_and(|failed| failed > 0.0) => None,
        Workload::Command(_) => get("duration_s").or_else(|| get("duration_s.p50")).map(|seconds| 1.0 / seconds),
    }
}

/// The geometric mean; `None` where one is missing, or there are none.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.collect::<Option<_>>()?;
    let count = values.len() as f64;
    (!values.is_empty()).then(|| (values.iter().map(|value| value.ln()).sum::<f64>() / count).exp())
}

fn find(metrics: &Metrics, path: &[&str]) -> Option<f64> {
    Metric::find(metrics, path)?.value()
}

/// Whether a workload has TCP connections at all.
pub(crate) fn has_tcp(workload: &Workload) -> bool {
    match workload {
        Workload::UdpTrain(_) => false,
        Workload::Mixed { parts } => parts.iter().any(|part| has_tcp(&part.workload)),
        _ => true,
    }
}

/// By how much the figure of `after` that is worst beside `before` is beyond what is tolerable, as a factor above 1; `None` where none is.
pub(crate) fn worse(workload: &Workload, before: &ArmReport, after: &ArmReport) -> Option<f64> {
    let mut names = Vec::new();
    collect(workload, "", &mut names);
    let beyond = |name: &String| {
        let (before_value, after_value) = (value(before, name)?, value(after, name)?);
        let less = name.contains("_ms.") || name.ends_with("duration_s");
        let times = if less { after_value / before_value } else { before_value / after_value };
        let late = name.ends_with(".p90") || name.ends_with(".p99");
        let few = name.ends_with(".p99") && messages(before, name).is_some_and(|count| count < MESSAGES_FOR_P99);
        let tolerable = if late {
            LATE_TOLERABLE
        } else if name.ends_with(".p50") {
            TYPICAL_TOLERABLE
        } else {
            RATE_TOLERABLE
        };
        (times.is_finite() && !few && times > tolerable).then_some(times / tolerable)
    };
    names.iter().filter_map(beyond).max_by(f64::total_cmp)
}

/// Messages that a topic's percentile is of.
fn messages(arm: &ArmReport, percentile: &str) -> Option<f64> {
    let topic = percentile.strip_suffix(".latency_ms.p99")?;
    value(arm, &format!("{topic}.messages"))
}

/// The figures a reader compares, by their whole names: the headline of each part, and of each topic the typical and the late message. Each is one
/// that all of `arms` have.
pub(crate) fn figures(workload: &Workload, arms: &[ArmReport]) -> Vec<String> {
    let mut names = Vec::new();
    collect(workload, "", &mut names);
    names.retain(|name| arms.iter().all(|arm| value(arm, name).is_some()));
    names
}

fn collect(workload: &Workload, prefix: &str, names: &mut Vec<String>) {
    let own: Vec<String> = match workload {
        Workload::Stream(stream) => {
            let duration = matches!(stream.amount, Amount::Bytes(_)).then_some("duration_s");
            ["goodput_steady_bps", "goodput_bps"].into_iter().chain(duration).map(str::to_owned).collect()
        }
        Workload::Rr(_) | Workload::Crr(_) => {
            ["transactions_per_s", "latency_ms.p50", "latency_ms.p99"].map(str::to_owned).to_vec()
        }
        Workload::Burst(burst) => vec![format!("time_to_bytes_ms.{}", burst.total.get())],
        Workload::UdpTrain(_) => Vec::new(),
        Workload::Topics(topics) => {
            let of = |name: &str| ["p50", "p90", "p99"].map(|part| format!("topics.{name}.latency_ms.{part}"));
            topics.topics.iter().flat_map(|topic| of(&topic.name)).collect()
        }
        Workload::Mixed { parts } => {
            parts.iter().for_each(|part| collect(&part.workload, &format!("{prefix}{}.", part.name), names));
            Vec::new()
        }
        Workload::Command(_) => vec!["duration_s".to_owned()],
    };
    names.extend(own.into_iter().map(|name| format!("{prefix}{name}")));
}

#[cfg(test)]
mod tests;
