//! The sums as Prometheus reads them.
//!
//! Source: the text exposition format, version 0.0.4; names after its conventions (base units, `_total`).

use crate::totals::{ProgramTotals, RTT_BOUNDS_S, Totals};
use std::fmt::Write;
use thalweg_model::{LimitName, SocketState};

type Figure = fn(&ProgramTotals) -> f64;

/// Series of one value for each program: name, type, help, value.
const BY_PROGRAM: [(&str, &str, &str, Figure); 10] = [
    ("sent_bytes_total", "counter", "Payload acknowledged by peers", |p| p.sent_bytes as f64),
    ("received_bytes_total", "counter", "Payload received in order", |p| p.received_bytes as f64),
    ("sent_segments_total", "counter", "Segments sent with payload, retransmissions included", |p| {
        p.sent_segments as f64
    }),
    ("retransmitted_segments_total", "counter", "Segments sent again", |p| p.retransmitted_segments as f64),
    ("retransmission_timeouts_total", "counter", "Retransmission timeouts (Linux 6.7 and later)", |p| {
        p.timeouts as f64
    }),
    ("spurious_retransmissions_total", "counter", "Segments sent again that the peer had already, by DSACK", |p| {
        p.spurious_segments as f64
    }),
    ("reordering_events_total", "counter", "Segments found to be late, not lost", |p| p.reordering as f64),
    ("zero_window_seconds_total", "counter", "Time with data behind a closed window, summed over sockets", |p| {
        p.zero_window_s
    }),
    ("zero_window_sockets", "gauge", "Sockets with data behind a closed window", |p| p.zero_window_sockets as f64),
    ("send_queue_bytes", "gauge", "Bytes written and not yet acknowledged", |p| p.queued_bytes as f64),
];

/// All sums in the text format.
#[must_use]
pub fn exposition(totals: &Totals) -> String {
    let mut text = String::new();
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(text, "# HELP thalweg_tcp_{name} {help}\n# TYPE thalweg_tcp_{name} {kind}");
    };
    head(&mut text, "sockets", "gauge", "TCP sockets by state");
    for (state, count) in SocketState::ALL.iter().zip(totals.sockets) {
        let _ = writeln!(text, "thalweg_tcp_sockets{{state=\"{state}\"}} {count}");
    }
    for (name, kind, help, value) in BY_PROGRAM {
        head(&mut text, name, kind, help);
        for (program, total) in &totals.programs {
            let _ = writeln!(text, "thalweg_tcp_{name}{{process=\"{}\"}} {}", label(program), value(total));
        }
    }
    head(&mut text, "limited_seconds_total", "counter", "Time in which sockets sent or waited, by what limited them");
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
    head(
        &mut text,
        "rtt_seconds",
        "histogram",
        "Smoothed round trip of each socket that delivered data, at each refresh",
    );
    for (program, total) in &totals.programs {
        histogram(&mut text, &label(program), total);
    }
    if let Some(memory) = totals.tcp_memory {
        head(&mut text, "memory_bytes", "gauge", "Memory of all TCP sockets of the host");
        let _ = writeln!(text, "thalweg_tcp_memory_bytes {}", memory.used_bytes);
        head(
            &mut text,
            "memory_limit_bytes",
            "gauge",
            "net.ipv4.tcp_mem: buffers shrink from pressure on, limit is the most",
        );
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
    let value = if value.is_empty() { "unknown" } else { value };
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
