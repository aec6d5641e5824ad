//! What an export holds, read as a collector would.

use super::*;
use serde_json::Value;
use std::collections::BTreeSet;
use thalweg_model::TcpMemoryUse;

fn totals() -> Totals {
    let mut totals = Totals::default();
    let mut web =
        ProgramTotals { sent_bytes: u64::MAX / 2, sent_segments: 7, zero_window_s: 0.25, ..ProgramTotals::default() };
    (web.rtt_counts[2], web.rtt_counts[RTT_BOUNDS_S.len()], web.rtt_sum_s) = (3, 1, 20.5);
    totals.programs.insert("web \"x\"".to_owned(), web);
    totals.programs.insert(String::new(), ProgramTotals { received_bytes: 9, ..ProgramTotals::default() });
    totals.count(SocketState::SynSent);
    totals.closed_missed = Some(4);
    totals.tcp_memory = Some(TcpMemoryUse { used_bytes: 1, pressure_bytes: 2, limit_bytes: 3 });
    totals
}

fn exported() -> Value {
    let resource = [("service.name".to_owned(), "thalweg".to_owned())];
    let period = OtlpPeriod { from_ns: 1_764_000_000_000_000_000, until_ns: 1_764_000_001_000_000_000 };
    serde_json::from_slice(&otlp_request(&totals(), &resource, period)).expect("JSON")
}

fn metric<'a>(document: &'a Value, name: &str) -> &'a Value {
    let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
    metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn an_export_says_whose_it_is_and_since_when() {
    let document = exported();
    let resource = &document["resourceMetrics"][0];
    let attribute = &resource["resource"]["attributes"][0];
    assert_eq!((&attribute["key"], &attribute["value"]["stringValue"]), (&"service.name".into(), &"thalweg".into()));
    assert_eq!(resource["scopeMetrics"][0]["scope"]["name"], "thalweg.watch");
    let io = metric(&document, "thalweg.tcp.io");
    assert_eq!(
        (&io["unit"], &io["sum"]["aggregationTemporality"], &io["sum"]["isMonotonic"]),
        (&"By".into(), &2.into(), &true.into())
    );
    // Programs by name: of none, then the web server; what was sent, then what was received.
    let points = io["sum"]["dataPoints"].as_array().expect("points");
    assert_eq!(points.len(), 4);
    let sent = &points[1];
    assert_eq!(sent["asInt"], (u64::MAX / 2).to_string());
    assert_eq!(sent["startTimeUnixNano"], "1764000000000000000");
    assert_eq!(sent["timeUnixNano"], "1764000001000000000");
    assert_eq!(sent["attributes"][0]["value"]["stringValue"], "web \"x\"");
    assert_eq!(sent["attributes"][1]["value"]["stringValue"], "transmit");
    assert_eq!(
        (&points[2]["attributes"][0]["value"]["stringValue"], &points[2]["asInt"]),
        (&"unknown".into(), &"9".into())
    );
    let states = metric(&document, "thalweg.tcp.connection.count");
    assert_eq!(states["sum"]["isMonotonic"], false);
    let opening = states["sum"]["dataPoints"].as_array().expect("points").iter().find(|point| point["asInt"] == "1");
    assert_eq!(opening.expect("one")["attributes"][0]["value"]["stringValue"], "syn_sent");
}

#[test]
fn a_histogram_has_a_bucket_more_than_bounds() {
    let document = exported();
    let points = metric(&document, "thalweg.tcp.rtt")["histogram"]["dataPoints"].as_array().expect("points");
    let web = &points[1];
    let (bounds, buckets) = (&web["explicitBounds"], web["bucketCounts"].as_array().expect("buckets"));
    assert_eq!(bounds.as_array().expect("bounds").len() + 1, buckets.len());
    assert_eq!(
        (&web["count"], &web["sum"], &buckets[2], buckets.last()),
        (&"4".into(), &20.5.into(), &"3".into(), Some(&"1".into()))
    );
}

#[test]
fn what_prometheus_reads_is_exported_too_under_names_of_the_conventions() {
    let document = exported();
    let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
    let names: BTreeSet<&str> = metrics.iter().filter_map(|metric| metric["name"].as_str()).collect();
    assert_eq!(names.len(), metrics.len(), "a name is one metric");
    // Two directions are one metric there; all others have one each.
    let exposition = crate::exposition(&totals());
    let of_prometheus = exposition.lines().filter(|line| line.starts_with("# TYPE")).count();
    assert_eq!(names.len() + 1, of_prometheus, "{names:?}");
    for name in &names {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || "._".contains(c)), "{name}");
        assert!(!["total", "bytes", "seconds"].iter().any(|unit| name.ends_with(unit)), "{name}");
        assert!(!names.iter().any(|other| other.starts_with(&format!("{name}."))), "{name} is a name and a namespace");
    }
    for metric in metrics {
        let data = metric.get("sum").or_else(|| metric.get("histogram")).expect("data");
        assert!(!data["dataPoints"].as_array().expect("points").is_empty(), "{metric}");
    }
}

#[test]
fn nothing_seen_is_no_metric_without_points() {
    let period = OtlpPeriod { from_ns: 1, until_ns: 2 };
    let document: Value = serde_json::from_slice(&otlp_request(&Totals::default(), &[], period)).expect("JSON");
    let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
    assert_eq!(metrics.len(), 1, "sockets by state, all of them none");
}
