//! What a path in real time did.

use crate::figures;
use thalweg_model::{LiveDirection, LiveHostsReport, LivePathReport, Loss, Metric, PathDirection};

/// The report in a few lines: each direction, how late it was, and whether it was as asked for.
pub fn live_path(report: &LivePathReport) -> String {
    let mut lines = vec![format!("path {} after {:.1} s", report.id, report.wall_s)];
    for (name, direction) in [("down", &report.down), ("up", &report.up)] {
        lines.push(format!("  {name:<5}{}", passed(direction)));
        let late = &direction.late_us;
        lines
            .push(format!("       late by {:.0} µs p50, {:.0} µs p99, {:.0} µs at most", late.p50, late.p99, late.max));
    }
    let per_gigabyte = report.cpu_s_per_gb.map_or(String::new(), |cost| format!(", {cost:.2} s for each GB"));
    lines.push(format!("  cpu  {:.2} s{per_gigabyte}", report.cpu_s));
    if report.verdict.faithful {
        lines.push("  as asked for: nothing lost by the emulator, 99 of 100 packets on time".to_owned());
    }
    lines.extend(report.verdict.faults.iter().map(|fault| format!("  not as asked for: {fault}")));
    lines.join("\n")
}

/// One line for a list of paths.
pub fn live_path_line(report: &LivePathReport) -> String {
    let command = figures::clean(&report.command.join(" "));
    let (down, up) = (asked(&report.path.down), asked(&report.path.up));
    let ways = if down == up { down } else { format!("down {down}; up {up}") };
    format!("{:<8}{:>8.0} s  {ways}  {command}", report.id, report.wall_s)
}

/// Delay, rate and loss that are asked for.
fn asked(direction: &PathDirection) -> String {
    let mut parts = vec![format!("delay {}", direction.delay)];
    parts.extend(direction.rate.map(|rate| format!("rate {rate}")));
    parts.extend(direction.trace.as_ref().map(|_| "rate of a trace".to_owned()));
    parts.extend(match &direction.loss {
        Loss::None => None,
        Loss::Random(chance) => Some(format!("loss {}", chance.probability)),
        Loss::GilbertElliott { .. } | Loss::List { .. } => Some("losses".to_owned()),
    });
    parts.join(", ")
}

/// Hosts that are up: a line, then one for each host and for what is between them.
pub fn live_hosts(report: &LiveHostsReport) -> String {
    let name = figures::clean(&report.name);
    let mut lines = vec![format!("{:<8}{:>8.0} s  {} hosts of {name}", report.id, report.wall_s, report.hosts.len())];
    lines.extend(report.hosts.iter().map(|host| format!("  {:<12}{}", host.name, host.address)));
    lines.extend(report.between.iter().map(|line| format!("  {line}")));
    let counted = [
        ("dropped_packets", "packets dropped"),
        ("marked_packets", "packets marked"),
        ("policed_packets", "packets policed"),
    ];
    for (figure, words) in counted {
        if let Some(Metric::Group(places)) = report.figures.get(figure) {
            let some = places.iter().filter_map(|(place, value)| match value {
                Metric::Count(count) if *count > 0 => Some(format!("{} {count}", place.replace('_', " "))),
                _ => None,
            });
            let some: Vec<String> = some.collect();
            if !some.is_empty() {
                lines.push(format!("  {words}: {}", some.join(", ")));
            }
        }
    }
    lines.extend(report.verdict.faults.iter().map(|fault| format!("  not as asked for: {fault}")));
    lines.join("\n")
}

fn passed(direction: &LiveDirection) -> String {
    let mut text = format!(
        "{} packets, {} at {}",
        direction.departed_packets,
        figures::data(direction.departed_bytes as f64),
        figures::rate(direction.rate_bps)
    );
    if direction.queue_max_bytes > 0 {
        text.push_str(&format!("; queue up to {}", figures::data(direction.queue_max_bytes as f64)));
    }
    let dropped: Vec<String> = direction
        .dropped_packets
        .iter()
        .map(|(reason, packets)| format!("{} {packets}", reason.replace('_', " ")))
        .collect();
    if !dropped.is_empty() {
        text.push_str(&format!("; dropped: {}", dropped.join(", ")));
    }
    text
}
