//! A load of streams between two hosts, for a terminal: what was asked for, a row for each interval, and both ends' figures.

use super::page::{Page, Style};
use crate::figures::{self, clean};
use thalweg_model::{CpuShare, EndTotal, LimitName, StreamInterval, StreamLoadReport, StreamTest, StreamTotal, Way};

/// Prints a whole test.
pub fn stream_load(report: &StreamLoadReport, width: usize, color: bool) -> String {
    let mut text = stream_load_head(&report.test, report.role, &report.peer, width, color);
    text += &stream_load_rows(&report.intervals, &report.test, width, color);
    text + &stream_load_summary(report, width, color)
}

/// Prints what was asked for, and the heading of the rows. `role` is this end's, `peer` the other end's address.
pub fn stream_load_head(test: &StreamTest, role: &str, peer: &str, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let way = match (test.ways.as_slice(), role) {
        ([_, _], _) => "to and from",
        ([Way::Up], "client") | ([Way::Down], "server") => "to",
        _ => "from",
    };
    let streams = figures::counted(u64::from(test.streams), "stream");
    let mut asked = vec![format!("{} {way} {peer}: {streams}", test.transport.to_uppercase())];
    asked.extend(test.duration_s.map(|seconds| format!("{seconds} s")));
    asked.extend(test.bytes.map(|bytes| figures::data(bytes as f64)));
    asked.extend(test.rate_bps.map(|rate| format!("at most {} each", figures::rate(rate as f64))));
    asked.extend((test.omit_s > 0).then(|| format!("after {} s that do not count", test.omit_s)));
    let asked = page.paint(&asked.join(", "), Style::Strong);
    page.line(&asked);
    let is_udp = test.transport == "udp";
    let sends = test.ways.contains(if role == "client" { &Way::Up } else { &Way::Down });
    let mut heading = format!("{}{:>12}{:>11}{:>12}", label(test, None), "seconds", "data", "rate");
    heading += &match (is_udp, sends) {
        (true, _) => format!("{:>10}{:>16}{:>11}", "packets", "lost", "jitter"),
        (false, true) => format!("{:>7}{:>11}{:>11}  {}", "retr", "cwnd", "RTT", "limited by"),
        (false, false) => String::new(),
    };
    let heading = page.paint(&heading, Style::Faint);
    page.line(&heading);
    page.finish()
}

/// A limit's name. To the kernel a sender that keeps no more than its rate takes has nothing to send.
const fn limit_name(cause: LimitName, test: &StreamTest) -> &'static str {
    match (cause, test.rate_bps) {
        (LimitName::Application, Some(_)) => "pacing-rate",
        _ => cause.as_str(),
    }
}

/// Prints the rows of all streams together.
pub fn stream_load_rows(rows: &[StreamInterval], test: &StreamTest, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    for row in rows.iter().filter(|row| row.stream.is_none()) {
        let seconds = format!("{:.1}…{:.1}", row.start_s, row.end_s);
        let (data, rate) = (figures::data(row.bytes as f64), figures::rate(row.rate_bps));
        let mut line = format!("{}{seconds:>12}{data:>11}{rate:>12}", label(test, Some(row.way)));
        if let Some(tcp) = &row.tcp {
            let limit = tcp.limit.map_or(String::new(), |limit| {
                format!("{} {}", limit_name(limit.cause, test), figures::percent(limit.share))
            });
            let rtt = tcp.rtt_ms.map_or("–".to_owned(), figures::milliseconds);
            let cwnd = figures::bytes(tcp.cwnd_bytes as f64);
            line += &format!("{:>7}{cwnd:>11}{rtt:>11}  {limit}", tcp.retransmits);
        }
        if let Some(udp) = &row.udp {
            let lost = udp.lost.map_or(String::new(), |lost| lost_of(lost, udp.packets));
            let jitter = udp.jitter_ms.map_or(String::new(), figures::milliseconds);
            line += &format!("{:>10}{lost:>16}{jitter:>11}", udp.packets);
        }
        let style = if row.omitted { Style::Faint } else { Style::Plain };
        let end = if row.omitted { "  (does not count)" } else { "" };
        let line = page.paint(&format!("{}{end}", line.trim_end()), style);
        page.line(&line);
    }
    page.finish()
}

