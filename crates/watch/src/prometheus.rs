//! The sums as Prometheus reads them.
//!
//! Source: the text exposition format, version 0.0.4; names after its conventions (base units, `_total`).

use crate::metrics::{BY_PROGRAM, CLOSED_MISSED, Figure, LIMITED, MEMORY, MEMORY_LIMIT, RTT, SOCKETS, shown};
use crate::totals::{ProgramTotals, RTT_BOUNDS_S, Totals};
use std::fmt::Write;
use thalweg_model::{LimitName, SocketState};

/// All sums in the text format.
#[must_use]
pub fn exposition(totals: &Totals) -> String {
    let mut text = String::new();
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(text, "# HELP thalweg_tcp_{name} {help}\n# TYPE thalweg_tcp_{name} {kind}");
    };
    head(&mut text, "sockets", "gauge", SOCKETS);
    for (state, count) in SocketState::LIVE.iter().zip(totals.sockets) {
        let _ = writeln!(text, "thalweg_tcp_sockets{{state=\"{state}\"}} {count}");
    }
    for metric in BY_PROGRAM {
        let name = metric.prometheus;
        head(&mut text, name, if metric.is_counter { "counter" } else { "gauge" }, metric.help);
        for (program, total) in &totals.programs {
            let process = label(program);
            let _ = match (metric.figure)(total) {
                Figure::Count(count) => writeln!(text, "thalweg_tcp_{name}{{process=\"{process}\"}} {count}"),
                Figure::Seconds(seconds) => writeln!(text, "thalweg_tcp_{name}{{process=\"{process}\"}} {seconds}"),
            };
        }
    }
    head(&mut text, "limited_seconds_total", "counter", LIMITED);
    for (program, total) in &totals.programs {
        for (limit, seconds) in LimitName::ALL.iter().zip(total.limited_s) {
            let _ = writeln!(
                text,
                "thalweg_tcp_limited_seconds_total{{process=\"{}\",cause=\"{}\"}} {seconds}",
                label(program),
                limit.as_str()
            );
        }
    }
    head(&mut text, "rtt_seconds", "histogram", RTT);
    for (program, total) in &totals.programs {
        histogram(&mut text, &label(program), total);
    }
    if let Some(missed) = totals.closed_missed {
        head(&mut text, "missed_connections_total", "counter", CLOSED_MISSED);
        let _ = writeln!(text, "thalweg_tcp_missed_connections_total {missed}");
    }
    if let Some(memory) = totals.tcp_memory {
        head(&mut text, "memory_bytes", "gauge", MEMORY);
        let _ = writeln!(text, "thalweg_tcp_memory_bytes {}", memory.used_bytes);
        head(&mut text, "memory_limit_bytes", "gauge", MEMORY_LIMIT);
        let _ = writeln!(text, "thalweg_tcp_memory_limit_bytes{{threshold=\"pressure\"}} {}", memory.pressure_bytes);
        let _ = writeln!(text, "thalweg_tcp_memory_limit_bytes{{threshold=\"limit\"}} {}", memory.limit_bytes);
    }
    text
}

fn histogram(text: &mut String, process: &str, total: &ProgramTotals) {
    let name = "thalweg_tcp_rtt_seconds";
    let mut count = 0;
    for (bound, here) in RTT_BOUNDS_S.iter().zip(total.rtt_counts) {
        count += here;
        let _ = writeln!(text, "{name}_bucket{{process=\"{process}\",le=\"{bound}\"}} {count}");
    }
    count += total.rtt_counts[RTT_BOUNDS_S.len()];
    let _ = writeln!(text, "{name}_bucket{{process=\"{process}\",le=\"+Inf\"}} {count}");
    let _ = writeln!(text, "{name}_sum{{process=\"{process}\"}} {}", total.rtt_sum_s);
    let _ = writeln!(text, "{name}_count{{process=\"{process}\"}} {count}");
}

/// A label's value: backslash, quote and line feed are escaped.
fn label(value: &str) -> String {
    shown(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
