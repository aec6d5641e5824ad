//! What a connection did in each interval, a line each.

use super::diagnose::ends;
use super::page::{Entry, Page, Style};
use crate::figures::{bytes, count, data, milliseconds, rate};
use crate::intervals;
use std::time::Duration;
use thalweg_model::{Flow, Series};

/// Prints what a connection did in each interval of this length, of the direction with more payload.
pub fn intervals(flow: &Flow, series: &Series, every: Duration, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    page.sentence(&format!("#{} ", flow.id), &ends(flow), Style::Strong);
    let rows: Vec<Vec<Entry>> = intervals::intervals(series, every.as_secs_f64())
        .iter()
        .map(|one| {
            let took_s = (one.end_s - one.start_s).max(f64::MIN_POSITIVE);
            vec![
                Entry::new(format!("{:.2}–{:.2} s", one.start_s, one.end_s), Style::Plain),
                Entry::new(data(one.bytes), Style::Plain),
                Entry::new(rate(one.bytes * 8.0 / took_s), Style::Plain),
                Entry::new(count(one.retransmits as f64), Style::Plain),
                Entry::new(one.flight_bytes.map_or_else(|| "–".to_owned(), bytes), Style::Plain),
                Entry::new(one.rtt_ms.map_or_else(|| "–".to_owned(), milliseconds), Style::Plain),
            ]
        })
        .collect();
    let heading = ["interval", "data", "rate", "retr", "flight", "RTT"].map(str::to_owned);
    page.table(&heading, &rows, 1);
    page.finish()
}
