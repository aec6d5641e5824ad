//! What is noted of a sender's packets for the facts that are told of it, and for plots; nothing here changes what is concluded.

use super::Sender;
use crate::event::RetransmitKind;
use crate::observe::congestion_control::{CongestionControl, WindowSample};
use crate::observe::loss_episodes::LossEpisodes;
use crate::observe::microbursts::Microbursts;
use crate::observe::reordering::Reordering;
use crate::observe::tail_losses::TailLosses;
use crate::observe::window_growth::WindowGrowth;
use crate::tcp::packet::{Ack, Data};
use model::{LossMark, MarkKind};

/// Marks a plot keeps.
const MOST_MARKS: usize = 4_000;
/// Packets missing in one place that are noted one by one.
const MOST_MISSING: u64 = 4_096;

/// Notes of one direction.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) overtaken: Reordering,
    pub(crate) tails: TailLosses,
    pub(crate) spans: LossEpisodes,
    pub(crate) bursts: Microbursts,
    pub(crate) windows: CongestionControl,
    pub(crate) growth: WindowGrowth,
    /// Bytes of the millisecond that the current packet left in.
    pub(super) burst: u32,
    /// A TSval whose echo is awaited, and when it was sent first.
    awaited: Option<(u32, u64)>,
    /// The shortest time to an echo, in nanoseconds.
    pub(crate) echo_min: Option<u64>,
}

impl Sender {
    pub(super) fn note_sent(&mut self, data: &Data) {
        self.noted.burst = self.noted.bursts.sent(data.now, data.len);
        if self.noted.awaited.is_none() && data.tsval != self.newest_tsval {
            self.noted.awaited = data.tsval.map(|tsval| (tsval, data.now));
        }
    }

    /// What is missing before `start` was lost before this tap, or is late: it left at even distances, as far as is known.
    pub(super) fn note_missing(&mut self, now: u64, start: u64) {
        if self.times_acks {
            return;
        }
        let missing = ((start - self.nxt) / self.mss.max(1)).clamp(1, MOST_MISSING);
        let step = now.saturating_sub(self.last_send) / (missing + 1);
        for n in 1..=missing {
            self.noted.spans.lost(self.last_send + n * step, self.rtt.smoothed as u64);
        }
    }

    /// New data left.
    pub(super) fn note_window(&mut self, data: &Data, paused: bool) {
        let window = WindowSample {
            now: data.now,
            una: self.una,
            next: self.nxt,
            flight: self.flight(),
            mss: self.mss,
            repairing: self.losses.episode.is_some(),
            bounded: paused || u64::from(data.len) < self.mss || self.window_known && self.edge < self.nxt + self.mss,
        };
        if let Some(largest) = self.noted.windows.sent(&window)
            && let Some(drawn) = &mut self.drawn
        {
            drawn.cwnd.push(data.now as f64 / 1e9, largest as f64);
        }
    }

    /// `[start, end)` is sent again, as `kind`; it began `opened` an episode of repair.
    pub(super) fn note_again(&mut self, (start, end): (u64, u64), kind: RetransmitKind, opened: bool) {
        let fired = self.losses.timer_just_fired;
        if fired && self.sacked.end().is_none_or(|top| top <= end) {
            self.noted.tails.fired(self.una, start, self.nxt, kind);
        }
        match kind {
            RetransmitKind::Fast if opened => self.noted.windows.lost(self.mss),
            RetransmitKind::Timer if fired => self.noted.windows.forget(),
            _ => {}
        }
        if !self.times_acks {
            return;
        }
        let from = self.candidates.partition_point(|candidate| candidate.end <= start);
        let rtt = self.rtt.smoothed as u64;
        for lost in self.candidates.range(from..).take_while(|one| one.end <= end).filter(|one| !one.resent) {
            self.noted.spans.lost(lost.sent, rtt);
            self.noted.bursts.lost(lost.burst);
        }
    }

    /// A late packet, which begins at `start`, had been sent before what overtook it.
    pub(super) fn note_late(&mut self, now: u64, start: u64) {
        self.noted.overtaken.by(self.nxt.saturating_sub(start), now.saturating_sub(self.gap_at));
        self.noted.spans.arrived();
    }

    /// Whether an acknowledgement, not taken in yet, tells that data was overtaken: it covers up to `to` what was sent once, or
    /// selectively acknowledges it, below what is selectively acknowledged.
    pub(super) fn note_overtaken(&mut self, ack: &Ack, to: u64) {
        if let (Some((tsval, at)), Some(echo)) = (self.noted.awaited, ack.tsecr)
            && echo.wrapping_sub(tsval) as i32 >= 0
        {
            self.noted.awaited = None;
            if echo == tsval {
                let echoed = ack.now.saturating_sub(at);
                self.noted.echo_min = Some(self.noted.echo_min.map_or(echoed, |least| least.min(echoed)));
            }
        }
        let Some(top) = self.sacked.end().filter(|&top| self.times_acks && top > self.una) else { return };
        let mut lowest = self.has_original(self.una, to.min(top), top).then_some(self.una);
        for &(left, right) in ack.sack.as_slice() {
            if let (Some(left), Some(right)) = (self.unwrap_seq(left), self.unwrap_seq(right))
                && left >= to
                && right <= top
                && self.has_original(left, right, top)
            {
                lowest = Some(lowest.map_or(left, |lowest| lowest.min(left)));
            }
        }
        if let Some(lowest) = lowest {
            self.noted.overtaken.by(top - lowest, 0);
        }
    }

    pub(super) fn advertise(&mut self, ack: &Ack, to: u64) {
        self.window = Some(ack.window);
        if self.window_known && !ack.is_syn {
            self.noted.growth.advertised(ack.now, ack.window);
        }
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
        if kind == MarkKind::Spurious {
            self.policed.arrived(at);
            self.noted.tails.needless(at);
            self.noted.spans.arrived();
            self.noted.windows.forget();
        }
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
