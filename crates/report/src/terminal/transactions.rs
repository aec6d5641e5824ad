//! Requests and responses between two hosts, for a terminal: the summary as netperf lays it out, and the percentiles behind it.

use super::page::{Page, Style};
use crate::figures;
use thalweg_model::{Percentiles, TransactionReport};

/// Prints a load of transactions.
pub fn transactions(report: &TransactionReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let kind = if report.kind == "crr" { "TCP connect/request/response" } else { "TCP request/response" };
    let streams = figures::counted(u64::from(report.streams), "stream");
    let head = page.paint(&format!("{kind} with {}: {streams}", report.peer), Style::Strong);
    page.line(&head);
    let heading = [
        ["send", "receive", "request", "response", "elapsed", "transactions"],
        ["buffer", "buffer", "size", "size", "time", "per second"],
    ];
    for line in heading {
        let cells: Vec<String> = line.iter().map(|cell| format!("{cell:>14}")).collect();
        let line = page.paint(&cells.concat(), Style::Faint);
        page.line(&line);
    }
    let bytes = |bytes: u64| figures::bytes(bytes as f64);
    let row = [
        bytes(report.send_buffer_bytes),
        bytes(report.receive_buffer_bytes),
        figures::data(f64::from(report.request_bytes)),
        figures::data(f64::from(report.response_bytes)),
        format!("{:.2} s", report.duration_s),
        format!("{:.2}", report.transactions_per_s),
    ];
    page.line(&row.iter().map(|cell| format!("{cell:>14}")).collect::<String>());
    page.gap();
    let mut times = |name: &str, times: Option<Percentiles>| {
        if let Some(times) = times {
            let Percentiles { count, p50, p90, p99, p999, max } = times;
            let [p50, p90, p99, p999, max] = [p50, p90, p99, p999, max].map(figures::milliseconds);
            let count = figures::counted(count, "measurement");
            page.line(&format!("{name}p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p999}, max {max}; {count}"));
        }
    };
    times("latency    ", report.latency_ms);
    times("connect    ", report.connect_ms);
    let [total, user, system] = [report.cpu.total_percent, report.cpu.user_percent, report.cpu.system_percent]
        .map(|percent| figures::percent(percent / 100.0));
    page.line(&format!("CPU        {total} (user {user}, system {system})"));
    for (why, count) in &report.failures {
        page.sentence("failed     ", &format!("{count} times: {why}"), Style::Bad);
    }
    page.finish()
}
