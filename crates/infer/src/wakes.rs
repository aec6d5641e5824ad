//! Whether a full socket buffer is what made the sending program wait.
//!
//! A program blocked on a full buffer is woken when a third of it is free, and fills it again at once. Each pause so ends with an
//! acknowledgement, while much is still in flight, and begins at the same flight as the one before. A program that has nothing to
//! send ends its pauses when it pleases, or with the request that an acknowledgement carries.

/// A program is woken when what the buffer holds is at most two thirds of it (Linux `sk_stream_is_writeable`); whole packets'
/// memory is what is counted, so payload in flight was down to 0.50 of its peak at 40 ms, 500 Mb/s and 512 kB, and to 0.37 where a
/// queue grew beside a buffer of 300 kB. A third of it.
const STILL_IN_FLIGHT: u64 = 3;
/// Where more is in flight yet, in quarters, no program was woken: the kernel gathers segments before it sends them (`tcp_tso_should_defer`).
const GATHERED: u64 = 3;
/// What is shorter is no pause: within this time a program that is woken has written and the kernel sent.
const SHORTEST: u64 = 1_000_000;
/// Pauses enough to judge by.
const MANY: u64 = 16;
/// Or fewer, if they last for this many round trips together.
const LONG: f64 = 4.0;
const FEW: u64 = 4;
/// Part of the pauses that must end so. A timer of period T falls into the 1 ms after an acknowledgement by chance with
/// probability 1 ms/T.
const PART: f64 = 0.8;
/// A full buffer holds whole segments; where most pauses began after a short one, the program had written all it had. In the labelled
/// range of 400,000 every pause of 23 of the 29 programs that pause by themselves began so, and at most half of any full buffer's.
const SHORT_PART: f64 = 0.75;
/// Mean deviation of the flights that pauses begin at, against their mean. A buffer counted in packets' memory varies by 1 %
/// in our lab; a window that grows from 70 to 100 % of its peak (RFC 9438, β = 0.7) by 7 %.
const SPREAD: f64 = 0.05;

/// Pauses that room in all windows made the application's, and how they ended.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    pauses: u64,
    /// Those that ended as a full buffer's do.
    pub(crate) woken: u64,
    /// Of these, those that began after a short segment.
    short: u64,
    /// Nanoseconds of these.
    pub(crate) time: u64,
    /// Mean and mean deviation of the flights they began at.
    pub(crate) peak: f64,
    spread: f64,
}

/// How a pause ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    /// Nanoseconds that were charged to the application.
    pub(crate) charged: u64,
    /// The send followed an acknowledgement without payload at once, and was a full segment.
    pub(crate) clocked: bool,
    /// It began after a segment that was shorter than a full one.
    pub(crate) short: bool,
    /// In flight when the pause began, and when it ended.
    pub(crate) began_at: u64,
    pub(crate) ended_at: u64,
}

impl Wakes {
    /// A pause ended.
    pub(crate) fn ended(&mut self, end: End) {
        if end.charged < SHORTEST || end.clocked && end.ended_at * 4 > end.began_at * GATHERED {
            return;
        }
        self.pauses += 1;
        if !end.clocked || end.ended_at * STILL_IN_FLIGHT < end.began_at {
            return;
        }
        self.woken += 1;
        self.short += u64::from(end.short);
        self.time += end.charged;
        let peak = end.began_at as f64;
        // The first ones weigh less: a buffer that tunes itself, and packets that grow, settle within them.
        let weight = (1.0 / self.woken as f64).max(1.0 / MANY as f64);
        self.peak += (peak - self.peak) * weight;
        self.spread += ((peak - self.peak).abs() - self.spread) * weight;
    }

    /// Whether the pauses are those of a program that waits for its socket buffer; `rtt` in nanoseconds.
    pub(crate) fn are_a_buffers(&self, rtt: f64) -> bool {
        let enough = self.woken >= MANY || self.woken >= FEW && self.time as f64 >= LONG * rtt;
        let whole = (self.short as f64) < SHORT_PART * self.woken as f64;
        enough && whole && self.woken as f64 >= PART * self.pauses as f64 && self.spread <= SPREAD * self.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: End = End { charged: 30_000_000, clocked: true, short: false, began_at: 400_000, ended_at: 220_000 };

    #[test]
    fn equal_flights_and_acknowledgements_that_wake_are_a_buffers() {
        let mut wakes = Wakes::default();
        (0..5).for_each(|n| wakes.ended(End { began_at: 400_000 + n * 1_000, ..PAUSE }));
        assert!(wakes.are_a_buffers(30e6));
        assert!(!wakes.are_a_buffers(60e6), "too few for that long a round trip");
    }

    #[test]
    fn timers_requests_and_growing_windows_are_not() {
        let judge = |end: fn(u64) -> End| {
            let mut wakes = Wakes::default();
            (0..100).for_each(|n| wakes.ended(end(n)));
            wakes.are_a_buffers(30e6)
        };
        assert!(!judge(|n| End { clocked: n % 2 == 0, ..PAUSE }));
        assert!(!judge(|_| End { ended_at: 0, ..PAUSE }));
        assert!(!judge(|_| End { ended_at: 380_000, ..PAUSE }), "gathered by the kernel");
        assert!(!judge(|_| End { short: true, ..PAUSE }), "all that was written had gone");
        assert!(!judge(|n| End { began_at: 400_000 + n % 10 * 40_000, ..PAUSE }));
    }
}
