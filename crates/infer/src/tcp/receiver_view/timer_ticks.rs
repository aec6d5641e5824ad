//! Whether a far sender sends by a timer: at moments that lie a multiple of ten milliseconds apart by the clock of its timestamps.
//!
//! What acknowledgements set off comes around with the round trip, which is such a multiple by chance only, and then varies.

use super::remote_clock::TICK;

/// Milliseconds that the periods of programs are multiples of: theirs are round numbers, and a jiffy is 10 ms where Linux has `HZ` at 100.
/// `what_leaves_each_ten_milliseconds_over_another_round_trip_is_a_timers` holds it.
const PERIOD_TICKS: u64 = 10;
/// Moments to judge by: over so many round trips, one of no such multiple drifts through all remainders. Held by
/// `what_leaves_each_ten_milliseconds_over_another_round_trip_is_a_timers`.
const MIN_MOMENTS: u64 = 100;
/// Part of the packets that must leave at the same remainder, or the next one: in 1,803 captures of the labelled sets it was as much of 55 of the
/// programs that write by a timer, and else of one connection, whose acknowledgements are delayed. Held by
/// `what_leaves_each_ten_milliseconds_over_another_round_trip_is_a_timers`.
const MIN_SHARE: f64 = 0.7;
/// A round trip this near to a multiple of the period tells nothing, in nanoseconds: in a hundred it drifts by a remainder or two. Held by
/// `what_leaves_each_ten_milliseconds_over_another_round_trip_is_a_timers`.
const MIN_OFF_NS: u64 = 300_000;

#[derive(Debug, Default)]
pub(crate) struct TimerTicks {
    newest: Option<u32>,
    moments: u64,
    /// Packets by the remainder of their TSval.
    packets: [u64; PERIOD_TICKS as usize],
}

impl TimerTicks {
    /// New data left when the sender's clock, in milliseconds, stood at `tsval`.
    pub(crate) fn sent(&mut self, tsval: u32) {
        self.packets[(u64::from(tsval) % PERIOD_TICKS) as usize] += 1;
        let before = self.newest.replace(tsval);
        self.moments += u64::from(before.is_none_or(|before| tsval.wrapping_sub(before) > 1));
    }

    /// Whether a timer of the program set it off; `rtt` is the least round trip in nanoseconds.
    pub(crate) fn is_a_programs(&self, rtt: Option<u64>) -> bool {
        if self.moments < MIN_MOMENTS {
            return false;
        }
        let period = PERIOD_TICKS * TICK;
        let off = rtt.map_or(0, |rtt| (rtt % period).min(period - rtt % period));
        let all: u64 = self.packets.iter().sum();
        let next = self.packets.iter().cycle().skip(1);
        let most = self.packets.iter().zip(next).map(|(here, next)| here + next).max().unwrap_or(0);
        off >= MIN_OFF_NS && most as f64 >= MIN_SHARE * all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of five packets, the fifth set off by an acknowledgement, so many microseconds apart over a round trip of so many.
    fn judge(count: u64, apart_us: u64, rtt_us: u64) -> bool {
        let mut ticks = TimerTicks::default();
        for n in 0..count {
            let tsval = 4_000_000_007 + n * apart_us / 1_000;
            (0..4).for_each(|_| ticks.sent(tsval as u32));
            ticks.sent((tsval + 3) as u32);
        }
        ticks.is_a_programs(Some(rtt_us * 1_000))
    }

    #[test]
    fn what_leaves_each_ten_milliseconds_over_another_round_trip_is_a_timers() {
        assert!(judge(300, 10_000, 16_340));
        assert!(judge(300, 40_000, 29_090), "four periods");
        assert!(!judge(300, 17_400, 17_400), "each round trip");
        assert!(!judge(300, 40_120, 40_120), "each of nearly four periods");
        assert!(!judge(300, 10_000, 20_100), "a round trip of two periods");
        assert!(!judge(40, 10_000, 16_340), "too few");
    }
}
