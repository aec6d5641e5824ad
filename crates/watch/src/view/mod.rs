//! What is shown: which sockets, in which order, and what keys change about it.

use crate::column::{Column, ColumnSet};
use crate::filter::{Filter, FilterError};
use std::collections::VecDeque;
use thalweg_model::{ClosedSockets, SocketRow, SocketState, WatchReport};

/// Moments kept of the socket that is shown in detail.
const HISTORY: usize = 120;
/// Connections that ended before the last interval and stay in the table, the latest: some pages of it.
const CLOSED_KEPT: usize = 1_000;
/// Sockets by which a page moves.
const PAGE: isize = 20;

/// A key, whatever the terminal calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// One up.
    Up,
    /// One down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first.
    Home,
    /// To the last.
    End,
    /// Shows in detail; takes a filter.
    Enter,
    /// Back; leaves a filter as it was.
    Escape,
    /// The next columns.
    Tab,
    /// Takes a character away.
    Backspace,
    /// A character.
    Character(char),
}

/// What the screen is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The table.
    List,
    /// One socket.
    Detail,
    /// The table, while a filter is typed.
    Filter,
    /// The keys.
    Help,
}

/// A socket's windows at a moment, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Windows {
    pub(crate) at_s: f64,
    pub(crate) in_flight: f64,
    pub(crate) congestion: f64,
    pub(crate) peer: f64,
}

/// What is shown of a report.
#[derive(Debug)]
pub struct View {
    filter: Filter,
    /// What is typed as a filter, and why it is none.
    pub(crate) typed: String,
    pub(crate) error: Option<FilterError>,
    sort: Column,
    is_reversed: bool,
    columns: ColumnSet,
    mode: Mode,
    is_paused: bool,
    /// Places of the wanted sockets in the report, in order; beyond those of the report, places in `closed`.
    order: Vec<usize>,
    /// Connections that ended, and at which refresh, in seconds since the epoch.
    closed: VecDeque<(f64, SocketRow)>,
    /// How long they stay, in seconds.
    keeps_closed_s: f64,
    /// The refresh that `closed` holds already.
    taken_s: f64,
    /// The selected socket, and its place in the order.
    selected: Option<u64>,
    place: usize,
    pub(crate) history: VecDeque<Windows>,
}

impl View {
    /// A view of the sockets that `filter` wants.
    #[must_use]
    pub const fn new(filter: Filter, sort: Column, is_reversed: bool, columns: ColumnSet) -> Self {
        Self {
            filter,
            typed: String::new(),
            error: None,
            sort,
            is_reversed,
            columns,
            mode: Mode::List,
            is_paused: false,
            order: Vec::new(),
            closed: VecDeque::new(),
            keeps_closed_s: 0.0,
            taken_s: f64::NEG_INFINITY,
            selected: None,
            place: 0,
            history: VecDeque::new(),
        }
    }

    /// Lets connections that ended stay in the table for so many seconds, instead of for one refresh.
    pub const fn keep_closed(&mut self, seconds: f64) {
        self.keeps_closed_s = seconds;
    }

    /// Takes a report: all other methods are about this one from now on.
    pub fn update(&mut self, report: &WatchReport) {
        self.take_closed(report);
        let places = 0..report.sockets.len() + self.closed.len();
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(places.filter(|place| self.filter.wants(self.row(report, *place))));
        self.order = order;
        self.arrange(report);
        let detailed =
            self.selected(report).filter(|row| self.mode == Mode::Detail && row.state != SocketState::Closed);
        if let Some(row) = detailed {
            let windows = Windows {
                at_s: report.at_s,
                in_flight: row.send.in_flight_bytes as f64,
                congestion: row.send.cwnd_segments as f64 * row.send.segment_bytes as f64,
                peer: row.send.peer_window_bytes as f64,
            };
            if self.history.back().is_none_or(|last| last.at_s < windows.at_s) {
                if self.history.len() == HISTORY {
                    self.history.pop_front();
                }
                self.history.push_back(windows);
            }
        }
    }

