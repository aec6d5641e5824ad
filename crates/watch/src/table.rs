//! The table as plain lines.

use crate::column::{Column, clean};
use crate::view::View;
use thalweg_model::{SocketRow, SocketState, WatchReport};
use thalweg_units::figures;

/// How many sockets are shown, how many of them ended in the last interval, and what they moved in it.
pub(crate) fn summary(report: &WatchReport, view: &View) -> String {
    let [send, receive] = [|row: &SocketRow| row.send.rate_bps, |row: &SocketRow| row.receive.rate_bps]
        .map(|rate| figures::rate(view.moving(report).map(rate).sum()));
    let closed = view.moving(report).filter(|row| row.state == SocketState::Closed).count();
    let shown = view.moving(report).count() - closed;
    let all = figures::counted(report.sockets_total, "socket");
    let count =
        if shown as u64 == report.sockets_total { all } else { format!("{} of {all}", figures::count(shown as f64)) };
    let closed = if closed > 0 { format!(", {} closed", figures::count(closed as f64)) } else { String::new() };
    format!("{count}{closed}, sending {send}, receiving {receive}")
}

/// The send queues of the host, and the memory of all TCP sockets.
pub(crate) fn backlog(report: &WatchReport) -> String {
    let backlog = &report.backlog;
    let mut text = format!("send queues {}", figures::bytes(backlog.queued_bytes as f64));
    let growth = backlog.growth_bytes_per_s;
    if growth >= 1.0 {
        text += &format!(", growing {}/s", figures::bytes(growth));
    } else if growth <= -1.0 {
        text += &format!(", draining {}/s", figures::bytes(-growth));
    }
    if let Some(memory) = backlog.tcp_memory {
        let [used, pressure] = [memory.used_bytes, memory.pressure_bytes].map(|bytes| figures::bytes(bytes as f64));
        text += &format!("; TCP memory {used}, pressure at {pressure}");
    }
    text
}

/// The sockets that `view` wants, in its order, with its columns; then the sums and what could not be seen.
#[must_use]
pub fn plain(report: &WatchReport, view: &View) -> String {
    let columns = view.columns().columns();
    let rows: Vec<Vec<String>> =
        view.rows(report).map(|row| columns.iter().map(|column| column.text(row)).collect()).collect();
    let width = |place: usize| {
        let cells = rows.iter().map(|cells| cells[place].chars().count());
        cells.chain([columns[place].title().len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    let titles: Vec<String> = columns.iter().map(|column| column.title().to_owned()).collect();
    for cells in std::iter::once(&titles).chain(&rows) {
        let each = columns.iter().zip(cells).zip(&widths);
        let cells: Vec<String> = each.map(|((column, cell), width)| padded(*column, cell, *width)).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text += &format!("\n{}\n{}\n", summary(report, view), backlog(report));
    for line in report.backlog.warnings.iter().map(|warning| format!("warning: {}\n", clean(warning))) {
        text += &line;
    }
    for note in &report.notes {
        text += &format!("{}\n", clean(note));
    }
    text
}

/// A cell in its width, texts on the left and figures on the right; what is too long is cut where it says least.
pub(crate) fn padded(column: Column, cell: &str, width: usize) -> String {
    let length = cell.chars().count();
    let cell: String = if length <= width {
        cell.to_owned()
    } else if column.keeps_end() {
        std::iter::once('…').chain(cell.chars().skip(length - width + 1)).collect()
    } else {
        cell.chars().take(width.saturating_sub(1)).chain(['…']).collect()
    };
    if column.is_text() { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
}
