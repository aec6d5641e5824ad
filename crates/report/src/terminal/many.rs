//! Many captures on one page.

use super::diagnose::{ends, gain, remedy};
use super::page::{Entry, Page, Style, shorten};
use super::totals::{self, FILE_COLUMNS, lost, more, table};
use crate::figures::{clean, counted, data, rate};
use crate::many::{Many, Ranked};

/// Kinds of remedies, and notes.
const REMEDIES: usize = 5;
const NOTES: usize = 5;
/// Captures named that cannot be read.
const UNREAD: usize = 5;

/// Prints what many captures have in common, with `listed` of their worst connections.
pub fn diagnose_many(many: &Many, listed: usize, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let mut facts = vec![
        counted(many.captures, "capture"),
        counted(many.packets, "packet"),
        format!("{} on the wire", data(many.bytes as f64)),
        counted(many.connections, "TCP connection"),
    ];
    if !many.unread.is_empty() {
        facts.push(format!("{} could not be read", counted(many.unread.len() as u64, "capture")));
    }
    page.sentence("", &facts.join(" · "), Style::Strong);
    if many.uncounted > 0 {
        let text = format!(
            "{} of captures with very many are counted by number only; --json judges each",
            counted(many.uncounted, "connection")
        );
        page.sentence("note: ", &text, Style::Plain);
    }
    for (file, why) in many.unread.iter().take(UNREAD) {
        page.sentence("  ", &format!("{file}: {why}"), Style::Bad);
    }
    totals::totals(&mut page, many);
    worst(&mut page, many.worst(), listed);
    remedies(&mut page, many);
    notes(&mut page, many);
    page.gap();
    let rest = if many.fine > 0 {
        format!("Nothing is to be gained in {}. ", counted(many.fine, "connection"))
    } else {
        String::new()
    };
    page.sentence(
        "",
        &format!("{rest}thalweg diagnose FILE shows one capture; --each shows all, one by one."),
        Style::Faint,
    );
    page.finish()
}

fn worst(page: &mut Page, all: &[Ranked], listed: usize) {
    if all.is_empty() {
        page.gap();
        page.sentence("", "No connection failed or lost time to anything but its programs.", Style::Plain);
        return;
    }
    page.heading("Worst connections");
    let rows: Vec<Vec<Entry>> = all
        .iter()
        .take(listed)
        .map(|Ranked { file, flow, lost_s }| {
            vec![
                Entry::new(shorten(&clean(file), FILE_COLUMNS), Style::Plain),
                Entry::new(format!("#{}", flow.id), Style::Faint),
                Entry::new(flow.verdict.code().as_str(), Style::Strong),
                Entry::new(ends(flow), Style::Plain),
                Entry::new(lost(*lost_s), Style::Plain),
                Entry::new(flow.verdict.gain.map_or("–".to_owned(), gain), Style::Plain),
                Entry::new(if flow.goodput_bps > 0.0 { rate(flow.goodput_bps) } else { "–".to_owned() }, Style::Plain),
                Entry::new(data((flow.bytes_up + flow.bytes_down) as f64), Style::Plain),
            ]
        })
        .collect();
    let heading = ["capture", "", "verdict", "connection", "time lost", "to gain", "goodput", "data"];
    table(page, &heading, rows, 4);
}

/// Each kind of remedy once, with the figures of the connection that loses most.
fn remedies(page: &mut Page, many: &Many) {
    let all = many.remedies();
    if all.is_empty() {
        return;
    }
    page.heading("What to do");
    for advice in all.iter().take(REMEDIES) {
        let connections = counted(advice.connections, "connection");
        let saves = format!("{}, {connections} with {} lost", advice.remedy.code, lost(advice.lost_s));
        page.gap();
        page.sentence("  ", &format!("{saves}; the figures are of {}", advice.of), Style::Strong);
        remedy(page, &advice.remedy);
    }
    more(page, all.len(), REMEDIES, "remedy");
}

fn notes(page: &mut Page, many: &Many) {
    let all = many.notes();
    if all.is_empty() {
        return;
    }
    page.heading("Notes");
    for (note, captures) in all.iter().take(NOTES) {
        let of = if *captures > 1 { format!("{}: ", counted(*captures, "capture")) } else { String::new() };
        page.sentence("  · ", &format!("{of}{note}"), Style::Plain);
    }
    more(page, all.len(), NOTES, "note");
}
