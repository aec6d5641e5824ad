//! The clock of the packets that tell round trips.
//!
//! Each carries the time it left at, by its own sender's clock (TSval). How much later than that it came tells of one of the two ways, up to
//! what the clocks differ by: acknowledgements' at the sender, the data's elsewhere.

use crate::tcp::receiver_view::remote_clock::TICK;

/// The clock of those who tell round trips.
#[derive(Debug, Default)]
pub(crate) struct OneWayDelay {
    first: Option<u32>,
    /// One showed a round trip and had no time in it.
    pub(crate) unstamped: bool,
}

impl OneWayDelay {
    /// Whether a packet that tells a round trip was not held back by its sender for long, which sent the one before this many ticks earlier: had
    /// it heard what this one echoes before that, that one had told it.
    pub(crate) fn is_prompt(quiet: i32, rtt: u64) -> bool {
        i64::from(quiet) * TICK as i64 <= (rtt as i64 / 8).max(2 * TICK as i64)
    }

    /// How late a packet came that left at `tsval`, in nanoseconds from an arbitrary moment on.
    #[inline]
    pub(crate) fn late(&mut self, now: u64, tsval: Option<u32>) -> i64 {
        let Some(tsval) = tsval else {
            self.unstamped = true;
            return 0;
        };
        let first = *self.first.get_or_insert(tsval);
        now as i64 - i64::from(tsval.wrapping_sub(first) as i32) * TICK as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_queue_makes_packets_late_by_their_own_clock() {
        let mut legs = OneWayDelay::default();
        // The clock wraps meanwhile.
        let first = u32::MAX - 20;
        assert_eq!(legs.late(500 * MS, Some(first)), 500 * MS as i64);
        assert_eq!(legs.late(600 * MS, Some(first.wrapping_add(100))), 500 * MS as i64);
        assert_eq!(legs.late(730 * MS, Some(first.wrapping_add(200))), 530 * MS as i64);
        assert!(!legs.unstamped);
        legs.late(731 * MS, None);
        assert!(legs.unstamped);
    }

    #[test]
    fn who_was_silent_for_long_may_have_held_the_echo() {
        assert!(OneWayDelay::is_prompt(2, 5 * MS) && !OneWayDelay::is_prompt(3, 5 * MS));
        assert!(OneWayDelay::is_prompt(10, 80 * MS) && !OneWayDelay::is_prompt(11, 80 * MS));
    }
}
