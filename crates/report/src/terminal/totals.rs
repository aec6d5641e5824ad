//! What connections lose, by cause and by host.

use super::page::{Entry, Page, Style, columns, shorten, table_columns};
use crate::figures::{clean, count, counted, elapsed, percent};
use crate::many::{Many, Total};
use thalweg_model::Code;

/// Rows of the table of hosts.
const HOSTS: usize = 10;
/// Columns of a capture's name in a table; longer ones are cut in their middle.
pub(super) const FILE_COLUMNS: usize = 28;
/// Characters that the widest cell of a row is cut to at least.
const CELL_MIN: usize = 8;
/// Columns that no table is cut below.
const COLUMNS_MIN: usize = 4;

/// Prints how connections failed, what the causes cost, and on which hosts.
pub(super) fn totals(page: &mut Page, many: &Many) {
    by_code(page, "Failed", &many.failures());
    by_code(page, "Time lost, by cause", &many.causes());
    hosts(page, many);
}

fn by_code(page: &mut Page, heading: &str, totals: &[(Code, &Total)]) {
    if totals.is_empty() {
        return;
    }
    page.heading(heading);
    let rows: Vec<Vec<Entry>> = totals
        .iter()
        .map(|(code, total)| {
            vec![
                Entry::new(code.as_str(), Style::Strong),
                Entry::new(lost(total.lost_s), Style::Plain),
                Entry::new(count(total.connections as f64), Style::Plain),
                Entry::new(count(total.captures as f64), Style::Plain),
                Entry::new(shorten(&clean(&total.worst.name()), FILE_COLUMNS), Style::Faint),
            ]
        })
        .collect();
    table(page, &["cause", "time lost", "connections", "captures", "worst"], rows, 1);
}

fn hosts(page: &mut Page, many: &Many) {
    let hosts = many.hosts();
    if hosts.is_empty() {
        return;
    }
    page.heading("Hosts that lose most");
    let rows: Vec<Vec<Entry>> = hosts
        .iter()
        .take(HOSTS)
        .map(|(address, host)| {
            let cause = host.cause.map_or("–", |(code, _)| code.as_str());
            let again = host.retransmits as f64 / host.packets.max(1) as f64;
            vec![
                Entry::new(*address, Style::Plain),
                Entry::new(cause, Style::Strong),
                Entry::new(lost(host.lost_s), Style::Plain),
                Entry::new(count(host.connections as f64), Style::Plain),
                Entry::new(count(host.failed as f64), Style::Plain),
                Entry::new(if host.retransmits > 0 { percent(again) } else { "0".to_owned() }, Style::Plain),
            ]
        })
        .collect();
    table(page, &["host", "main cause", "time lost", "connections", "failed", "sent again"], rows, 2);
    more(page, hosts.len(), HOSTS, "host");
}

/// Says how many rows were not shown.
pub(super) fn more(page: &mut Page, all: usize, shown: usize, noun: &str) {
    let more = all.saturating_sub(shown) as u64;
    if more > 0 {
        let noun = if noun == "remedy" && more > 1 { "remedie" } else { noun };
        page.sentence("  ", &format!("and {} more", counted(more, noun)), Style::Faint);
    }
}

/// Seconds lost; nothing lost is no figure.
pub(super) fn lost(seconds: f64) -> String {
    if seconds > 0.0 { elapsed(seconds) } else { "–".to_owned() }
}

/// A table with as many of its columns as fit.
pub(super) fn table(page: &mut Page, heading: &[&str], mut rows: Vec<Vec<Entry>>, left: usize) {
    let mut heading: Vec<String> = heading.iter().map(|text| (*text).to_owned()).collect();
    while heading.len() > COLUMNS_MIN && table_columns(&heading, &rows) > page.width {
        heading.pop();
        rows.iter_mut().for_each(|row| row.truncate(heading.len()));
    }
    let over = table_columns(&heading, &rows).saturating_sub(page.width);
    if over > 0 {
        // Names and addresses are what is wide.
        let widths = |column: usize| rows.iter().map(move |row| columns(&row[column].text)).max().unwrap_or(0);
        let widest = (0..heading.len()).max_by_key(|&column| widths(column)).unwrap_or(0);
        let room = widths(widest).saturating_sub(over).max(CELL_MIN);
        rows.iter_mut().for_each(|row| row[widest].text = shorten(&row[widest].text, room));
    }
    page.table(&heading, &rows, left);
}
