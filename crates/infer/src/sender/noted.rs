//! What is noted of a sender for plots and rules: windows, flights, marks.

use super::Sender;
use crate::packet::Ack;
use model::{LossMark, MarkKind};

/// Marks a plot keeps.
const MOST_MARKS: usize = 4_000;

impl Sender {
    pub(super) fn advertise(&mut self, ack: &Ack, to: u64) {
        self.window = Some(ack.window);
        self.edge = to + ack.window;
        if ack.window > self.window_max {
            self.window_max = ack.window;
            self.sights.largest_window = Some((ack.number, ack.now));
        }
        if ack.window == 0 {
            self.zero_windows += 1;
            if self.sights.zero_window.len() < 3 {
                self.sights.zero_window.push((ack.number, ack.now));
            }
            self.mark(ack.now, to, MarkKind::ZeroWindow);
        }
        if let Some(drawn) = &mut self.drawn
            && self.window_known
        {
            drawn.window.push(ack.now as f64 / 1e9, ack.window as f64);
        }
    }

    pub(super) fn mark(&mut self, now: u64, at: u64, kind: MarkKind) {
        let byte = at.saturating_sub(self.first);
        if let Some(drawn) = &mut self.drawn
            && drawn.marks.len() < MOST_MARKS
        {
            drawn.marks.push(LossMark { t: now as f64 / 1e9, byte, kind });
        }
    }

    pub(super) fn note_flight(&mut self, now: u64, flight: u64) {
        self.flight_max = self.flight_max.max(flight);
        if let Some(slice) = self.timeline.slice(now) {
            slice.flight_max = slice.flight_max.max(flight);
        }
        if let Some(drawn) = &mut self.drawn {
            drawn.flight.push(now as f64 / 1e9, flight as f64);
        }
    }
}
