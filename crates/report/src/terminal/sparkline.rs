//! Series as a line of small bars.

use super::page::{Page, Style, columns};
use crate::figures::{data, milliseconds};
use thalweg_model::{Point, Series};

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the bars, at most.
const WIDEST: usize = 72;

/// Draws the flight and the receiver's window below each other, to one scale: where the flight reaches as high as the window, the
/// window is what holds it.
pub(super) fn flight(page: &mut Page, series: &Series, indent: &str) {
    let rows = [("flight", &series.flight_bytes), ("window", &series.receive_window_bytes)];
    let span = rows.iter().flat_map(|(_, points)| [points.first(), points.last()]).flatten().map(|point| point.t);
    let (from, to) = span.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), t| (from.min(t), to.max(t)));
    let top = rows.iter().map(|(_, points)| most(points)).fold(0.0, f64::max);
    let room = page.width.saturating_sub(columns(indent) + 24).clamp(8, WIDEST);
    for (name, points) in rows {
        if points.is_empty() {
            continue;
        }
        let bars: String = heights(points, (from, to), room).into_iter().map(|height| bar(height, top)).collect();
        let bars = page.paint(&bars, if name == "flight" { Style::Palette(33) } else { Style::Palette(208) });
        page.line(&format!("{indent}{name} {bars} {}", data(most(points))));
    }
    page.line(&format!("{indent}{}", page.paint(&format!("over {}", milliseconds((to - from) * 1e3)), Style::Faint)));
}

fn most(points: &[Point]) -> f64 {
    points.iter().map(|point| point.v).fold(0.0, f64::max)
}

fn bar(height: Option<f64>, top: f64) -> char {
    let Some(height) = height else { return ' ' };
    let step = (height / top.max(1.0) * BARS.len() as f64).ceil() as usize;
    BARS[step.clamp(1, BARS.len()) - 1]
}

/// The largest value within each of `columns` equal parts of the time; where there is none, the last one before it.
fn heights(points: &[Point], (from, to): (f64, f64), columns: usize) -> Vec<Option<f64>> {
    let mut heights: Vec<Option<f64>> = vec![None; columns];
    for point in points {
        let place = ((point.t - from) / (to - from).max(1e-9) * columns as f64) as usize;
        let height = &mut heights[place.min(columns - 1)];
        *height = Some(height.map_or(point.v, |height| height.max(point.v)));
    }
    let mut latest = None;
    for height in &mut heights {
        latest = height.or(latest);
        *height = latest;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_that_fills_its_window_is_as_high() {
        let point = |t: u32, v: f64| Point { t: f64::from(t), v };
        let series = Series {
            flight_bytes: (0..10).map(|t| point(t, f64::from(t.min(4)) * 16_000.0)).collect(),
            receive_window_bytes: vec![point(0, 64_000.0)],
            ..Series::default()
        };
        let mut page = Page::new(34, false);
        flight(&mut page, &series, "");
        let text = page.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("flight ▁▂▄▆██████ ") && lines[1].starts_with("window ██████████ "), "{text}");
        assert!(lines[2].starts_with("over 9"), "{text}");
    }
}
