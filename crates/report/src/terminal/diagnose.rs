//! A diagnosis: for each capture the connections that lose most, and for the first of them why.

use super::bars;
use super::page::{Entry, Page, Style, columns, shorten, table_columns};
use super::sparkline;
use super::totals::totals;
use crate::facts::application;
use crate::figures::{caution, clean, count, counted, data, elapsed, milliseconds, percent, rate, times};
use crate::many::Many;
use thalweg_model::{CaptureReport, Code, DiagnoseReport, Evidence, Flow, Remedy, RequestTiming, Series, Way};

/// Connections listed for each capture.
const LISTED: usize = 20;
/// Connections described in full for each capture.
const DESCRIBED: usize = 3;
/// If a connection lasts this much longer than its data phase, the output says so.
const IDLE: f64 = 1.1;
/// Packet numbers printed with a fact.
const PACKETS: usize = 8;

/// Prints what `thalweg diagnose` found: for each capture its connections, costliest first, and why they were slow.
pub fn diagnose(report: &DiagnoseReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    for (place, capture) in report.captures.iter().enumerate() {
        if place > 0 {
            page.gap();
        }
        self::capture(&mut page, capture, capture.flows.len() as u64, LISTED);
    }
    page.finish()
}

/// Prints what was found in one capture of `connections` connections, of which the report may have the costliest only, with `listed` of them in
/// the list.
pub fn diagnose_capture(capture: &CaptureReport, connections: u64, listed: usize, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    self::capture(&mut page, capture, connections, listed);
    page.finish()
}

/// Prints one connection in full, with its flight against the receiver's window over time where `series` has them.
pub fn diagnose_flow(
    capture: &CaptureReport,
    flow: &Flow,
    series: Option<&Series>,
    width: usize,
    color: bool,
) -> String {
    let mut page = Page::new(width, color);
    page.sentence("", &capture.file, Style::Strong);
    tell(&mut page, flow);
    facts(&mut page, flow);
    if let Some(series) = series.filter(|series| !series.flight_bytes.is_empty()) {
        page.gap();
        sparkline::flight(&mut page, series, "  ");
    }
    page.finish()
}

fn capture(page: &mut Page, capture: &CaptureReport, connections: u64, listed: usize) {
    page.sentence("", &capture.file, Style::Strong);
    let mut facts = vec![
        plural(capture.packets, "packet"),
        format!("{} on the wire", data(capture.bytes as f64)),
        plural(connections, "TCP connection"),
    ];
    if capture.truncated {
        facts.push("the file ends within a record".to_owned());
    }
    page.sentence("", &facts.join(" · "), Style::Faint);
    for note in &capture.notes {
        page.sentence("note: ", note, Style::Plain);
    }
    if connections == 0 {
        page.sentence("", "No TCP connection to tell about.", Style::Plain);
        return;
    }
    if connections > 1 {
        page.gap();
        list(page, &capture.flows, connections, listed);
    }
    if connections > listed as u64 {
        let mut many = Many::default();
        many.add(capture, connections);
        totals(page, &many);
    }
    let mut described: Vec<&Flow> = Vec::new();
    for flow in &capture.flows {
        if let Some(known) = described.iter().find(|known| same(known, flow)) {
            again(page, known, flow);
        } else if described.len() < DESCRIBED {
            tell(page, flow);
            described.push(flow);
        }
    }
}

/// Whether two flows are one connection, captured on two interfaces: the same ends, at overlapping times.
fn same(a: &Flow, b: &Flow) -> bool {
    let elsewhere = a.interface.as_ref().zip(b.interface.as_ref()).is_some_and(|(a, b)| a != b);
    let ends = a.client == b.client && a.server == b.server;
    elsewhere && ends && a.start <= b.start + b.duration_s && b.start <= a.start + a.duration_s
}

/// One line for a connection that another interface already described.
fn again(page: &mut Page, known: &Flow, flow: &Flow) {
    let seen = flow.interface.as_ref().map(|name| format!(", seen on {name}")).unwrap_or_default();
    let (code, share) = (flow.verdict.code(), percent(flow.verdict.share));
    page.gap();
    page.sentence(
        &format!("#{} ", flow.id),
        &format!("is #{}, the same connection{seen}: {code} {share}", known.id),
        Style::Plain,
    );
}

