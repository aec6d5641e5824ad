//! Connections that ended: what each did since it was observed last, or since it began if it never was.

use super::{Observed, Tracker, fill, new_row};
use std::collections::HashMap;
use thalweg_infer::socket::Sample;
use thalweg_model::{ClosedSockets, SocketRow, SocketState};

/// Rows of an interval; all further connections that end in it are only counted.
const ROWS_MAX: usize = 10_000;
/// Connections that wait for the report of their end. The kernel itself takes 2 KiB or more for each.
const DEPARTED_MAX: usize = 1 << 16;
/// `(uid_t) -1`, which is no user.
pub(crate) const NO_USER: u32 = u32::MAX;

/// Ends of connections, as the kernel reports them.
#[derive(Debug, Default)]
pub(super) struct Closings {
    is_reported: bool,
    /// When the first refresh began, in seconds since the epoch.
    began_s: f64,
    total: u64,
    missed: u64,
    rows: Vec<Closed>,
    /// Connections that are not listed any more and whose end is not reported yet, by cookie. A program may hold a socket long after its
    /// connection was reset.
    departed: HashMap<u64, (SocketRow, Sample)>,
}

#[derive(Debug)]
struct Closed {
    row: SocketRow,
    /// Payload of this interval.
    sent_bytes: u64,
    received_bytes: u64,
}

impl Closings {
    pub(super) const fn begin(&mut self, at_s: f64) {
        self.began_s = at_s;
    }

    /// Takes a connection that is not listed any more.
    pub(super) fn depart(&mut self, row: SocketRow, sample: Sample) {
        if !self.is_reported {
            return;
        }
        // Reports that were missed never come.
        if self.departed.len() == DEPARTED_MAX {
            self.departed.clear();
        }
        self.departed.insert(row.id, (row, sample));
    }

    /// What ended in an interval of this length.
    pub(super) fn report(&mut self, interval_s: f64) -> Option<ClosedSockets> {
        if !self.is_reported {
            return None;
        }
        let rate = |bytes: u64| if interval_s > 0.0 { bytes as f64 * 8.0 / interval_s } else { 0.0 };
        let rows = self.rows.drain(..).map(|mut closed| {
            closed.row.send.rate_bps = rate(closed.sent_bytes);
            closed.row.receive.rate_bps = rate(closed.received_bytes);
            closed.row
        });
        let sockets = rows.collect();
        let (total, missed) = (std::mem::take(&mut self.total), std::mem::take(&mut self.missed));
        Some(ClosedSockets { total, missed, sockets })
    }
}

impl Tracker {
    /// From now on [`Tracker::close`] gets every connection that ends.
    pub const fn expect_closings(&mut self) {
        self.closings.is_reported = true;
    }

    /// So many connections ended and were not reported.
    pub const fn closings_missed(&mut self, connections: u64) {
        self.closings.missed += connections;
    }

    /// Takes a connection whose end the kernel reported at `at_s`, in seconds since the epoch, between two refreshes. `field` gives what `TCP_INFO`
    /// held at its end. Its counters enter the sums from the last refresh at which it was observed on, or all of them if it never was.
    pub fn close(&mut self, observed: &Observed<'_>, at_s: f64, field: impl Fn(&str) -> u64) {
        let (mut row, before) = if let Some(&place) = self.places.get(&observed.cookie) {
            let track = &mut self.tracks[place];
            track.is_closed = true;
            (self.report.sockets[place].clone(), track.opened.take().unwrap_or(track.sample))
        } else if let Some(departed) = self.closings.departed.remove(&observed.cookie) {
            departed
        } else if self.refreshes > 0 && at_s - idle_s(&field) >= self.closings.began_s {
            (SocketRow { uid: NO_USER, ..new_row(observed, SocketState::Closed) }, Sample::default())
        } else {
            // All that it did was before the first refresh.
            return;
        };
        let now = Sample::of(at_s, &field, 0);
        fill(&mut row, observed, &field, &Sample { at_s, ..before }, &now);
        row.state = SocketState::Closed;
        // What it still held went with it.
        let send = &mut row.send;
        (send.queued_bytes, send.unsent_bytes, send.in_flight_bytes, send.queued_s) = (0, 0, 0, Some(0.0));
        (send.buffered_bytes, send.zero_window) = (0, false);
        (row.receive.unread_bytes, row.receive.buffered_bytes) = (0, 0);
        self.totals.close(&row, &before, &now);
        self.closings.total += 1;
        if self.closings.rows.len() < ROWS_MAX {
            let sent_bytes = now.bytes_acked.saturating_sub(before.bytes_acked);
            let received_bytes = now.bytes_received.saturating_sub(before.bytes_received);
            self.closings.rows.push(Closed { row, sent_bytes, received_bytes });
        }
    }
}

/// Seconds since it sent data or received anything.
fn idle_s(field: impl Fn(&str) -> u64) -> f64 {
    let last = ["tcpi_last_data_sent", "tcpi_last_data_recv", "tcpi_last_ack_recv"].map(field);
    last.into_iter().min().unwrap_or(0) as f64 / 1e3
}
