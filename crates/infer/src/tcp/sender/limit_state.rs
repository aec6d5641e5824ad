//! What a sender waits for: the receiver's window, repair, its own program, or none of these.

use super::Sender;
use crate::event::{Event, Limit, Pause, Trigger};

impl Sender {
    /// What triggered new data that is sent at `now`.
    ///
    /// A sender with data waiting sends within the softirq that handled the acknowledgement, far under 1 ms (Linux
    /// `tcp_data_snd_check`).
    pub(super) fn trigger(&self, now: u64) -> Trigger {
        let is_clocked = now.saturating_sub(self.clocks.last_progress) <= 1_000_000;
        if is_clocked { Trigger::Ack { pure: self.clocks.progress_was_pure } } else { Trigger::Own }
    }

    /// Whether no acknowledgement made room for what is sent with so much in flight: with a flight a quarter below its largest there was
    /// room before.
    pub(super) fn is_unforced(&self, trigger: Trigger, flight: u64) -> bool {
        trigger == Trigger::Own || flight * 4 < self.totals.flight_max * 3
    }

    /// The longest segment that is sent: no longer than half of the largest window, where that is less than the MSS, as on loopback.
    ///
    /// Source: Linux `tcp_bound_to_half_wnd`.
    pub(super) fn segment(&self) -> u64 {
        if self.window.max > 536 { self.space.mss.min(self.window.max / 2) } else { self.space.mss }
    }

    /// How much of a `window` a sender that waits for more of it may leave unused.
    ///
    /// One segment, or what Linux gathers into one burst before it sends (`tcp_tso_should_defer`, `GSO_LEGACY_MAX_SIZE`): up to 64 KiB, and
    /// less of a small window. Within a round trip what it sends fills the window then, so at the sender's tap a program that only comes
    /// near to that is recognized.
    fn unused(&self, window: u64) -> u64 {
        if !self.is_exact() {
            return self.burst(window, 8);
        }
        let round = self.clocks.last_send.saturating_sub(self.rtt.smoothed as u64);
        if self.window.filled_at.is_none_or(|at| at < round) { self.segment() } else { self.burst(window, 3) }
    }

    /// Whether what was sent leaves no more of the window unused than a sender that waits for more of it may.
    pub(super) fn uses_up_window(&self) -> bool {
        let is_used_up = |window| self.window.edge < self.space.nxt + self.unused(window);
        self.window.known && self.window.size.is_some_and(is_used_up)
    }

    /// What is gathered into one burst: at most such a part of the window, 64 KiB, and a segment at least.
    fn burst(&self, window: u64, part: u64) -> u64 {
        (window / part).min(65_536).max(self.segment())
    }

    /// Notes that the window has room for all that Linux gathers into one burst: what waits for the window alone is sent at once.
    ///
    /// Source: `tcp_tso_should_defer`: a third of the window (`tcp_tso_win_divisor`), or `GSO_LEGACY_MAX_SIZE`.
    pub(super) fn note_room(&mut self, now: u64) {
        let Some(window) = self.window.size else { return };
        if self.window.open_at.is_none() && self.window.edge >= self.space.nxt + self.burst(window, 3) {
            self.window.open_at = Some(now);
        }
    }

    /// Whether the room in a window that was at its largest was left until an acknowledgement made more of it: between two rows of
    /// acknowledgements that is long.
    ///
    /// Source: Linux `tcp_tso_should_defer`, which waits for the next acknowledgement as long as less than a burst fits.
    pub(super) fn is_gathered(&self, pause: &Pause) -> bool {
        self.is_exact()
            && pause.clocked
            && pause.began_at + self.space.mss > self.totals.flight_max
            && pause.ended_at + self.burst(pause.began_at, 3) > pause.began_at
    }

