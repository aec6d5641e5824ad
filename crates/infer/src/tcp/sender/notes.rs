//! What is noted of a sender's packets for the facts that are told of it, and for plots; nothing here changes what is concluded.

use super::Sender;
use crate::event::RetransmitKind;
use crate::observe::congestion_control::WindowSample;
use crate::tcp::packet::{Ack, Data};
use thalweg_model::{LossMark, MarkKind};

/// Packets missing in one place that are noted one by one. Bounds memory.
const MAX_MISSING: u64 = 4_096;

impl Sender {
    pub(super) fn note_sent(&mut self, data: &Data) {
        self.observers.burst = self.observers.microbursts.sent(data.now, data.len);
        if self.observers.awaited_echo.is_none() && data.tsval != self.space.newest_tsval {
            self.observers.awaited_echo = data.tsval.map(|tsval| (tsval, data.now));
        }
    }

    /// What is missing before `start` was lost before this tap, or is late: it left at even distances, as far as is known.
    pub(super) fn note_missing(&mut self, now: u64, start: u64) {
        if self.times_acks {
            return;
        }
        let missing = ((start - self.space.nxt) / self.space.mss.max(1)).clamp(1, MAX_MISSING);
        let step = now.saturating_sub(self.clocks.last_send) / (missing + 1);
        for n in 1..=missing {
            self.observers.loss_episodes.lost(self.clocks.last_send + n * step, self.rtt.smoothed as u64);
        }
    }

    /// New data left.
    pub(super) fn note_window(&mut self, data: &Data, paused: bool) {
        let window = WindowSample {
            now: data.now,
            una: self.space.una,
            next: self.space.nxt,
            flight: self.flight(),
            mss: self.space.mss,
            repairing: self.losses.episode.is_some(),
            bounded: paused
                || u64::from(data.len) < self.space.mss
                || self.window.known && self.window.edge < self.space.nxt + self.space.mss,
        };
        if let Some(largest) = self.observers.congestion_control.sent(&window)
            && let Some(drawn) = &mut self.observers.plots
        {
            drawn.cwnd.push(data.now as f64 / 1e9, largest as f64);
        }
    }

    /// `[start, end)` is sent again, as `kind`; it began `opened` an episode of repair.
    pub(super) fn note_again(&mut self, (start, end): (u64, u64), kind: RetransmitKind, opened: bool) {
        let fired = self.losses.timer_just_fired;
        if fired && self.scoreboard.sacked.end().is_none_or(|top| top <= end) {
            self.observers.tail_losses.fired(self.space.una, start, self.space.nxt, kind);
        }
        match kind {
            RetransmitKind::Fast if opened => self.observers.congestion_control.lost(self.space.mss),
            RetransmitKind::Timer if fired => self.observers.congestion_control.forget(),
            _ => {}
        }
        if !self.times_acks {
            return;
        }
        let from = self.scoreboard.segments.partition_point(|candidate| candidate.end <= start);
        let rtt = self.rtt.smoothed as u64;
        for lost in self.scoreboard.segments.range(from..).take_while(|one| one.end <= end).filter(|one| !one.resent) {
            self.observers.loss_episodes.lost(lost.sent, rtt);
            self.observers.microbursts.lost(lost.burst);
        }
    }

    /// A late packet, which begins at `start`, had been sent before what overtook it.
    pub(super) fn note_late(&mut self, now: u64, start: u64) {
        self.observers.reordering.by(self.space.nxt.saturating_sub(start), now.saturating_sub(self.scoreboard.gap_at));
        self.observers.loss_episodes.arrived();
    }

