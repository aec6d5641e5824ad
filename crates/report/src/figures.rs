//! Figures as people say them: `452 Mb/s`, `801 ms`, `4.0 MiB`; and which figure of an experiment leads.

pub use thalweg_units::figures::{bytes, count, counted, data, elapsed, milliseconds, percent, rate, times};

use std::collections::HashSet;
use thalweg_model::{Applicability, ArmReport, Metric, Metrics, Remedy, Side};

/// Which way is better for a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better: a rate.
    More,
    /// Less is better: a time, a loss.
    Less,
    /// Neither: it explains, it does not score.
    Neither,
}

/// A figure's name, taken apart: what it is called, its unit, and which way is better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Its name in the document; a member of a group after a dot, as in `time_to_bytes_ms.1000000`.
    pub name: String,
    /// What a table calls it.
    pub label: String,
    /// Which way is better.
    pub better: Better,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    BitsPerSecond,
    PerSecond,
    Milliseconds,
    Seconds,
    Bytes,
    Count,
}

impl Figure {
    /// Reads a metric's name. The name's ending gives the unit.
    pub fn named(name: &str) -> Self {
        let endings = [
            ("_bps", Unit::BitsPerSecond, Better::More),
            ("_per_s", Unit::PerSecond, Better::More),
            ("_ms", Unit::Milliseconds, Better::Less),
            ("_s", Unit::Seconds, Better::Less),
            ("_bytes", Unit::Bytes, Better::Neither),
            ("_packets", Unit::Count, Better::Neither),
        ];
        let ending = |segment: &'_ str| {
            endings.into_iter().find_map(|(end, unit, better)| Some((segment.strip_suffix(end)?.len(), unit, better)))
        };
        // Whose it is comes first: a part of a mixed workload, a topic.
        let segments: Vec<&str> = name.split('.').collect();
        let first = if segments[0] == "topics" { segments.len().min(3) - 1 } else { 0 };
        let at = (first..segments.len()).rev().find(|at| ending(segments[*at]).is_some()).unwrap_or(first);
        let whose = segments[..at].strip_prefix(&["topics"]).unwrap_or(&segments[..at]).join(" ");
        let (group, member) = (segments[at], segments[at + 1..].join("."));
        let member = Some(member.as_str()).filter(|member| !member.is_empty());
        let (len, unit, better) = ending(group).unwrap_or((group.len(), Unit::Count, Better::Neither));
        let stem = &group[..len];
        let label = match (stem, member) {
            ("goodput_steady", None) => "steady".to_owned(),
            ("transactions", None) => "transactions".to_owned(),
            ("time_to_bytes", Some(bytes)) => format!("to {}", bytes.parse().map_or(bytes.to_owned(), round_bytes)),
            ("latency", Some(part)) => percentile(part),
            ("retransmission_timeouts", None) => "timeouts".to_owned(),
            ("rtt", None) => "RTT".to_owned(),
            ("cwnd_max", None) => "largest cwnd".to_owned(),
            (stem, None) => stem.replace('_', " "),
            (stem, Some(member)) => format!("{} {member}", stem.replace('_', " ")),
        };
        let label = if whose.is_empty() { label } else { format!("{whose} {label}") };
        let better = if matches!(stem, "rtt") { Better::Neither } else { better };
        Self { name: name.to_owned(), label, better, unit }
    }

    /// Prints a value of this figure with its unit.
    pub fn print(&self, value: f64) -> String {
        match self.unit {
            Unit::BitsPerSecond => rate(value),
            Unit::PerSecond => format!("{}/s", thalweg_units::figures::digits(value)),
            Unit::Milliseconds => milliseconds(value),
            Unit::Seconds => milliseconds(value * 1e3),
            Unit::Bytes => bytes(value),
            Unit::Count => count(value),
        }
    }

    /// Prints a range of values, with one unit where both have the same: `584 … 626 ms`.
    pub fn print_range(&self, low: f64, high: f64) -> String {
        let (low, high) = (self.print(low), self.print(high));
        match (low.rsplit_once(' '), high.rsplit_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} … {high}"),
            _ => format!("{low} … {high}"),
        }
    }

    /// What it is, in words that stand alone.
    pub fn in_words(&self) -> String {
        match self.name.as_str() {
            "goodput_bps" => "goodput, the mean over the whole transfer".to_owned(),
            "goodput_steady_bps" => "steady goodput, after the first second".to_owned(),
            "transactions_per_s" => "transactions per second".to_owned(),
            name if name.starts_with("time_to_bytes_ms.") => format!("time {}", self.label),
            _ => self.label.clone(),
        }
    }

    /// The figure as `metrics` hold it.
    pub fn of<'a>(&self, metrics: &'a Metrics) -> Option<&'a Metric> {
        Metric::find(metrics, &self.name.split('.').collect::<Vec<_>>())
    }

    /// How many times better `value` is than `base`; `None` where neither way is better or nothing can be divided.
    pub fn times_better(&self, value: f64, base: f64) -> Option<f64> {
        let ratio = match self.better {
            Better::More => value / base,
            Better::Less => base / value,
            Better::Neither => return None,
        };
        ratio.is_finite().then_some(ratio)
    }
}