/// One line for each connection, with as many columns as fit.
fn list(page: &mut Page, flows: &[Box<Flow>], connections: u64, listed: usize) {
    let heading = ["", "connection", "verdict", "to gain", "share", "goodput", "retransmits", "min RTT", "data"];
    let rows: Vec<Vec<Entry>> = flows
        .iter()
        .take(listed)
        .map(|flow| {
            let code = flow.verdict.code().as_str();
            let is_known = flow.verdict.code() != Code::Unknown || flow.verdict.share > 0.0;
            vec![
                Entry::new(format!("#{}", flow.id), Style::Faint),
                Entry::new(ends(flow), Style::Plain),
                Entry::new(code, Style::Strong),
                Entry::new(flow.verdict.gain.map_or("–".to_owned(), gain), Style::Plain),
                Entry::new(if is_known { percent(flow.verdict.share) } else { "–".to_owned() }, Style::Plain),
                Entry::new(if flow.goodput_bps > 0.0 { rate(flow.goodput_bps) } else { "–".to_owned() }, Style::Plain),
                Entry::new(count(flow.retransmits.total as f64), Style::Plain),
                Entry::new(flow.rtt_min_ms.map_or("–".to_owned(), milliseconds), Style::Plain),
                Entry::new(data((flow.bytes_up + flow.bytes_down) as f64), Style::Plain),
            ]
        })
        .collect();
    let mut shown = heading.len();
    let (mut head, mut cells) = cut(&heading, &rows, shown);
    while shown > 4 && table_columns(&head, &cells) > page.width {
        shown -= 1;
        (head, cells) = cut(&heading, &rows, shown);
    }
    let over = table_columns(&head, &cells).saturating_sub(page.width);
    if over > 0 {
        let widest = rows.iter().map(|row| row[1].text.chars().count()).max().unwrap_or(0);
        for row in &mut cells {
            row[1].text = shorten(&row[1].text, widest.saturating_sub(over).max(8));
        }
    }
    page.table(&head, &cells, 3);
    let more = connections.saturating_sub(listed as u64);
    if more > 0 {
        page.sentence("  ", &format!("and {}; --json has them all", plural(more, "more")), Style::Faint);
    }
}

fn cut(heading: &[&str], rows: &[Vec<Entry>], shown: usize) -> (Vec<String>, Vec<Vec<Entry>>) {
    let rows = rows.iter().map(|row| row.iter().take(shown).cloned().collect()).collect();
    (heading.iter().take(shown).map(|text| (*text).to_owned()).collect(), rows)
}

/// One connection in full: the claim, where its time went, what shows it, and what to set.
fn tell(page: &mut Page, flow: &Flow) {
    page.gap();
    page.sentence(&format!("#{} ", flow.id), &ends(flow), Style::Plain);
    page.sentence("  ", &flow.verdict.claim(), Style::Strong);
    let mut facts = vec![flow.verdict.code().to_string()];
    facts.extend(crate::facts::shares(flow));
    let of = if flow.verdict.is_of_bursts() { " in bursts" } else { "" };
    facts.extend(flow.verdict.gain.map(|value| format!("{} to gain{of}", gain(value))));
    // Bytes, time and rate of one direction and of one stretch of time, so that each follows from the others.
    let (bytes, way) = if flow.direction == Way::Up { (flow.bytes_up, "up") } else { (flow.bytes_down, "down") };
    if flow.goodput_bps > 0.0 && flow.phase_s > 0.0 {
        facts.push(format!("{} {way} in {}", data(bytes as f64), elapsed(flow.phase_s)));
        facts.push(rate(flow.goodput_bps));
    }
    if flow.duration_s > flow.phase_s * IDLE || flow.goodput_bps <= 0.0 {
        facts.push(format!("open for {}", elapsed(flow.duration_s)));
    }
    page.sentence("  ", &facts.join(" · "), Style::Faint);
    life(page, flow);
    application(page, flow);
    if flow.limits.total() > 0.0 {
        page.gap();
        bars::limits(page, &flow.limits, "  ");
    }
    let facts = flow.verdict.evidence();
    if !facts.is_empty() {
        page.gap();
        evidence(page, &facts);
    }
    for finding in &flow.findings {
        let symptom = finding.depends_on.map(|code| format!(" (follows from {code})")).unwrap_or_default();
        let text =
            format!("{} {}: {}{symptom}", finding.code(), percent(finding.verdict.share), finding.verdict.claim());
        page.sentence("  also  ", &text, Style::Plain);
    }
    if let Some(text) = crate::facts::other_direction(flow) {
        page.sentence("  ", &text, Style::Plain);
    }
    for remedy in &flow.remedies {
        self::remedy(page, remedy);
    }
}

/// Where the time of the whole connection went, what was sent again, its reset and its silence, a line each.
fn life(page: &mut Page, flow: &Flow) {
    let lines = [
        ("  life    ", crate::facts::phases(flow)),
        ("  resent  ", crate::facts::resent(flow)),
        ("  reset   ", crate::facts::reset(flow)),
        ("  silence ", crate::facts::silence(flow)),
    ];
    for (name, text) in lines {
        if let Some(text) = text {
            page.sentence(name, &text, Style::Plain);
        }
    }
}

