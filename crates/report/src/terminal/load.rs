//! What a load of players met.

use super::page::{Page, Style};
use crate::figures;
use thalweg_model::{LoadReport, Percentiles};

/// The report, with times in milliseconds.
pub fn load(report: &LoadReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let players = &report.players;
    let all = players.playing == players.started && players.started > 0;
    let played = format!("{} of {} players had a picture", players.playing, players.started);
    let played = page.paint(&played, if all { Style::Good } else { Style::Bad });
    page.line(&format!("{played}  {}", report.url));
    page.gap();
    let rows: Vec<_> = [
        ("first frame", report.first_frame_ms),
        ("playlist", report.playlist_ms),
        ("segment", report.segment_ms),
        ("stall", report.stall_ms),
    ]
    .into_iter()
    .filter_map(|(name, times)| times.map(|times| row(name, &times)))
    .collect();
    if !rows.is_empty() {
        let head = ["", "count", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned);
        for line in std::iter::once(&head).chain(&rows) {
            let cells: Vec<String> = line[1..].iter().map(|cell| format!("{cell:>9}")).collect();
            page.line(&format!("{:<12}{}", line[0], cells.concat()));
        }
        let note = page.paint("in milliseconds, from when it was due", Style::Faint);
        page.line(&note);
        page.gap();
    }
    let stalls = &report.stalls;
    page.line(&format!("stalled   {:.2} % of the time watched, in {} stalls", stalls.part * 100.0, stalls.count));
    page.line(&format!(
        "received  {} at {}; {} answers on {} connections",
        figures::data(report.bytes as f64),
        figures::rate(report.rate_bps),
        report.answers,
        report.connections
    ));
    for (failure, count) in &report.failures {
        let text = page.paint(&format!("failed    {count} times: {}", figures::clean(failure)), Style::Bad);
        page.line(&text);
    }
    for held in &report.expect {
        let found = held.found.map_or("nothing".to_owned(), figure);
        let (word, style) = if held.holds { ("holds   ", Style::Good) } else { ("fails   ", Style::Bad) };
        let word = page.paint(word, style);
        page.line(&format!("{word}  {}, found {found}", held.text));
    }
    page.finish()
}

fn row(name: &str, times: &Percentiles) -> [String; 7] {
    let Percentiles { count, p50, p90, p99, p999, max } = *times;
    let [p50, p90, p99, p999, max] = [p50, p90, p99, p999, max].map(figure);
    [name.to_owned(), count.to_string(), p50, p90, p99, p999, max]
}

/// Three digits, and all of what is large.
fn figure(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
