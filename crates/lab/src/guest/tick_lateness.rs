//! How late the programs of a run in real time are, by the ticks of the timer that empties the capture rings.

use super::clock::{minus, plus};
use thalweg_live::Lateness;
use thalweg_units::Span;

/// Lateness that a run may have in any case: a quarter of a jiffy at 250 Hz, in which the kernel counts its own timers of TCP.
const LATE_MAX: Span = Span::from_millis(1);
/// Part of the round trip that 99 of 100 ticks may be late by, as of the emulator's packets.
const LATE_PART_MAX: f64 = 0.01;

/// Lateness of ticks.
#[derive(Debug)]
pub(super) struct TickLateness {
    due: Span,
    every: Span,
    late: Lateness,
}

impl TickLateness {
    /// Ticks each `every` from `due` on.
    pub(super) fn new(due: Span, every: Span) -> Self {
        Self { due, every, late: Lateness::new() }
    }

    /// Notes at `now` that so many ticks are over.
    pub(super) fn note(&mut self, now: Span, ticks: u64) {
        for _ in 0..ticks {
            self.late.record(minus(now, self.due));
            self.due = plus(self.due, self.every);
        }
    }

    /// The lateness that 99 of 100 ticks did not exceed.
    pub(super) fn p99(&self) -> Span {
        self.late.quantile(0.99)
    }

    /// What there is to say of a path with this round-trip time.
    pub(super) fn fault(&self, rtt: Span) -> Option<String> {
        let most = LATE_MAX.max(Span::from_secs_f64(rtt.as_secs_f64() * LATE_PART_MAX));
        (self.p99() > most).then(|| {
            let (late, most) = (self.p99().as_micros(), most.as_micros());
            format!(
                "the programs ran late: one tick in a hundred by more than {late} µs; up to {most} µs is as asked for"
            )
        })
    }
}