/// The figures a table of `arms` shows, those that matter most first.
///
/// The first is the one the arms are compared by: transactions per second where there are transactions, else the time
/// to the most bytes, else the steady rate if every arm has one, else the mean rate. Of topics it is each one's 99th percentile, and of the
/// user's own programs what they printed; several workloads at once have their leading figures one after the other. A count of losses that is 0 in every arm distinguishes no arm
/// from another and is left out; see [`nothing_lost`].
pub fn leading(arms: &[ArmReport]) -> Vec<Figure> {
    let has = |figure: &Figure| arms.iter().any(|arm| figure.of(&arm.metrics).and_then(Metric::value).is_some());
    let distinguishes = |figure: &Figure| {
        !ZERO_IS_NO_NEWS.contains(&figure.name.rsplit('.').next().unwrap_or_default())
            || arms.iter().any(|arm| figure.of(&arm.metrics).is_some_and(|metric| !always_zero(metric)))
    };
    // A keyframe's size among the byte counts would be shown twice.
    let keyframe = Figure::named("first_keyframe_ms");
    let is_shown_already = |figure: &Figure| {
        figure.name.starts_with("time_to_bytes_ms.")
            && arms.iter().all(|arm| {
                let keyframe = keyframe.of(&arm.metrics);
                keyframe.is_some() && keyframe == figure.of(&arm.metrics)
            })
    };
    let members = |group: &str| -> Vec<String> {
        let mut names: Vec<String> = arms
            .iter()
            .filter_map(|arm| match arm.metrics.get(group) {
                Some(Metric::Group(members)) => Some(members.keys().cloned()),
                _ => None,
            })
            .flatten()
            .collect();
        names.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b)));
        names.dedup();
        names
    };
    let mut names: Vec<String> =
        members("topics").iter().map(|topic| format!("topics.{topic}.latency_ms.p99")).collect();
    names.extend(members("topics").iter().map(|topic| format!("topics.{topic}.missed_deadlines")));
    names.extend(of_programs(arms));
    names.push("transactions_per_s".to_owned());
    // The last byte counts most; the earlier ones follow it from the largest down.
    names.extend(members("time_to_bytes_ms").iter().rev().map(|member| format!("time_to_bytes_ms.{member}")));
    for name in ["first_keyframe_ms", "goodput_steady_bps", "goodput_bps"] {
        names.push(name.to_owned());
    }
    for part in ["p50", "p99", "max"] {
        names.push(format!("latency_ms.{part}"));
    }
    for name in [
        "retransmits",
        "retransmission_timeouts",
        "rtt_ms",
        "first_byte_ms",
        "connect_ms",
        "cwnd_max_packets",
        "loss_episodes",
        "duration_s",
    ] {
        names.push(name.to_owned());
    }
    let mut groups: Vec<&String> = arms.iter().flat_map(|arm| arm.metrics.keys()).collect();
    groups.sort_unstable();
    groups.dedup();
    names.extend(groups.iter().flat_map(|group| OF_A_PART.map(|name| format!("{group}.{name}"))));
    order_goodputs(&mut names, arms);
    // Of a command that ran once, its duration is among the programs' figures already.
    let mut known = HashSet::new();
    names.retain(|name| known.insert(name.clone()));
    names
        .iter()
        .map(|name| Figure::named(name))
        .filter(has)
        .filter(distinguishes)
        .filter(|figure| !is_shown_already(figure))
        .collect()
}

