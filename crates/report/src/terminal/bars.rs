//! Pictures of shares and of before and after, in text.

use super::page::{Page, Style, columns};
use crate::figures::percent;
use thalweg_model::Limits;

/// How each limit is drawn: its name, its glyph without colour, and its colour (of the 256-colour palette).
///
/// Warm colours are what a setting can change, cold ones what it cannot; the web page uses the same hues.
const LIMITS: [(&str, &str, char, u8); 9] = [
    ("receive_window", "receive window", '█', 208),
    ("reader", "reader", '▒', 178),
    ("send_buffer", "send buffer", '▓', 170),
    ("slow_start", "slow start", '/', 79),
    ("congestion_window", "congestion window", '=', 33),
    ("loss_recovery", "loss recovery", 'x', 203),
    ("timeout", "timeout", '!', 160),
    ("path_rate", "path rate", '░', 71),
    ("application", "application", '.', 245),
];

/// Draws where the time went: a bar of all limits, largest first, and their names with percentages below it.
pub(super) fn limits(page: &mut Page, limits: &Limits, indent: &str) {
    let named = limits.named();
    let mut parts: Vec<_> = LIMITS
        .iter()
        .filter_map(|(key, name, glyph, color)| {
            let share = named.iter().find(|(of, _)| of == key).map_or(0.0, |(_, share)| *share);
            (share > 0.0).then_some((*name, *glyph, *color, share))
        })
        .collect();
    parts.sort_by(|a, b| b.3.total_cmp(&a.3));
    let room = page.width.saturating_sub(columns(indent) + 2).min(72);
    let widths = apportion(&parts.iter().map(|part| part.3).collect::<Vec<_>>(), room);
    let mut bar = indent.to_owned();
    for (part, width) in parts.iter().zip(&widths) {
        let glyph = if page.color { '█' } else { part.1 };
        bar.push_str(&page.paint(&glyph.to_string().repeat(*width), Style::Palette(part.2)));
    }
    page.line(&bar);
    let (mut line, mut used) = (indent.to_owned(), columns(indent));
    for (name, glyph, color, share) in parts {
        let glyph = if page.color { '█' } else { glyph };
        let wide = columns(name) + columns(&percent(share)) + 6;
        if used + wide > page.width && used > columns(indent) {
            page.line(&line);
            (line, used) = (indent.to_owned(), columns(indent));
        }
        line.push_str(&format!(
            "{} {name} {}   ",
            page.paint(&glyph.to_string(), Style::Palette(color)),
            percent(share)
        ));
        used += wide;
    }
    page.line(&line);
}

/// Draws rows of label, bar and figure to one scale; `rows` are (label, value, printed figure, style).
pub(super) fn compare(page: &mut Page, rows: &[(&str, f64, String, Style)]) {
    let label = rows.iter().map(|row| columns(row.0)).max().unwrap_or(0);
    let figure = rows.iter().map(|row| columns(&row.2)).max().unwrap_or(0);
    let room = page.width.saturating_sub(label + figure + 8).clamp(4, 56);
    let greatest = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    for (name, value, printed, style) in rows {
        let part = if greatest > 0.0 { value / greatest } else { 0.0 };
        let bar = eighths(part, room);
        let pad = " ".repeat(room.saturating_sub(columns(&bar)));
        let line =
            format!("  {name:label$}  {}{pad}  {}", page.paint(&bar, *style), page.paint(printed, Style::Strong));
        page.line(&line);
    }
}

/// A bar of `part` of `room` columns, to an eighth of a column; never nothing for what is more than nothing.
fn eighths(part: f64, room: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * room as f64 * 8.0).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    bar
}

/// Shares out `room` columns by the largest remainder, at least one to every share.
fn apportion(shares: &[f64], room: usize) -> Vec<usize> {
    let total: f64 = shares.iter().sum();
    if total <= 0.0 || shares.len() > room {
        return vec![0; shares.len()];
    }
    let exact: Vec<f64> = shares.iter().map(|share| share / total * room as f64).collect();
    let mut widths: Vec<usize> = exact.iter().map(|part| (part.floor() as usize).max(1)).collect();
    while widths.iter().sum::<usize>() != room {
        let short = widths.iter().sum::<usize>() < room;
        let lack = |place: &usize| exact[*place] - widths[*place] as f64;
        let pick = (0..widths.len()).filter(|place| short || widths[*place] > 1);
        let picked = if short {
            pick.max_by(|a, b| lack(a).total_cmp(&lack(b)))
        } else {
            pick.min_by(|a, b| lack(a).total_cmp(&lack(b)))
        };
        match picked {
            Some(place) if short => widths[place] += 1,
            Some(place) => widths[place] -= 1,
            None => break,
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_bar_and_none_is_lost() {
        assert_eq!(apportion(&[0.97, 0.02, 0.01], 50), [48, 1, 1]);
        assert_eq!(apportion(&[0.334, 0.333, 0.333], 10), [4, 3, 3]);
        assert_eq!(apportion(&[0.999, 0.0005, 0.0005], 10), [8, 1, 1]);
        assert_eq!(apportion(&[], 10), [0; 0]);
    }

    #[test]
    fn a_bar_is_drawn_to_an_eighth() {
        assert_eq!(eighths(1.0, 3), "███");
        assert_eq!(eighths(0.5, 3), "█▌");
        assert_eq!(eighths(0.0001, 3), "▏");
        assert_eq!(eighths(0.0, 3), "");
    }
}