    fn take_closed(&mut self, report: &WatchReport) {
        // Of a recording that is shown from its start again times go back.
        let is_old = |at_s: f64| at_s + self.keeps_closed_s < report.at_s || at_s > report.at_s;
        self.closed.retain(|(at_s, _)| !is_old(*at_s));
        if self.taken_s == report.at_s {
            return;
        }
        self.taken_s = report.at_s;
        let rows = report.closed.as_ref().map_or(&[][..], |closed| &closed.sockets);
        self.closed.drain(..(self.closed.len() + rows.len()).saturating_sub(CLOSED_KEPT).min(self.closed.len()));
        self.closed.extend(rows.iter().map(|row| (report.at_s, row.clone())));
    }

    /// The socket at a place of `order`.
    fn row<'a>(&'a self, report: &'a WatchReport, place: usize) -> &'a SocketRow {
        report.sockets.get(place).unwrap_or_else(|| &self.closed[place - report.sockets.len()].1)
    }

    fn arrange(&mut self, report: &WatchReport) {
        let (sort, is_reversed) = (self.sort, self.is_reversed);
        let mut order = std::mem::take(&mut self.order);
        order.sort_unstable_by(|a, b| {
            let order = sort.compare(self.row(report, *a), self.row(report, *b));
            if is_reversed { order.reverse() } else { order }
        });
        self.order = order;
        let found = self.selected.and_then(|id| self.order.iter().position(|place| self.row(report, *place).id == id));
        if found.is_none() && self.mode == Mode::Detail {
            return;
        }
        self.place = found.unwrap_or(self.place).min(self.order.len().saturating_sub(1));
        self.selected = self.order.get(self.place).map(|place| self.row(report, *place).id);
    }

    /// The wanted sockets, in order.
    pub fn rows<'a>(&'a self, report: &'a WatchReport) -> impl ExactSizeIterator<Item = &'a SocketRow> {
        self.order.iter().map(|place| self.row(report, *place))
    }

    /// The wanted sockets that move data in the report's interval: without connections that ended before it.
    pub(crate) fn moving<'a>(&'a self, report: &'a WatchReport) -> impl Iterator<Item = &'a SocketRow> {
        let is_now =
            |place: &&usize| place.checked_sub(report.sockets.len()).is_none_or(|at| self.closed[at].0 == report.at_s);
        self.order.iter().filter(is_now).map(|place| self.row(report, *place))
    }

    /// The report with the wanted sockets alone, in order.
    #[must_use]
    pub fn wanted(&self, report: &WatchReport) -> WatchReport {
        WatchReport {
            schema: report.schema.clone(),
            at_s: report.at_s,
            interval_s: report.interval_s,
            sockets_total: report.sockets_total,
            backlog: report.backlog.clone(),
            notes: report.notes.clone(),
            sockets: self.rows(report).filter(|row| row.state != SocketState::Closed).cloned().collect(),
            closed: report.closed.as_ref().map(|closed| ClosedSockets {
                sockets: closed.sockets.iter().filter(|row| self.filter.wants(row)).cloned().collect(),
                ..*closed
            }),
        }
    }

    /// The selected socket; `None` if there is none, or it is gone.
    #[must_use]
    pub fn selected<'a>(&'a self, report: &'a WatchReport) -> Option<&'a SocketRow> {
        let id = self.selected?;
        // In detail it is shown for as long as it is there, whether the filter wants it or not.
        let at = self.order.get(self.place).map(|place| self.row(report, *place)).filter(|row| row.id == id);
        at.or_else(|| report.sockets.iter().chain(self.closed.iter().map(|(_, row)| row)).find(|row| row.id == id))
    }

    /// The socket that is shown in detail.
    #[must_use]
    pub fn detailed(&self) -> Option<u64> {
        self.selected.filter(|_| self.mode == Mode::Detail)
    }