    /// Whether an acknowledgement, not taken in yet, tells that data was overtaken: it covers up to `to` what was sent once, or
    /// selectively acknowledges it, below what is selectively acknowledged.
    pub(super) fn note_overtaken(&mut self, ack: &Ack, to: u64) {
        if let (Some((tsval, at)), Some(echo)) = (self.observers.awaited_echo, ack.tsecr)
            && echo.wrapping_sub(tsval) as i32 >= 0
        {
            self.observers.awaited_echo = None;
            if echo == tsval {
                let echoed = ack.now.saturating_sub(at);
                self.observers.echo_min = Some(self.observers.echo_min.map_or(echoed, |least| least.min(echoed)));
            }
        }
        let Some(top) = self.scoreboard.sacked.end().filter(|&top| self.times_acks && top > self.space.una) else {
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
            self.observers.reordering.by(top - lowest, 0);
        }
    }

    /// Whether an acknowledgement of all before `to` ends in data that was selectively acknowledged: the receiver has it no longer.
    pub(super) fn note_pruned(&mut self, ack: &Ack, to: u64) {
        if to > self.space.una {
            if self.scoreboard.sacked.overlaps(to, to + 1) {
                let next = self.space.nxt;
                self.observers.pruned.get_or_insert_default().proved(ack.now, ack.number, ack.window, next);
            } else if let Some(pruned) = &mut self.observers.pruned {
                pruned.acknowledged(ack.now, to);
            }
        }
    }

    /// Old data comes, `new` bytes of which fill a gap. Where it came before, long enough ago for an acknowledgement of it to have reached
    /// the sender, the receiver did not take it.
    pub(super) fn note_refused(&mut self, data: &Data, start: u64, end: u64, new: u64) {
        let sacked = self.scoreboard.sacked.covered(start, end);
        if sacked > 0
            && let Some(pruned) = &mut self.observers.pruned
        {
            pruned.again += sacked;
        }
        if self.times_acks || new > 0 || sacked > 0 || start < self.space.una {
            return;
        }
        let at = self.scoreboard.segments.partition_point(|candidate| candidate.end <= start);
        let came = self.scoreboard.segments.get(at).map(|candidate| candidate.sent);
        if came.is_some_and(|came| data.now.saturating_sub(came) as f64 > self.rtt.smoothed) {
            self.observers.pruned.get_or_insert_default().refused += 1;
        }
    }

    pub(super) fn advertise(&mut self, ack: &Ack, to: u64) {
        self.window.size = Some(ack.window);
        self.window.is_probed &= ack.window == 0;
        if self.window.known && !ack.is_syn {
            self.observers.window_growth.advertised(ack.now, ack.window);
            self.observers.unscaled_window.advertised(to, u64::from(ack.window_field));
        }
        self.window.edge = to + ack.window;
        if ack.window > self.window.max {
            self.window.max = ack.window;
            self.observers.examples.largest_window = Some((ack.number, ack.now));
        }
        if ack.window == 0 {
            self.window.zero_windows += 1;
            if self.observers.examples.zero_window.len() < 3 {
                self.observers.examples.zero_window.push((ack.number, ack.now));
            }
            self.mark((ack.now, ack.number), to, MarkKind::ZeroWindow);
        }
        if let Some(drawn) = &mut self.observers.plots
            && self.window.known
        {
            drawn.window.push(ack.now as f64 / 1e9, ack.window as f64);
        }
    }

    /// Notes what happened at byte `at`, as a packet shows by its time and number.
    pub(super) fn mark(&mut self, (now, packet): (u64, u64), at: u64, kind: MarkKind) {
        if kind == MarkKind::Spurious {
            self.observers.policer_log.arrived(at);
            self.observers.tail_losses.needless(at);
            self.observers.loss_episodes.arrived();
            self.observers.congestion_control.forget();
        }
        let byte = at.saturating_sub(self.space.first);
        if let Some(drawn) = &mut self.observers.plots {
            drawn.mark(LossMark { t: now as f64 / 1e9, packet, byte, kind });
        }
    }

    pub(super) fn note_flight(&mut self, now: u64, flight: u64) {
        self.totals.flight_max = self.totals.flight_max.max(flight);
        if let Some(slice) = self.observers.time.slice(now) {
            slice.flight_max = slice.flight_max.max(flight);
        }
        if let Some(drawn) = &mut self.observers.plots {
            drawn.flight.push(now as f64 / 1e9, flight as f64);
        }
    }
}
