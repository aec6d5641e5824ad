//! A clock that was set back while a connection was captured: its time goes on from where it was.

/// A packet of a connection further behind another of its packets than this, in nanoseconds, was captured by a clock that was set back: the reader
/// puts packets in order within it. `a_clock_that_was_set_back_goes_on` holds it.
const MAX_DISORDER: u64 = 1_000_000_000;

/// By how much a connection's times are moved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SetBackClock {
    moved: u64,
    /// A packet far behind, which counts when the next one's time is near it: one alone is damaged, or late.
    behind: Option<u64>,
}

impl SetBackClock {
    /// The time of a packet, moved, where `newest` is the latest of the connection; in nanoseconds.
    pub(super) fn moved(&mut self, at: u64, newest: u64) -> u64 {
        let moved = at.saturating_add(self.moved);
        if moved.saturating_add(MAX_DISORDER) >= newest {
            self.behind = None;
            return moved;
        }
        let Some(before) = self.behind.replace(at).filter(|before| before.abs_diff(at) <= MAX_DISORDER) else {
            return moved;
        };
        // The first packet after the step came with the latest before it.
        self.moved += newest - before.saturating_add(self.moved);
        self.behind = None;
        at.saturating_add(self.moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The moved times of packets.
    fn times(packets: &[u64]) -> Vec<u64> {
        let (mut clock, mut newest) = (SetBackClock::default(), 0);
        let moved = packets.iter().map(|&at| {
            let at = clock.moved(at, newest);
            newest = newest.max(at);
            at
        });
        moved.collect()
    }

    #[test]
    fn a_clock_that_was_set_back_goes_on() {
        let day = 86_400 * SECOND;
        let set_back = [day, day + 5, 7, 9, SECOND, 2 * SECOND];
        assert_eq!(times(&set_back), [day, day + 5, 7, day + 7, day + SECOND - 2, day + 2 * SECOND - 2]);
        let disorder = [day, day - SECOND, day - SECOND / 2, day + 1];
        assert_eq!(times(&disorder), disorder);
        let damaged = [day, 7, day + 1, 3 * SECOND, day + 2];
        assert_eq!(times(&damaged), damaged, "one alone");
    }
}