/// Prints both ends' figures, and what limited the test.
pub fn stream_load_summary(report: &StreamLoadReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    page.line("");
    let test = &report.test;
    let heading = format!("{:<9}{:>9}{:>12}{:>12}{:>12}{:>12}", "", "stream", "sent", "", "received", "");
    let heading = format!("{heading}{:>16}", if test.transport == "udp" { "lost" } else { "retr" });
    let heading = page.paint(&heading, Style::Faint);
    page.line(&heading);
    for sum in &report.sums {
        let streams: Vec<&StreamTotal> = report.streams.iter().filter(|stream| stream.way == sum.way).collect();
        for stream in streams.iter().filter(|_| streams.len() > 1) {
            page.line(&total(stream));
        }
        let line = page.paint(&total(sum), Style::Strong);
        page.line(&line);
    }
    page.gap();
    for sum in &report.sums {
        if let Some(tcp) = &sum.tcp {
            if let Some(rtt) = tcp.rtt_ms {
                let [p50, p90, p99, max] = [rtt.p50, rtt.p90, rtt.p99, rtt.max].map(figures::milliseconds);
                page.line(&format!("RTT        p50 {p50}, p90 {p90}, p99 {p99}, max {max}"));
            }
            if let Some(verdict) = &tcp.verdict {
                page.sentence("limited    ", &format!("{}: {}", verdict.code, verdict.claim), Style::Plain);
            }
        }
    }
    let other = if report.role == "client" { "server" } else { "client" };
    let mut cpu = format!("CPU        {} {}", report.role, share(&report.cpu.local));
    if let Some(peer) = &report.cpu.peer {
        cpu += &format!("; {other} {}", share(peer));
    }
    page.line(&cpu);
    if let (Some(own), Some(peer)) = (&test.congestion, &test.peer_congestion) {
        page.line(&format!("congestion {} {}; {other} {}", report.role, clean(own), clean(peer)));
    }
    for note in &report.notes {
        page.sentence("note       ", note, Style::Plain);
    }
    if let Some(why) = &report.failure {
        page.sentence("failed     ", why, Style::Bad);
    }
    page.finish()
}

/// Before a row: its direction, where there are two.
fn label(test: &StreamTest, way: Option<Way>) -> String {
    match way {
        _ if test.ways.len() < 2 => String::new(),
        None => format!("{:<5}", ""),
        Some(way) => format!("{:<5}", way.as_str()),
    }
}

fn total(of: &StreamTotal) -> String {
    let end = |end: Option<EndTotal>| {
        let figures = end.map(|end| (figures::data(end.bytes as f64), figures::rate(end.rate_bps)));
        figures.map_or_else(|| format!("{:>12}{:>12}", "–", "–"), |(data, rate)| format!("{data:>12}{rate:>12}"))
    };
    let which = of.stream.map_or("all".to_owned(), |stream| stream.to_string());
    let last = match (&of.udp, of.retransmits) {
        (Some(udp), _) => lost_of(udp.lost, udp.packets),
        (None, Some(count)) => count.to_string(),
        (None, None) => String::new(),
    };
    let line = format!("{:<9}{which:>9}{}{}{last:>16}", of.way.as_str(), end(of.sent), end(of.received));
    match &of.udp {
        Some(udp) => format!("{line}  jitter {}", figures::milliseconds(udp.jitter_ms)),
        None => line,
    }
}

fn lost_of(lost: u64, packets: u64) -> String {
    let part = if packets > 0 { lost as f64 / packets as f64 } else { 0.0 };
    format!("{lost} ({})", figures::percent(part))
}

fn share(cpu: &CpuShare) -> String {
    let [total, user, system] =
        [cpu.total_percent, cpu.user_percent, cpu.system_percent].map(|percent| figures::percent(percent / 100.0));
    format!("{total} (user {user}, system {system})")
}