    /// Takes a key; `false` ends the view. What it changes is arranged anew from `report`.
    pub fn key(&mut self, key: Key, report: &WatchReport) -> bool {
        match self.mode {
            Mode::Filter => self.type_filter(key, report),
            Mode::Help => {
                self.mode = Mode::List;
            }
            Mode::List | Mode::Detail => match key {
                Key::Character('q') => return false,
                Key::Escape if self.mode == Mode::List => return false,
                Key::Escape => self.leave_detail(report),
                Key::Enter if self.mode == Mode::List && self.selected.is_some() => {
                    self.mode = Mode::Detail;
                    self.history.clear();
                    self.update(report);
                }
                Key::Character('?') => self.mode = Mode::Help,
                Key::Character(' ') => self.is_paused = !self.is_paused,
                _ if self.mode == Mode::List => self.list_key(key, report),
                _ => {}
            },
        }
        true
    }

    fn leave_detail(&mut self, report: &WatchReport) {
        self.mode = Mode::List;
        self.update(report);
    }

    fn list_key(&mut self, key: Key, report: &WatchReport) {
        match key {
            Key::Up | Key::Character('k') => self.move_by(-1, report),
            Key::Down | Key::Character('j') => self.move_by(1, report),
            Key::PageUp => self.move_by(-PAGE, report),
            Key::PageDown => self.move_by(PAGE, report),
            Key::Home => self.move_by(isize::MIN, report),
            Key::End => self.move_by(isize::MAX, report),
            Key::Tab => self.columns = next(&ColumnSet::EACH, self.columns, 1),
            Key::Character('/') => {
                self.mode = Mode::Filter;
                self.typed = self.filter.to_string();
                self.error = None;
            }
            Key::Character('<' | '>' | 'r') => {
                match key {
                    Key::Character('<') => {
                        self.sort = next(self.columns.columns(), self.sort, self.columns.columns().len() - 1)
                    }
                    Key::Character('>') => self.sort = next(self.columns.columns(), self.sort, 1),
                    _ => self.is_reversed = !self.is_reversed,
                }
                // The first of the new order is what was asked for.
                (self.selected, self.place) = (None, 0);
                self.arrange(report);
            }
            _ => {}
        }
    }

    fn move_by(&mut self, by: isize, report: &WatchReport) {
        let last = self.order.len().saturating_sub(1);
        self.place = self.place.saturating_add_signed(by).min(last);
        self.selected = self.order.get(self.place).map(|place| self.row(report, *place).id);
    }

    fn type_filter(&mut self, key: Key, report: &WatchReport) {
        match key {
            Key::Character(character) => {
                self.typed.push(character);
                self.error = None;
            }
            Key::Backspace => {
                self.typed.pop();
                self.error = None;
            }
            Key::Escape => {
                self.mode = Mode::List;
                self.error = None;
            }
            Key::Enter => match self.typed.parse() {
                Ok(filter) => {
                    self.filter = filter;
                    self.mode = Mode::List;
                    self.error = None;
                    self.update(report);
                }
                Err(error) => self.error = Some(error),
            },
            _ => {}
        }
    }

    /// The filter.
    #[must_use]
    pub const fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The columns.
    #[must_use]
    pub const fn columns(&self) -> ColumnSet {
        self.columns
    }

    /// What the screen is.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// No report shall be given while this is so.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(crate) const fn sort(&self) -> (Column, bool) {
        (self.sort, self.is_reversed)
    }

    /// The place of the selected socket among those that are wanted.
    pub(crate) const fn place(&self) -> usize {
        self.place
    }
}

/// The one that is `by` after `current`; the first if that is none of them.
fn next<T: Copy + PartialEq>(all: &[T], current: T, by: usize) -> T {
    let place = all.iter().position(|one| *one == current).map_or(0, |place| (place + by) % all.len());
    all[place]
}

#[cfg(test)]
mod tests;
