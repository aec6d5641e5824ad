//! One socket: its figures, what limits it, and its flight against the windows.

use crate::column::{Column, clean};
use crate::view::View;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Paragraph};
use thalweg_model::{LimitName, SocketRow, Verdict, WatchReport};
use thalweg_units::figures;

/// Lines above the chart.
const FACTS: u16 = 10;
/// Room above the highest value of a chart.
const HEADROOM: f64 = 1.15;

/// Draws the selected socket.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, report: &WatchReport, view: &View, verdict: Option<&Verdict>) {
    let Some(row) = view.selected(report) else {
        frame.render_widget(Paragraph::new("the socket was closed"), area);
        return;
    };
    let heights = [Constraint::Length(FACTS), Constraint::Length(1), Constraint::Min(5)];
    let [facts, legend, chart] = Layout::vertical(heights).areas(area);
    frame.render_widget(Paragraph::new(lines(row, verdict)), facts);
    draw_chart(frame, legend, chart, view);
}

fn lines(row: &SocketRow, verdict: Option<&Verdict>) -> Vec<Line<'static>> {
    let text =
        |column: Column| Some(column.text(row)).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
    let (send, receive, again) = (&row.send, &row.receive, &row.retransmissions);
    let delivery = if send.delivery_rate_app_limited { "(of the program)" } else { "(of the path)" };
    vec![
        line(
            "socket",
            &[("", format!("{} to {}", row.local, row.peer)), ("", row.state.to_string()), ("", text(Column::Cc))],
        ),
        program(row),
        line(
            "sends",
            &[
                ("", text(Column::Send)),
                ("total", figures::data(send.bytes as f64)),
                ("delivery rate", format!("{} {delivery}", figures::rate(send.delivery_rate_bps))),
            ],
        ),
        line(
            "window",
            &[
                ("in flight", text(Column::Flight)),
                ("cwnd", format!("{} × {} B", send.cwnd_segments, send.segment_bytes)),
                ("peer's", text(Column::PeerWindow)),
            ],
        ),
        line(
            "queue",
            &[
                ("", text(Column::Backlog)),
                ("not sent", figures::bytes(send.unsent_bytes as f64)),
                ("drains in", text(Column::Drain)),
                (
                    "buffer",
                    format!(
                        "{} of {}",
                        figures::bytes(send.buffered_bytes as f64),
                        figures::bytes(send.buffer_bytes as f64)
                    ),
                ),
            ],
        ),
        line(
            "rtt",
            &[
                ("", text(Column::Rtt)),
                ("±", row.rtt.variation_ms.map(figures::milliseconds).unwrap_or_default()),
                ("least", text(Column::MinRtt)),
            ],
        ),
        line(
            "again",
            &[
                ("segments", again.segments.to_string()),
                ("", text(Column::Retrans)),
                ("timeouts", again.timeouts.to_string()),
                ("in vain", again.spurious_segments.to_string()),
                ("reordering", again.reordering_seen.to_string()),
            ],
        ),
        line(
            "receives",
            &[
                ("", text(Column::Receive)),
                ("window", figures::bytes(receive.window_bytes as f64)),
                ("space", figures::bytes(receive.space_bytes as f64)),
                ("memory", text(Column::ReceiveMemory)),
                ("unread", figures::bytes(receive.unread_bytes as f64)),
                ("out of order", receive.out_of_order_segments.to_string()),
            ],
        ),
        line("limits", &[("now:", limits_now(row)), ("over its life:", text(Column::Life))]),
        line(
            "verdict",
            &[(
                "",
                verdict.map_or_else(|| "not yet".to_owned(), |v| format!("{}: {}", v.code(), v.cause.claim(v.share))),
            )],
        ),
    ]
}

/// Whose socket it is.
fn program(row: &SocketRow) -> Line<'static> {
    let process = row.process.as_ref();
    let who =
        process.map_or_else(|| "unknown".to_owned(), |process| format!("{} ({})", clean(&process.name), process.pid));
    let cgroup = process.map(|process| clean(&process.cgroup)).filter(|cgroup| !cgroup.is_empty());
    line("program", &[("", who), ("user", row.uid.to_string()), ("", cgroup.unwrap_or_default())])
}

/// What limits it now, and how much of the time.
fn limits_now(row: &SocketRow) -> String {
    row.limit.now.map_or_else(
        || "idle".to_owned(),
        |now| {
            let parts = LimitName::ALL.iter().zip(now.limits.named()).filter(|(_, (_, share))| *share > 0.0);
            let parts: Vec<String> =
                parts.map(|(name, (_, share))| format!("{} {}", name.as_str(), figures::percent(share))).collect();
            parts.join(", ")
        },
    )
}

/// A line of labelled facts.
fn line(name: &str, facts: &[(&str, String)]) -> Line<'static> {
    let mut spans = vec![Span::styled(format!("{name:<9}"), Style::new().add_modifier(Modifier::BOLD))];
    for (label, fact) in facts {
        let gap = if label.is_empty() { "" } else { " " };
        spans.push(Span::raw(format!("{label}{gap}{fact}   ")));
    }
    Line::from(spans)
}

fn draw_chart(frame: &mut Frame<'_>, legend: Rect, area: Rect, view: &View) {
    let Some(last) = view.history.back() else { return };
    let course = |of: fn(&crate::view::Windows) -> f64| -> Vec<(f64, f64)> {
        view.history.iter().map(|windows| (windows.at_s - last.at_s, of(windows))).collect()
    };
    let flight = course(|windows| windows.in_flight);
    let congestion = course(|windows| windows.congestion);
    let peer = course(|windows| windows.peer);
    let highest = |of: &[(f64, f64)]| of.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    // A window that is far above the others would press them to the ground: it is left out of the chart.
    let lower = highest(&flight).max(highest(&congestion).min(highest(&peer)));
    let top = (lower * HEADROOM).max(1.0);
    let courses = [
        ("congestion window", &congestion, Color::Cyan),
        ("peer's window", &peer, Color::Yellow),
        ("in flight", &flight, Color::Green),
    ];
    let shown = || courses.iter().filter(|(_, course, _)| highest(course) > 0.0 && highest(course) <= top * 2.0);
    let names = shown().map(|(name, _, color)| Span::styled(format!("{name}   "), Style::new().fg(*color)));
    frame.render_widget(Paragraph::new(Line::from(names.collect::<Vec<_>>())), legend);
    let datasets = shown().map(|(_, course, color)| {
        let dataset = Dataset::default().data(course).marker(Marker::Braille);
        dataset.graph_type(GraphType::Line).style(Style::new().fg(*color))
    });
    let first = flight.first().map_or(0.0, |(at, _)| *at).min(-1.0);
    let chart = Chart::new(datasets.collect())
        .x_axis(Axis::default().bounds([first, 0.0]).labels([format!("{first:.0} s"), "now".to_owned()]))
        .y_axis(Axis::default().bounds([0.0, top]).labels(["0 B".to_owned(), figures::bytes(top)]));
    frame.render_widget(chart, area);
}
