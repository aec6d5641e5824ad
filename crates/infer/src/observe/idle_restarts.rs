//! Pauses after which the congestion window restarted.
//!
//! Source: RFC 5681 §4.1 and RFC 7661; Linux `tcp_cwnd_restart`, `net.ipv4.tcp_slow_start_after_idle`: the window halves for each
//! retransmission timeout of silence, down to the initial one.

use super::counted::Counted;
use crate::event::Sent;

/// Shortest timeout of Linux, and so the shortest pause that costs the window: `TCP_RTO_MIN`.
const MIN_PAUSE_NS: u64 = 200_000_000;

/// Segments of the smallest window that restarts (RFC 5681 §4.1: the initial window, two to four segments; ten by RFC 6928). What a
/// timer sends again is one.
const MIN_RESTART_SEGMENTS: u64 = 2;

/// Bursts of one direction, and those that grew their window again.
#[derive(Debug, Default)]
pub(crate) struct IdleRestarts {
    /// Bursts that followed a pause.
    pub(crate) bursts: u64,
    /// Those that began with half of the flight there had been before, or less, and grew it.
    pub(crate) restarted: Counted,
    /// Those of them in which nothing was sent again: the time of the others is their repairs', too.
    pub(crate) whole: u64,
    /// Nanoseconds from the first packet of these to their last acknowledgement, and their payload.
    pub(crate) time: u64,
    pub(crate) bytes: u64,
    began: Option<(u64, u64, u64)>,
    /// What had been sent again when the burst began.
    lost: u64,
    after_pause: bool,
    first_flight: u64,
    flight: u64,
    before: u64,
    acked_at: u64,
}

impl IdleRestarts {
    pub(crate) fn sent(&mut self, sent: &Sent) {
        if sent.una >= sent.start && sent.now.saturating_sub(sent.last_send) >= MIN_PAUSE_NS {
            self.end(sent.start, sent.mss, sent.retransmits);
            self.lost = sent.retransmits;
            self.after_pause = self.before > 0;
            (self.first_flight, self.flight) = (0, 0);
        }
        let (_, first, _) = *self.began.get_or_insert((sent.now, sent.start, sent.number));
        let flight = sent.flight_with();
        if sent.una <= first {
            self.first_flight = self.first_flight.max(flight);
        }
        self.flight = self.flight.max(flight);
    }

    /// Data was acknowledged.
    pub(crate) fn acked(&mut self, now: u64) {
        self.acked_at = now;
    }

    /// The burst before byte `next` is over, and `lost` counts what was sent again until now.
    pub(crate) fn end(&mut self, next: u64, mss: u64, lost: u64) {
        let Some((at, start, number)) = self.began.take() else { return };
        if self.after_pause {
            self.bursts += 1;
            if self.first_flight >= MIN_RESTART_SEGMENTS * mss && self.first_flight * 2 <= self.before.min(self.flight)
            {
                self.restarted.note(number, at);
                if lost == self.lost {
                    self.whole += 1;
                    self.time += self.acked_at.saturating_sub(at);
                    self.bytes += next.saturating_sub(start);
                }
            }
        }
        self.before = self.flight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `bursts` bursts a second apart that grow from 10 to 40 segments, and `lost` more of each is sent again.
    fn bursts(bursts: u64, lost: u64) -> IdleRestarts {
        const MSS: u64 = 1_000;
        let (mut restarts, mut now, mut next) = (IdleRestarts::default(), 0, 0);
        for burst in 0..bursts {
            let first = next;
            now += 1_000_000_000;
            for flight in [10, 20, 40] {
                for segment in 0..flight {
                    let (una, quiet) = (if segment == 0 && next == first { next } else { first + 1 }, now);
                    let una = if flight == 10 { una.min(first) } else { una };
                    let quiet = if flight == 10 && segment == 0 { quiet } else { 0 };
                    restarts.sent(&Sent {
                        number: burst,
                        now,
                        start: next,
                        next: next + MSS,
                        una,
                        flight_before: segment * MSS,
                        last_send: now - quiet,
                        mss: MSS,
                        retransmits: burst * lost,
                        ..Sent::default()
                    });
                    next += MSS;
                }
                now += 40_000_000;
                restarts.acked(now);
            }
        }
        restarts.end(next, MSS, bursts * lost);
        restarts
    }

    #[test]
    fn the_last_burst_counts_as_the_others_do() {
        for count in 2..6 {
            let found = bursts(count, 0);
            assert_eq!((found.bursts, found.restarted.count, found.whole), (count - 1, count - 1, count - 1));
            assert_eq!((found.time, found.bytes), ((count - 1) * 120_000_000, (count - 1) * 70_000));
        }
    }

    #[test]
    fn what_repairs_took_is_not_what_growth_took() {
        let found = bursts(4, 1);
        assert_eq!((found.bursts, found.restarted.count, found.whole, found.time), (3, 3, 0, 0));
    }
}
