//! What a sender waits for: the receiver's window, repair, its own program, or none of these.

use super::Sender;
use crate::observe::time_by_limit::Limit;
use crate::tcp::packet::Data;

/// A window below this part of the largest is no full one: unread data fills the buffer behind it. Where a program reads at once, 1 % of
/// the windows are that small, while they grow (our labelled set's receive windows).
const FULL_PART: f64 = 0.75;

/// One acknowledgement in so many under a small window may leave its end where it is, and the receiver gives room at once nonetheless.
const STAYS: u64 = 8;

impl Sender {
    /// Notes for the policer's bucket that `[start, end)` was lost and is sent again.
    pub(super) fn log_again(&mut self, data: &Data, start: u64, end: u64) {
        if self.policed.is_closed() {
            let mut before = self.una;
            self.policed.open(self.candidates.iter().map(|candidate| {
                let from = std::mem::replace(&mut before, candidate.end);
                (from, candidate.end.saturating_sub(from) as u32, candidate.sent)
            }));
        }
        self.policed.sent_again(start, end);
        self.policed.sent(data.now, start, (end - start) as u32);
    }

    /// Whether a window is no full one.
    fn is_small(&self, window: u64) -> bool {
        (window as f64) < self.window_max as f64 * FULL_PART
    }

    pub(super) fn note_full_window(&mut self) {
        let window = self.window.unwrap_or(0) as f64;
        self.full_window_sum += window;
        if self.is_small(self.window.unwrap_or(0)) {
            let count = self.small_windows.0 + 1.0;
            let mean = self.small_windows.1 + (window - self.small_windows.1) / count;
            let spread = self.small_windows.2 + ((window - mean).abs() - self.small_windows.2) / count;
            self.small_windows = (count, mean, spread);
        }
    }

    /// Notes where the window ends by an acknowledgement of so many bytes that were not known to have come.
    pub(super) fn note_edge(&mut self, edge: u64, delivered: u64) {
        if self.window.is_some_and(|window| self.is_small(window)) && delivered > 0 {
            self.small_edges.0 += 1;
            self.small_edges.1 += u64::from(edge.saturating_sub(self.edge) < delivered / 2);
        }
    }

    /// Whether the windows that were small and full stayed about the same: no program reading in fits and starts, but a receiver
    /// that gives no more, as Linux under memory pressure does (`tcp_under_memory_pressure`, `rcv_ssthresh`), and gives it with each
    /// acknowledgement. Where a program reads evenly, the window is as large from one reading to the next, and smaller in between.
    pub(crate) fn small_window_is_steady(&self) -> bool {
        let (count, mean, spread) = self.small_windows;
        let (acknowledged, stayed) = self.small_edges;
        self.zero_windows == 0 && count >= 16.0 && spread < mean / 20.0 && stayed * STAYS <= acknowledged
    }

    /// Whether a send at `now` was not set off by an acknowledgement that made room for it.
    ///
    /// A sender with data waiting sends within the softirq that handled the acknowledgement, far under 1 ms (Linux
    /// `tcp_data_snd_check`); with a flight a quarter below its largest it had room before.
    pub(super) fn class_is_unforced(&self, now: u64) -> bool {
        now.saturating_sub(self.last_progress) > 1_000_000 || self.flight() * 4 < self.flight_max * 3
    }

    /// The longest segment that is sent: no longer than half of the largest window, where that is less than the MSS, as on loopback.
    ///
    /// Source: Linux `tcp_bound_to_half_wnd`.
    pub(super) fn segment(&self) -> u64 {
        if self.window_max > 536 { self.mss.min(self.window_max / 2) } else { self.mss }
    }

    /// How much of a `window` a sender that waits for more of it may leave unused.
    ///
    /// One segment, or what Linux gathers into one burst before it sends (`tcp_tso_should_defer`, `GSO_LEGACY_MAX_SIZE`): up to 64 KiB, and
    /// less of a small window. Within a round trip what it sends fills the window then, so at the sender's tap a program that only comes
    /// near to that is told apart.
    fn unused(&self, window: u64) -> u64 {
        let round = self.last_send.saturating_sub(self.rtt.smoothed as u64);
        if self.times_acks && self.filled_at.is_none_or(|at| at < round) {
            return self.segment();
        }
        self.burst(window, if self.times_acks { 3 } else { 8 })
    }

    /// What is gathered into one burst: at most such a part of the window, 64 KiB, and a segment at least.
    fn burst(&self, window: u64, part: u64) -> u64 {
        (window / part).min(65_536).max(self.segment())
    }

