//! The metrics by program: their names, what they mean, and where their values come from.

use crate::totals::ProgramTotals;

/// What the metrics with labels of their own mean.
pub(crate) const SOCKETS: &str = "TCP sockets by state";
pub(crate) const LIMITED: &str = "Time in which sockets sent or waited, by what limited them";
pub(crate) const RTT: &str = "Smoothed round trip of each socket that delivered data, at each refresh";
pub(crate) const MEMORY: &str = "Memory of all TCP sockets of the host";
pub(crate) const MEMORY_LIMIT: &str = "net.ipv4.tcp_mem: buffers shrink from pressure on, limit is the most";

pub(crate) const CLOSED_MISSED: &str = "Connections that ended while the buffer of the kernel's reports was full";

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    Count(u64),
    Seconds(f64),
}

/// One value for each program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByProgram {
    /// What follows `thalweg_tcp_` for Prometheus.
    pub(crate) prometheus: &'static str,
    /// What follows `thalweg.tcp.` for OpenTelemetry. Those that follow each other with one name are one metric.
    pub(crate) open_telemetry: &'static str,
    /// The attribute that tells those apart.
    pub(crate) attribute: Option<(&'static str, &'static str)>,
    /// Its unit as UCUM writes it.
    pub(crate) unit: &'static str,
    /// It never falls.
    pub(crate) is_counter: bool,
    pub(crate) help: &'static str,
    pub(crate) figure: fn(&ProgramTotals) -> Figure,
}

const fn counter(
    names: (&'static str, &'static str),
    unit: &'static str,
    help: &'static str,
    figure: fn(&ProgramTotals) -> Figure,
) -> ByProgram {
    ByProgram { prometheus: names.0, open_telemetry: names.1, attribute: None, unit, is_counter: true, help, figure }
}

/// Source of the names: Prometheus' conventions (base units, `_total`); OpenTelemetry's semantic conventions (no unit in a name,
/// `io` with `network.io.direction`, `usage`, `count`, `time`).
pub(crate) const BY_PROGRAM: [ByProgram; 11] = [
    ByProgram {
        attribute: Some(("network.io.direction", "transmit")),
        ..counter(("sent_bytes_total", "io"), "By", "Payload acknowledged by peers", |p| Figure::Count(p.sent_bytes))
    },
    ByProgram {
        attribute: Some(("network.io.direction", "receive")),
        ..counter(("received_bytes_total", "io"), "By", "Payload received in order", |p| {
            Figure::Count(p.received_bytes)
        })
    },
    counter(
        ("sent_segments_total", "segments.sent"),
        "{segment}",
        "Segments sent with payload, retransmissions included",
        |p| Figure::Count(p.sent_segments),
    ),
    counter(("retransmitted_segments_total", "segments.retransmitted"), "{segment}", "Segments sent again", |p| {
        Figure::Count(p.retransmitted_segments)
    }),
    counter(
        ("retransmission_timeouts_total", "retransmission.timeouts"),
        "{timeout}",
        "Retransmission timeouts (Linux 6.7 and later)",
        |p| Figure::Count(p.timeouts),
    ),
    counter(
        ("spurious_retransmissions_total", "retransmission.spurious"),
        "{segment}",
        "Segments sent again that the peer had already, by DSACK",
        |p| Figure::Count(p.spurious_segments),
    ),
    counter(("reordering_events_total", "reordering.events"), "{event}", "Segments found to be late, not lost", |p| {
        Figure::Count(p.reordering)
    }),
    counter(
        ("closed_connections_total", "connection.closed"),
        "{connection}",
        "Connections whose end the kernel reported",
        |p| Figure::Count(p.closed),
    ),
    counter(
        ("zero_window_seconds_total", "zero_window.time"),
        "s",
        "Time with data behind a closed window, summed over sockets",
        |p| Figure::Seconds(p.zero_window_s),
    ),
    ByProgram {
        is_counter: false,
        ..counter(
            ("zero_window_sockets", "zero_window.connection.count"),
            "{connection}",
            "Sockets with data behind a closed window",
            |p| Figure::Count(p.zero_window_sockets),
        )
    },
    ByProgram {
        is_counter: false,
        ..counter(("send_queue_bytes", "send_queue.usage"), "By", "Bytes written and not yet acknowledged", |p| {
            Figure::Count(p.queued_bytes)
        })
    },
];

/// A program's name as metrics have it.
pub(crate) const fn shown(program: &str) -> &str {
    if program.is_empty() { "unknown" } else { program }
}
