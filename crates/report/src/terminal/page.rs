//! A page of text: styles that can be off, sentences that wrap, tables that fit.

use crate::figures::clean;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};

/// The narrowest page that is laid out; a narrower terminal wraps it itself.
const NARROWEST: usize = 30;
/// Sentences wider than this are hard to read.
const WIDEST_SENTENCE: usize = 110;

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    /// A colour of the 256-colour palette.
    Palette(u8),
}

/// Text being laid out.
pub(super) struct Page {
    pub(super) width: usize,
    pub(super) color: bool,
    text: String,
}

impl Page {
    pub(super) fn new(width: usize, color: bool) -> Self {
        Self { width: width.max(NARROWEST), color, text: String::new() }
    }

    /// Paints `text`, or gives it back as it is where colour is off.
    pub(super) fn paint(&self, text: &str, style: Style) -> String {
        let code = match style {
            Style::Plain => return text.to_owned(),
            _ if !self.color || text.is_empty() => return text.to_owned(),
            Style::Strong => "1".to_owned(),
            Style::Faint => "2".to_owned(),
            Style::Good => "32".to_owned(),
            Style::Bad => "31".to_owned(),
            Style::Palette(number) => format!("38;5;{number}"),
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Adds a line as it is.
    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds an empty line, but never two.
    pub(super) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a heading.
    pub(super) fn heading(&mut self, text: &str) {
        self.gap();
        let painted = self.paint(text, Style::Strong);
        self.line(&painted);
    }

    /// Adds a sentence, wrapped; the first line begins with `first`, the others are indented as far.
    pub(super) fn sentence(&mut self, first: &str, sentence: &str, style: Style) {
        let indent = columns(first);
        let room = self.width.min(WIDEST_SENTENCE).saturating_sub(indent).max(10);
        let first = self.paint(first, if first.trim().is_empty() { Style::Plain } else { Style::Faint });
        for (number, line) in wrap(&clean(sentence), room).iter().enumerate() {
            let start = if number == 0 { first.clone() } else { " ".repeat(indent) };
            let line = format!("{start}{}", self.paint(line, style));
            self.line(&line);
        }
    }

    /// Adds a table whose first row is its heading; every column but the first `left` is aligned right.
    pub(super) fn table(&mut self, heading: &[String], rows: &[Vec<Entry>], left: usize) {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if self.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(heading.iter().map(|text| Cell::new(text).add_attribute(Attribute::Dim)));
        for row in rows {
            table.add_row(row.iter().map(Entry::cell));
        }
        for (place, column) in table.column_iter_mut().enumerate() {
            column.set_padding((if place == 0 { 2 } else { 1 }, 1));
            column.set_cell_alignment(if place < left { CellAlignment::Left } else { CellAlignment::Right });
        }
        for line in table.to_string().lines() {
            self.line(line);
        }
    }

    /// What was laid out.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) text: String,
    pub(super) style: Style,
}

impl Entry {
    pub(super) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }

    fn cell(&self) -> Cell {
        let cell = Cell::new(&self.text);
        match self.style {
            Style::Plain => cell,
            Style::Strong => cell.add_attribute(Attribute::Bold),
            Style::Faint => cell.add_attribute(Attribute::Dim),
            Style::Good => cell.fg(Color::DarkGreen),
            Style::Bad => cell.fg(Color::DarkRed),
            Style::Palette(number) => cell.fg(Color::AnsiValue(number)),
        }
    }
}

/// How wide a table of these cells is, with the padding [`Page::table`] gives it.
pub(super) fn table_columns(heading: &[String], rows: &[Vec<Entry>]) -> usize {
    let widest = |place: usize| {
        let cells = rows.iter().filter_map(|row| row.get(place)).flat_map(|entry| entry.text.lines().map(columns));
        cells.chain(heading.get(place).map(|text| columns(text))).max().unwrap_or(0)
    };
    1 + (0..heading.len()).map(|place| widest(place) + 2).sum::<usize>()
}

/// Columns a text takes, one for each character: names and figures here are not of double width.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Cuts a text that is wider than `room`, with an ellipsis in its middle, where names differ least.
pub(super) fn shorten(text: &str, room: usize) -> String {
    let length = columns(text);
    if length <= room || room < 4 {
        return text.to_owned();
    }
    let tail = room / 3;
    let head: String = text.chars().take(room - tail - 1).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{head}…{end}")
}

/// Breaks a text into lines of at most `room` columns, between words where it can.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word = word.to_owned();
        if !line.is_empty() && columns(&line) + 1 + columns(&word) > room {
            lines.push(std::mem::take(&mut line));
        }
        while columns(&word) > room {
            let rest = word.chars().skip(room).collect();
            lines.push(word.chars().take(room).collect());
            word = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}
