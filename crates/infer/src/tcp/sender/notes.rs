//! What acknowledgements tell besides progress: that data was overtaken, that the receiver dropped some, the window.

use super::Sender;
use super::scale_search::NewData;
use crate::event::Event;
use crate::tcp::packet::{Ack, Data};

impl Sender {
    /// Whether an acknowledgement, not taken in yet, tells that data was overtaken: it covers up to `to` what was sent once, or
    /// selectively acknowledges it, below what is selectively acknowledged.
    pub(super) fn note_overtaken(&mut self, ack: &Ack, to: u64) {
        let Some(top) = self.scoreboard.sacked.end().filter(|&top| self.is_exact() && top > self.space.una) else {
            return;
        };
        let mut lowest = self.scoreboard.has_original(self.space.una, to.min(top), top).then_some(self.space.una);
        for &(left, right) in ack.sack.as_slice() {
            if let (Some(left), Some(right)) = (self.space.unwrap_seq(left), self.space.unwrap_seq(right))
                && left >= to
                && right <= top
                && self.scoreboard.has_original(left, right, top)
            {
                lowest = Some(lowest.map_or(left, |lowest| lowest.min(left)));
            }
        }
        if let Some(lowest) = lowest {
            self.observers.event(&Event::Overtaken { bytes: top - lowest, late: None });
        }
    }

    /// Whether an acknowledgement of all before `to` ends in data that was selectively acknowledged: the receiver has it no longer.
    pub(super) fn note_reneged(&mut self, ack: &Ack, to: u64) {
        if to > self.space.una && self.scoreboard.sacked.overlaps(to, to + 1) {
            let (now, number, window, next) = (ack.now, ack.number, ack.window, self.space.nxt);
            self.observers.event(&Event::Reneged { now, number, window, next });
        }
    }

    /// Old data comes, `new` bytes of which fill a gap. Where it came before, long enough ago for an acknowledgement of it to have reached
    /// the sender, the receiver did not take it.
    pub(super) fn note_refused(&mut self, data: &Data, start: u64, end: u64, new: u64) {
        let sacked = self.scoreboard.sacked.covered(start, end);
        if sacked > 0 {
            self.observers.event(&Event::SackedResent(sacked));
        }
        if self.is_exact() || new > 0 || sacked > 0 || start < self.space.una {
            return;
        }
        let at = self.scoreboard.segments.partition_point(|candidate| candidate.end <= start);
        let came = self.scoreboard.segments.get(at).map(|candidate| candidate.sent);
        // Sent again by the first acknowledgement that tells of it, it comes a round trip later.
        let least = self.rtt.least().unwrap_or(u64::MAX);
        if came.is_some_and(|came| data.now.saturating_sub(came) >= least) {
            self.observers.event(&Event::Refused);
        }
    }

    /// New data up to `end` leaves: it tells the scale of a window where no SYN does.
    pub(super) fn note_scale(&mut self, now: u64, end: u64) {
        let afar = !self.is_exact();
        let Some(search) = &mut self.window.search else { return };
        if search.sent(&NewData { now, end, segment: self.space.mss, round_trip: self.rtt.usual() as u64, afar }) {
            // What was advertised before has this scale as well.
            let (size, edge) = search.window();
            (self.window.max, self.window.known) = (search.window_max(), search.found().is_some());
            (self.window.size, self.window.edge) = (Some(size), edge);
        }
    }

    /// Takes the window of an acknowledgement up to `to` in; whether it is larger than any before.
    pub(super) fn advertise(&mut self, ack: &Ack, to: u64) -> bool {
        if !self.window.known {
            self.window.search.get_or_insert_default();
        }
        if let Some(search) = &mut self.window.search {
            search.advertised(to, ack.window_field);
        }
        let edge = to + ack.window;
        if edge > self.window.edge {
            self.window.was_used_up = self.uses_up_window();
        }
        self.window.size = Some(ack.window);
        self.window.is_probed &= ack.window == 0;
        self.window.edge = edge;
        let is_largest = ack.window > self.window.max;
        self.window.max = self.window.max.max(ack.window);
        is_largest
    }
}