    /// Notes that the window has room for all that Linux gathers into one burst: what waits for the window alone is sent at once.
    ///
    /// Source: `tcp_tso_should_defer`: a third of the window (`tcp_tso_win_divisor`), or `GSO_LEGACY_MAX_SIZE`.
    pub(super) fn note_room(&mut self, now: u64) {
        let Some(window) = self.window else { return };
        let is_open = self.edge >= self.nxt + self.burst(window, 3);
        if self.open_at.is_none() && self.times_acks && self.window_known && is_open {
            self.open_at = Some(now);
        }
    }

    /// Whether what is sent at `now` did not wait for the window: there was room already, and no acknowledgement just set it off.
    pub(super) fn was_open(&self, now: u64) -> bool {
        /// Within it what waits is sent, in a softirq or once the processor is free.
        const AT_ONCE: u64 = 250_000;
        self.open_at.is_some_and(|at| {
            let since = now.saturating_sub(at);
            since > 4 * AT_ONCE || since > AT_ONCE && now.saturating_sub(self.last_heard) > AT_ONCE
        })
    }

    /// How long it neither sent nor made progress, in nanoseconds.
    pub(super) fn silence(&self, now: u64) -> u64 {
        now.saturating_sub(self.last_send.max(self.last_progress))
    }

    /// About the retransmission timeout, in nanoseconds.
    pub(super) fn timeout(&self) -> f64 {
        self.rtt.timeout(self.losses.margin)
    }

    /// From when on a silence may be the retransmission timer's: a tenth sooner, for the timer and the tap see other round trips.
    pub(super) fn nearly_timeout(&self) -> f64 {
        0.9 * self.timeout()
    }

    /// Whether something is missing, or was and is not all acknowledged.
    pub(crate) fn is_repairing(&self) -> bool {
        self.losses.episode.is_some() || self.gaps.total() > 0
    }

    /// What the sender waits for now.
    pub(super) fn class(&self) -> Limit {
        let closed = self.window.is_some_and(|w| {
            w == 0 || (self.window_known && w < self.segment() && self.edge <= self.nxt + self.segment())
        });
        if closed && self.window_max > 0 {
            return Limit::Reader;
        }
        if self.payload_end() <= self.una {
            return Limit::Application;
        }
        // Or something is missing, and nothing else is out.
        if self.losses.episode.is_some() || self.sacked.total() > 0 && self.flight() == 0 {
            return Limit::Recovery;
        }
        if let Some(window) = self.window
            && self.window_known
            && self.edge < self.nxt + self.unused(window)
        {
            // A window well below what it was: the buffer behind it fills. Half is Linux's own measure of a receiver under
            // pressure (`__tcp_select_window`: free space below half of the full space).
            return if self.is_small(window) { Limit::Reader } else { Limit::ReceiveWindow };
        }
        Limit::Open
    }

    /// Bytes in flight: sent, and neither acknowledged nor believed lost.
    ///
    /// Source: RFC 6675 §4, `pipe`.
    pub(crate) fn flight(&self) -> u64 {
        let outstanding = self.nxt.saturating_sub(self.una);
        match &self.losses.episode {
            Some(episode) if episode.timer && self.sacked.total() == 0 => {
                (self.resent.total() + self.nxt.saturating_sub(episode.point)).min(outstanding)
            }
            _ => match self.sacked.end() {
                Some(top) => {
                    let holes = (top - self.una.min(top)).saturating_sub(self.sacked.total());
                    self.nxt.saturating_sub(top.max(self.una)) + self.resent.total().min(holes)
                }
                // The same by duplicates, where there is no SACK: Linux `tcp_packets_in_flight`, `tcp_add_reno_sack`.
                None if self.is_repairing() || self.duplicates_in_row > 0 => {
                    outstanding.saturating_sub(self.duplicated)
                }
                None => outstanding,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a window that is small and full whenever data is sent is steady, where it stays as it ends at so many of eight
    /// acknowledgements.
    fn is_steady(stays: u64) -> bool {
        let mut sender = Sender { window: Some(20_000), window_max: 100_000, ..Sender::default() };
        for n in 0..64 {
            sender.note_full_window();
            let edge = sender.edge + if n % 8 < stays { 0 } else { 1_000 };
            sender.note_edge(edge, 1_000);
            sender.edge = edge;
        }
        sender.small_window_is_steady()
    }

    #[test]
    fn a_window_that_only_reading_moves_on_is_the_programs() {
        assert!(is_steady(0) && is_steady(1));
        assert!(!is_steady(4));
    }
}
