//! An interval of an interface's traffic as text.

use super::FlowId;
use thalweg_model::{BurstDirection, BurstFlow, BurstFlowSide, BurstsReport, ResentSource};
use thalweg_units::figures;

/// The longest packets of common Ethernet, from the IP header on.
const JUMBO_BYTES: u64 = 9_000;
/// The place of the bins of a millisecond among those of a flow.
const MILLISECOND: usize = 1;

/// An interval as text.
#[must_use]
pub fn bursts_text(report: &BurstsReport) -> String {
    let (elapsed, source) = (figures::elapsed(report.interval_s), report.source.kind.as_str());
    let mut text = format!("{}, {elapsed}, by {source}\n", report.interface);
    text += &format!(
        "{:<9}{:>8}{:>8}{:>11}{:>11}{:>11}{:>11}{:>11}\n",
        "", "BIN", "BUSY", "P50", "P90", "P99", "P99.9", "MOST"
    );
    for (name, direction) in [("sent", &report.sent), ("received", &report.received)] {
        text += &direction_text(name, direction, report.interval_s);
    }
    text += &flows_text(report);
    if report.missed_packets > 0 {
        text += &format!("{} were not counted: the ring was full\n", figures::counted(report.missed_packets, "packet"));
    }
    text
}

fn direction_text(name: &str, direction: &BurstDirection, interval_s: f64) -> String {
    let mut text = String::new();
    for (place, bins) in direction.bins.iter().enumerate() {
        let rates = [bins.p50_bps, bins.p90_bps, bins.p99_bps, bins.p999_bps, bins.max_bps];
        let rates: Vec<String> = rates.iter().map(|rate| format!("{:>11}", figures::rate(*rate))).collect();
        let busy = figures::percent(bins.busy as f64 / bins.count.max(1) as f64);
        let name = if place == 0 { name } else { "" };
        let width = figures::milliseconds(bins.width_us as f64 / 1e3);
        text += &format!("{name:<9}{width:>8}{busy:>8}{}\n", rates.concat());
    }
    let rate = direction.bytes as f64 * 8.0 / interval_s.max(1e-9);
    let (packets, bytes) = (figures::counted(direction.packets, "packet"), figures::data(direction.bytes as f64));
    text += &format!("         {packets}, {bytes}, {} on average", figures::rate(rate));
    if let Some(port) = direction.port {
        text +=
            &format!("; a port of {} and {}: ", figures::rate(port.rate_bps), figures::bytes(port.buffer_bytes as f64));
        text += &if port.overflows > 0 {
            let times = figures::counted(port.overflows, "burst");
            let verb = if port.overflows == 1 { "overflows" } else { "overflow" };
            format!("{times} {verb} it, {} too many", figures::bytes(port.excess_bytes as f64))
        } else {
            format!("holds all, {} at most", figures::bytes(port.queue_max_bytes as f64))
        };
    }
    text.push('\n');
    // One that is longer than a wire's packets took its time there, and is counted at one instant.
    if direction.packet_max_bytes > JUMBO_BYTES {
        let size = figures::bytes(direction.packet_max_bytes as f64);
        let took = figures::milliseconds(direction.packet_max_bytes as f64 * 8.0 / 1e9 * 1e3);
        text += &format!(
            "         packets of up to {size} are joined by offloads and count at one instant: on a wire of 1 Gb/s they take {took}\n"
        );
    }
    text
}

/// A table of flows: rates on average and of bins of a millisecond, in the direction in which more passed.
fn flows_text(report: &BurstsReport) -> String {
    if report.flows.is_empty() {
        return String::new();
    }
    let name = |flow: &BurstFlow| match flow.ends {
        Some(ends) => FlowId { protocol: ends.protocol, local: ends.local, peer: ends.peer }.to_string(),
        None => "all others".to_owned(),
    };
    let wide = report.flows.iter().map(|flow| name(flow).chars().count()).max().unwrap_or(0);
    let has_port = report.sent.port.is_some();
    let mut text = format!("{:<wide$}{:>10}{:>11}{:>11}{:>11}", "FLOW", "", "MEAN", "P99 1 ms", "MOST 1 ms");
    text += &if has_port { format!("{:>11}", "OVERFLOW") } else { String::new() };
    text += "  RESENT\n";
    for flow in &report.flows {
        let (way, side) =
            if flow.sent.bytes >= flow.received.bytes { ("sent", &flow.sent) } else { ("received", &flow.received) };
        let mean = side.bytes as f64 * 8.0 / report.interval_s.max(1e-9);
        let of = |rate: fn(&thalweg_model::BurstBins) -> f64| side.bins.get(MILLISECOND).map_or(0.0, rate);
        let rates = [mean, of(|bins| bins.p99_bps), of(|bins| bins.max_bps)];
        let rates: Vec<String> = rates.iter().map(|rate| format!("{:>11}", figures::rate(*rate))).collect();
        text += &format!("{:<wide$}{way:>10}{}", name(flow), rates.concat());
        if has_port {
            text += &format!("{:>11}", overflow_share(side));
        }
        text += &format!("  {}\n", resent_text(flow, has_port));
    }
    if report.resent.as_ref().is_some_and(|resent| resent.source == ResentSource::SockDiag) {
        text += "what was sent again is counted by sockets, at the end of the interval\n";
    }
    let missed = report.resent.as_ref().map_or(0, |resent| resent.missed);
    if missed > 0 {
        text += &format!("{} sent again could not be told apart\n", figures::counted(missed, "segment"));
    }
    text
}

/// Of a flow's bytes, those that came while the buffer overflowed.
fn overflow_share(side: &BurstFlowSide) -> String {
    figures::percent(side.overflow_bytes as f64 / side.bytes.max(1) as f64)
}

fn resent_text(flow: &BurstFlow, has_port: bool) -> String {
    let Some(resent) = flow.resent else { return "-".to_owned() };
    let mut text = resent.segments.to_string();
    if let Some(classes) = resent.classes.filter(|_| resent.segments > 0) {
        let named = [
            (classes.fast, "fast"),
            (classes.timeout, "by timeout"),
            (classes.probe, "as probe"),
            (classes.syn, "SYN"),
        ];
        let named: Vec<String> =
            named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
        text += &format!(": {}", named.join(", "));
        if has_port {
            text += &format!("; {} after an overflow", classes.after_overflow);
        }
    }
    text
}