/// The name lookup, the TLS handshake, and the requests that took longest.
fn application(page: &mut Page, flow: &Flow) {
    let lines = [
        ("  name    ", application::lookup(flow)),
        ("  tls     ", application::tls(flow)),
        ("  requests ", application::waits(flow)),
    ];
    for (name, text) in lines {
        if let Some(text) = text {
            page.sentence(name, &text, Style::Plain);
        }
    }
    let slowest = application::slowest(flow);
    if slowest.is_empty() {
        return;
    }
    let heading = application::HEADINGS.map(str::to_owned);
    let row = |one: &RequestTiming| application::cells(one).map(|text| Entry::new(clean(&text), Style::Plain)).to_vec();
    let mut rows: Vec<_> = slowest.into_iter().map(row).collect();
    let over = table_columns(&heading, &rows).saturating_sub(page.width);
    let widest = rows.iter().map(|row| columns(&row[1].text)).max().unwrap_or(0);
    for row in &mut rows {
        row[1].text = shorten(&row[1].text, widest.saturating_sub(over).max(8));
    }
    page.gap();
    page.table(&heading, &rows, 2);
}

/// What else is known of a connection, a line each.
fn facts(page: &mut Page, flow: &Flow) {
    let lines = crate::facts::lines(flow);
    if lines.is_empty() {
        return;
    }
    page.gap();
    let widest = lines.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
    for (name, text) in lines {
        page.sentence(&format!("  {name:widest$}  "), &text, Style::Plain);
    }
}

fn evidence(page: &mut Page, evidence: &[Evidence]) {
    for fact in evidence {
        let mut text = fact.text.clone();
        let mut place = Vec::new();
        if !fact.packets.is_empty() {
            let mut numbers: Vec<_> = fact.packets.iter().take(PACKETS).map(u64::to_string).collect();
            if fact.packets.len() > PACKETS {
                numbers.push(format!("… {} in all", count(fact.packets.len() as f64)));
            }
            let noun = if fact.packets.len() == 1 { "packet" } else { "packets" };
            place.push(format!("{noun} {}", numbers.join(", ")));
        }
        place.extend(fact.time_s.map(|time| format!("at {time:.6} s")));
        if !place.is_empty() {
            text.push_str(&format!(" ({})", place.join("; ")));
        }
        page.sentence("  · ", &text, Style::Plain);
    }
}

/// What is done and why, the commands that do it, unwrapped so that they can be pasted, and what to think of first.
pub(super) fn remedy(page: &mut Page, remedy: &Remedy) {
    page.gap();
    let word = if remedy.changes.is_empty() { "  do    " } else { "  set   " };
    page.sentence(word, &remedy.reason, Style::Plain);
    for (place, change) in remedy.changes.iter().enumerate() {
        if let Some(command) = remedy.commands.get(place) {
            page.line(&page.paint(&format!("        {}", clean(command)), Style::Good));
        }
        if let Some(from) = &change.from {
            page.sentence("        ", &format!("was {from}"), Style::Faint);
        }
    }
    if let Some(kernels) = &remedy.kernels {
        page.sentence("        ", &format!("for {kernels}"), Style::Faint);
    }
    if let Some(caution) = caution(remedy) {
        page.sentence("        ", caution, Style::Bad);
    }
    if !remedy.wont_help.is_empty() {
        page.sentence("        ", &format!("would not help: {}", remedy.wont_help), Style::Faint);
    }
    for note in &remedy.notes {
        page.sentence("        ", &format!("note: {note}"), Style::Faint);
    }
}

/// Both ends, with an arrow the way most of the data went, and the interface where the capture names it.
pub(super) fn ends(flow: &Flow) -> String {
    let arrow = if flow.direction == Way::Up { "→" } else { "←" };
    let interface = flow.interface.as_ref().map(|name| format!(" on {name}")).unwrap_or_default();
    clean(&format!("{} {arrow} {}{interface}", flow.client, flow.server))
}

/// What there is to gain: how many times faster, or that it is nothing.
pub(super) fn gain(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 1.005 => "nothing".to_owned(),
        // `infer` caps gains here.
        ratio if ratio >= LARGEST_GAIN_SHOWN => format!("over {}", times(LARGEST_GAIN_SHOWN)),
        ratio => times(ratio),
    }
}

/// The largest gain that is shown.
const LARGEST_GAIN_SHOWN: f64 = 1_000.0;

fn plural(number: u64, noun: &str) -> String {
    if noun == "more" { format!("{} more", count(number as f64)) } else { counted(number, noun) }
}
