//! The screen: a head, the table or one socket, and the keys.

use crate::detail;
use crate::filter::NAMES;
use crate::table::{backlog, padded, summary};
use crate::view::{Mode, View};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use thalweg_model::{LimitName, SocketRow, SocketState, Verdict, WatchReport};

const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);
const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
const WARNING: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws a report as `view` has it; `verdict` is the doctor's on the socket that is shown in detail.
pub fn draw(frame: &mut Frame<'_>, report: &WatchReport, view: &View, verdict: Option<&Verdict>) {
    let warnings = &report.backlog.warnings;
    let heights = [
        Constraint::Length(2 + warnings.len() as u16),
        Constraint::Min(3),
        Constraint::Length(1 + u16::from(!report.notes.is_empty())),
    ];
    let [head, body, foot] = Layout::vertical(heights).areas(frame.area());
    draw_head(frame, head, report, view);
    match view.mode() {
        Mode::Help => draw_help(frame, body),
        Mode::Detail => detail::draw(frame, body, report, view, verdict),
        Mode::List | Mode::Filter => draw_table(frame, body, report, view),
    }
    draw_foot(frame, foot, report, view);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, report: &WatchReport, view: &View) {
    let mut first = vec![Span::styled("thalweg watch", TITLE), Span::raw("  "), Span::raw(summary(report, view))];
    if !view.filter().is_empty() {
        first.push(Span::raw(format!("  filter: {}", view.filter())));
    }
    if view.is_paused() {
        first.push(Span::styled("  paused", WARNING));
    }
    let mut lines = vec![Line::from(first), Line::raw(backlog(report))];
    lines.extend(report.backlog.warnings.iter().map(|warning| Line::styled(warning.as_str(), WARNING)));
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, report: &WatchReport, view: &View) {
    let columns = view.columns().fitting(usize::from(area.width));
    let (sort, is_reversed) = view.sort();
    let mut title = Vec::new();
    for column in &columns {
        let mark = if is_reversed { "^" } else { "*" };
        let text = if *column == sort { format!("{mark}{}", column.title()) } else { column.title().to_owned() };
        title.push(Span::styled(format!("{} ", padded(*column, &text, column.width())), TITLE));
    }
    let mut lines = vec![Line::from(title)];
    let height = usize::from(area.height).saturating_sub(1).max(1);
    // The selected one is in the middle where the list is longer than the screen.
    let first = view.place().saturating_sub(height / 2).min(view.rows(report).len().saturating_sub(height));
    for (place, row) in view.rows(report).enumerate().skip(first).take(height) {
        let cell = |column: &crate::Column| {
            Span::styled(format!("{} ", padded(*column, &column.text(row), column.width())), style(*column, row))
        };
        let line = Line::from(columns.iter().map(cell).collect::<Vec<_>>());
        let line = if row.state == SocketState::Closed { line.style(QUIET) } else { line };
        lines.push(if place == view.place() { line.patch_style(SELECTED) } else { line });
    }
    if view.rows(report).len() == 0 {
        lines.push(Line::styled("no socket matches", QUIET));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// What stands out: what is to blame at a host in yellow, what the network does in cyan, what stands still in red.
fn style(column: crate::Column, row: &SocketRow) -> Style {
    use crate::Column;
    let quiet = Style::new();
    match column {
        Column::Cause => match row.limit.now.map(|now| now.cause) {
            Some(LimitName::ReceiveWindow | LimitName::SendBuffer | LimitName::Reader) => quiet.fg(Color::Yellow),
            Some(LimitName::Timeout | LimitName::LossRecovery) => quiet.fg(Color::Red),
            Some(LimitName::CongestionWindow | LimitName::PathRate | LimitName::SlowStart) => quiet.fg(Color::Cyan),
            _ => quiet,
        },
        Column::PeerWindow if row.send.zero_window => WARNING,
        Column::Drain if row.send.queued_s.is_none() => WARNING,
        _ => quiet,
    }
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let keys = [
        ("up, down, k, j", "selects a socket; page up, page down, home, end"),
        ("enter", "shows it in detail; escape goes back"),
        ("tab", "other columns: overview, send, receive, who, all"),
        ("< and >", "sorts by the column before or after; r reverses"),
        ("/", "a filter: terms joined by spaces, values by commas; - before a term negates it"),
        ("space", "pauses"),
        ("q", "ends"),
    ];
    let mut lines = vec![Line::styled("Keys", TITLE)];
    lines.extend(keys.iter().map(|(key, text)| Line::raw(format!("  {key:<16}{text}"))));
    lines.push(Line::styled("Filters", TITLE));
    for examples in NAMES.chunks(4) {
        let examples: Vec<String> = examples.iter().map(|(_, example)| format!("{example:<24}")).collect();
        lines.push(Line::raw(format!("  {}", examples.concat())));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, report: &WatchReport, view: &View) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    if !report.notes.is_empty() {
        lines.push(Line::styled(report.notes.join("; "), QUIET));
    }
    lines.push(match (view.mode(), &view.error) {
        (Mode::Filter, Some(error)) => {
            Line::styled(format!("filter: {}   {error}; {}", view.typed, error.hint), WARNING)
        }
        (Mode::Filter, None) => Line::raw(format!("filter: {}_   enter takes it, escape leaves it", view.typed)),
        (Mode::Help, _) => Line::styled("any key goes back", QUIET),
        (Mode::Detail, _) => Line::styled("escape: back   space: pause   q: end", QUIET),
        (Mode::List, _) => {
            let (set, sort) = (view.columns().name(), view.sort().0.name());
            let text =
                format!("columns: {set} (tab)   sort: {sort} (< > r)   filter: /   detail: enter   keys: ?   end: q");
            Line::styled(text, QUIET)
        }
    });
    frame.render_widget(Paragraph::new(lines), area);
}