/// Puts the mean rate before the steady one where an arm has no steady rate, because it ends soon after the first second.
fn order_goodputs(names: &mut [String], arms: &[ArmReport]) {
    let has = |arm: &ArmReport, name: &str| Metric::named(&arm.metrics, name).is_some();
    for at in 1..names.len() {
        let (steady, mean) = (&names[at - 1], &names[at]);
        let is_pair = steady.ends_with("goodput_steady_bps") && mean.ends_with("goodput_bps");
        if is_pair && arms.iter().any(|arm| has(arm, mean) && !has(arm, steady)) {
            names.swap(at - 1, at);
        }
    }
}

/// What the user's own programs printed, and how long they took; of several runs the median.
fn of_programs(arms: &[ArmReport]) -> Vec<String> {
    let mut names = Vec::new();
    for metrics in arms.iter().map(|arm| &arm.metrics).filter(|metrics| metrics.contains_key("runs")) {
        let printed = metrics.keys().filter(|name| !OF_A_COMMAND.contains(&name.as_str())).map(String::as_str);
        for name in printed.chain(["duration_s", "client_exit"]) {
            let name = match metrics.get(name) {
                Some(Metric::Group(_)) => format!("{name}.p50"),
                _ => name.to_owned(),
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// Whether retransmissions were counted in every arm, and there were none.
pub fn nothing_lost(arms: &[ArmReport]) -> bool {
    let retransmits = Figure::named("retransmits");
    !arms.is_empty() && arms.iter().all(|arm| retransmits.of(&arm.metrics).is_some_and(always_zero))
}

/// A name or a sentence from a capture or a file made fit to print: no control or direction-changing characters.
///
/// A capture's file name or a claim that quotes one could otherwise carry terminal escapes, or turn the line around
/// (Unicode bidirectional controls, UAX #9).
pub fn clean(text: &str) -> String {
    let unfit = |c: char| {
        c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if unfit(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a count is 0, in every repeat.
fn always_zero(metric: &Metric) -> bool {
    match metric {
        Metric::Summary { max, .. } => *max == 0.0,
        metric => metric.value() == Some(0.0),
    }
}

/// Byte counts people chose: decimal where they are round in decimals, else binary.
fn round_bytes(value: u64) -> String {
    match value {
        v if v % 1_000_000 == 0 => format!("{} MB", count(v as f64 / 1e6)),
        v if v % (1 << 20) == 0 => format!("{} MiB", v >> 20),
        v if v % 1000 == 0 => format!("{} kB", v / 1000),
        v if v % 1024 == 0 => format!("{} KiB", v >> 10),
        v => format!("{} B", count(v as f64)),
    }
}

fn percentile(part: &str) -> String {
    match part.strip_prefix('p') {
        Some(digits) if digits.len() > 2 && digits.is_ascii() => format!("latency p{}.{}", &digits[..2], &digits[2..]),
        _ => format!("latency {part}"),
    }
}

/// Figures a command has whatever its programs print.
const OF_A_COMMAND: [&str; 11] = [
    "client_exit",
    "client_received_bytes",
    "dropped_packets",
    "duration_s",
    "failed_runs",
    "loss_episodes",
    "marked_packets",
    "retransmission_timeouts",
    "retransmits",
    "runs",
    "server_exit",
];
/// Figures that lead a part of a mixed workload, or cross traffic.
const OF_A_PART: [&str; 9] = [
    "transactions_per_s",
    "first_keyframe_ms",
    "goodput_steady_bps",
    "goodput_bps",
    "latency_ms.p50",
    "latency_ms.p99",
    "missed_deadlines",
    "drain_bps",
    "lost_packets",
];
/// Counts that tell no arm from another where they are 0 in all.
const ZERO_IS_NO_NEWS: [&str; 6] =
    ["retransmits", "retransmission_timeouts", "loss_episodes", "missed_deadlines", "lost_packets", "client_exit"];

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::INFINITY)
}

/// What to think of before a remedy is applied.
pub(crate) fn caution(remedy: &Remedy) -> Option<&'static str> {
    let on = |side: Side| remedy.changes.iter().any(|change| change.side == side);
    match remedy.applicability {
        Applicability::Safe => None,
        Applicability::NeedsThought => Some("Think first: it changes what other connections of the host do, too."),
        Applicability::OtherSide => Some(match (on(Side::Client), on(Side::Server)) {
            (true, false) => "For the other side: it is set on the client, and this was measured beside the server.",
            (false, true) => "For the other side: it is set on the server, and this was measured beside the client.",
            _ => "For both sides: it is set on both hosts, and this was measured beside one of them.",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_say_them() {
        assert_eq!(rate(452e6), "452 Mb/s");
        assert_eq!(rate(2.893e9), "2.89 Gb/s");
        assert_eq!(rate(999_600.0), "1.00 Mb/s");
        assert_eq!(rate(0.0), "0 b/s");
        assert_eq!(milliseconds(35.7), "35.7 ms");
        assert_eq!(milliseconds(1214.3), "1,214 ms");
        assert_eq!(milliseconds(0.25), "250 µs");
        assert_eq!(milliseconds(12_345.0), "12.3 s");
        assert_eq!((elapsed(8.917), elapsed(0.677)), ("8.92 s".to_owned(), "677 ms".to_owned()));
        assert_eq!(bytes(4_194_304.0), "4.00 MiB");
        assert_eq!(data(5e8), "500 MB");
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(percent(0.972), "97 %");
        assert_eq!(percent(0.001), "<1 %");
        assert_eq!(percent(0.9999), "99.9 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(times(6.38), "6.38×");
    }

    #[test]
    fn a_name_tells_label_unit_and_which_way_is_better() {
        let figure = Figure::named("time_to_bytes_ms.1000000");
        assert_eq!((figure.label.as_str(), figure.better), ("to 1 MB", Better::Less));
        assert_eq!(figure.print(801.2), "801 ms");
        assert_eq!(figure.times_better(602.0, 801.0).map(times).as_deref(), Some("1.33×"));
        assert_eq!(figure.print_range(584.0, 626.0), "584 … 626 ms");
        assert_eq!(figure.print_range(0.5, 1.5), "500 µs … 1.50 ms");
        assert_eq!(Figure::named("latency_ms.p999").label, "latency p99.9");
        assert_eq!(Figure::named("topics.camera.latency_ms.p99").label, "camera latency p99");
        assert_eq!(Figure::named("topics.x_ms.missed_deadlines").print(3.0), "3");
        let part = Figure::named("bulk.goodput_bps");
        assert_eq!((part.label.as_str(), part.print(452e6).as_str()), ("bulk goodput", "452 Mb/s"));
        assert_eq!(Figure::named("goodput_bps").times_better(2.0, 0.0), None);
        assert_eq!(Figure::named("cwnd_max_packets").print(1234.0), "1,234");
    }

    #[test]
    fn what_could_drive_a_terminal_is_taken_out() {
        assert_eq!(clean("a\x1b[31mb\u{202e}c\nd"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d");
    }
}