    /// Whether what is sent at `now` did not wait for the window: there was room already, and no acknowledgement just triggered it. `None` where
    /// that is not known.
    pub(super) fn was_open(&self, now: u64) -> Option<bool> {
        /// Within it what waits is sent, in a softirq or once the processor is free.
        const MAX_SEND_DELAY_NS: u64 = 250_000;
        let is_open = |at: u64| {
            let since = now.saturating_sub(at);
            since > 4 * MAX_SEND_DELAY_NS
                || since > MAX_SEND_DELAY_NS && now.saturating_sub(self.clocks.last_heard) > MAX_SEND_DELAY_NS
        };
        (self.is_exact() && self.window.known).then(|| self.window.open_at.is_some_and(is_open))
    }

    /// How long it neither sent nor made progress, in nanoseconds.
    pub(super) fn silence(&self, now: u64) -> u64 {
        now.saturating_sub(self.clocks.last_send.max(self.clocks.last_progress))
    }

    /// About the retransmission timeout, in nanoseconds.
    pub(super) fn timeout(&self) -> f64 {
        self.rtt.timeout(self.losses.margin)
    }

    /// From when on a silence may be the retransmission timer's: a tenth sooner, for the timer and the tap see other round trips.
    pub(super) fn nearly_timeout(&self) -> f64 {
        0.9 * self.timeout()
    }

    /// No data came any more until the connection `ended` while something was missing, for longer than a timer waits: what it sent, if anything,
    /// was lost as well. A FIN or an alert fills no gap.
    pub(super) fn wait_in_vain(&mut self, ended: u64) {
        let silence = ended.saturating_sub(self.clocks.last_data);
        if self.scoreboard.gaps.total() > 0 && silence as f64 >= self.nearly_timeout() {
            self.losses.in_vain = Some(silence);
            self.observers.event(&Event::TimerExpired { longest: u64::MAX });
        }
    }

    /// Whether something is missing, or was and is not all acknowledged. What does not come to a tap at the sender is missing in the capture alone.
    pub(crate) fn is_repairing(&self) -> bool {
        self.losses.episode.is_some() || !self.is_exact() && self.scoreboard.gaps.total() > 0
    }

    /// What the sender waits for now.
    pub(super) fn class(&self) -> Limit {
        let closed = self.window.size.is_some_and(|w| {
            w == 0 || (self.window.known && w < self.segment() && self.window.edge <= self.space.nxt + self.segment())
        });
        if closed && self.window.max > 0 {
            return Limit::Reader;
        }
        if self.space.payload_end() <= self.space.una {
            return Limit::Application;
        }
        // Or something is missing, and nothing else is out.
        if self.losses.episode.is_some() || self.scoreboard.sacked.total() > 0 && self.flight() == 0 {
            return Limit::Recovery;
        }
        match self.window.size {
            // A window well below what it was: the buffer behind it fills. Half is Linux's own measure of a receiver under
            // pressure (`__tcp_select_window`: free space below half of the full space).
            Some(window) if self.window.is_small(window) => {
                // Paced data takes for as long to use it up as its reader takes to make room for more.
                if self.uses_up_window() || self.window.was_used_up { Limit::Reader } else { Limit::Open }
            }
            _ if self.uses_up_window() => Limit::ReceiveWindow,
            _ => Limit::Open,
        }
    }

    /// Bytes in flight: sent, and neither acknowledged nor believed lost.
    ///
    /// Source: RFC 6675 §4, `pipe`.
    pub(crate) fn flight(&self) -> u64 {
        let outstanding = self.space.nxt.saturating_sub(self.space.una);
        match &self.losses.episode {
            Some(episode) if episode.timer && self.scoreboard.sacked.total() == 0 => {
                (self.scoreboard.resent.total() + self.space.nxt.saturating_sub(episode.point)).min(outstanding)
            }
            _ => match self.scoreboard.sacked.end() {
                Some(top) => {
                    let holes = (top - self.space.una.min(top)).saturating_sub(self.scoreboard.sacked.total());
                    self.space.nxt.saturating_sub(top.max(self.space.una)) + self.scoreboard.resent.total().min(holes)
                }
                // The same by duplicates, where there is no SACK: Linux `tcp_packets_in_flight`, `tcp_add_reno_sack`.
                None if self.is_repairing() || self.scoreboard.duplicates_in_row > 0 => {
                    outstanding.saturating_sub(self.scoreboard.duplicated)
                }
                None => outstanding,
            },
        }
    }
}
