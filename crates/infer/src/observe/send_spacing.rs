//! Whether data leaves in small pieces at even intervals, as a pacing timer sends it.
//!
//! Linux sends what a millisecond takes at the pacing rate, two segments at least, and waits for as long as that takes
//! (`tcp_tso_autosize`, `sk_pacing_shift`; `tcp_update_skb_after_send`). Programs write larger pieces or at other times; a congestion window
//! moves on by acknowledgements.

/// A gap below one part in this many of the mean time from packet to packet is none: the piece goes on.
const PART_OF_GAP: u64 = 4;
/// Weight of a piece in the mean rate, one part of this many.
const SMOOTHING: f64 = 16.0;
/// A piece's rate is the mean within this part: ticks of the timer, and BBR's cycle is outside of it (1.25 and 0.75 of its rate).
const EVEN_PART: f64 = 0.15;
/// After this many pieces in a row at another rate that is the rate.
const MAX_UNEVEN: u32 = 16;
/// Pieces before anything is said, and the part of them that must be even. `two_segments_at_a_time_at_even_intervals_are_paced` holds both.
const MIN_PIECES: u64 = 64;
const EVEN_TENTHS: u64 = 9;
/// Two segments, and half of one for an odd one.
const MAX_SEGMENTS: f64 = 2.5;
/// Seconds that a piece takes at the pacing rate: `sk_pacing_shift` is 10, for 1/1024 s; segments are whole.
const MAX_SECONDS: f64 = 1.3e-3;

/// Pieces whose distance is a round trip within this part are a window's. `a_segment_each_round_trip_is_a_window_of_one` holds it.
const ROUND_TRIP_PART: f64 = 0.1;

/// The pieces that one direction was sent in.
#[derive(Debug, Default)]
pub(crate) struct SendSpacing {
    /// When the first packet was sent, the latest, and the first of the piece in hand.
    first: u64,
    last: u64,
    began: u64,
    packets: u64,
    bytes: u64,
    /// Bytes per second, and pieces in a row that came at another rate.
    rate: f64,
    uneven: u32,
    pieces: u64,
    even: u64,
    total: u64,
}

/// Data that is paced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacedPieces {
    /// Bytes per second.
    pub(crate) rate: f64,
    /// Mean bytes of a piece, and seconds from one to the next.
    pub(crate) bytes: f64,
    pub(crate) interval_s: f64,
    pub(crate) even: u64,
    pub(crate) pieces: u64,
}

impl SendSpacing {
    /// New data of `len` bytes is sent.
    pub(crate) fn sent(&mut self, now: u64, len: u64) {
        if self.packets == 0 {
            self.first = now;
        }
        let (gap, all) = (now.saturating_sub(self.last), now.saturating_sub(self.first));
        self.last = now;
        if self.bytes > 0 && gap > 0 && gap.saturating_mul(PART_OF_GAP * self.packets) >= all {
            self.piece(now);
        }
        if self.bytes == 0 {
            self.began = now;
        }
        self.packets += 1;
        self.bytes += len;
    }

    /// A piece is over, and the next one begins.
    fn piece(&mut self, now: u64) {
        let bytes = std::mem::take(&mut self.bytes);
        let rate = bytes as f64 / (now - self.began).max(1) as f64 * 1e9;
        if self.pieces == 0 || self.uneven >= MAX_UNEVEN {
            (self.rate, self.uneven) = (rate, 0);
        }
        self.pieces += 1;
        self.total += bytes;
        if self.is_even(rate) {
            self.even += 1;
            self.uneven = 0;
            self.rate += (rate - self.rate) / SMOOTHING;
        } else {
            self.uneven += 1;
        }
    }

    fn is_even(&self, rate: f64) -> bool {
        (rate / self.rate - 1.0).abs() <= EVEN_PART
    }

    /// What a pacing timer sent, if one did; `mss` is a segment's payload, `round_trip` the least in nanoseconds.
    pub(crate) fn paced(&self, mss: u64, round_trip: u64) -> Option<PacedPieces> {
        if self.pieces < MIN_PIECES || self.even * 10 < self.pieces * EVEN_TENTHS {
            return None;
        }
        // Even pieces with pauses between are a window's, as they come out of a link.
        let all = self.began.saturating_sub(self.first).max(1);
        if !self.is_even(self.total as f64 / all as f64 * 1e9) {
            return None;
        }
        let bytes = self.total as f64 / self.pieces as f64;
        let most = (MAX_SEGMENTS * mss as f64).max(MAX_SECONDS * self.rate);
        let interval_s = bytes / self.rate;
        let found = PacedPieces { rate: self.rate, bytes, interval_s, even: self.even, pieces: self.pieces };
        // A round trip apart they are a window's, each set off by the acknowledgement of the one before.
        let is_windows = (interval_s * 1e9 / round_trip.max(1) as f64 - 1.0).abs() <= ROUND_TRIP_PART;
        (bytes <= most && !is_windows).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    /// Pieces of this many segments at these intervals, in nanoseconds, one after the other.
    fn spaced(segments: u64, intervals: &[u64]) -> Option<f64> {
        spaced_over(100_000_000, segments, intervals)
    }

    /// The same over this round trip.
    fn spaced_over(round_trip: u64, segments: u64, intervals: &[u64]) -> Option<f64> {
        let (mut spacing, mut now) = (SendSpacing::default(), 0);
        for interval in intervals.iter().cycle().take(400) {
            for n in 0..segments {
                spacing.sent(now + n * 20_000, MSS);
            }
            now += interval;
        }
        spacing.paced(MSS, round_trip).map(|paced| paced.rate * 8.0)
    }

    #[test]
    fn a_segment_each_round_trip_is_a_window_of_one() {
        let each = |round_trip| spaced_over(round_trip, 1, &[11_600_000]).is_some();
        assert_eq!([1_000_000, 11_000_000, 11_600_000, 30_000_000].map(each), [true, false, false, true]);
    }

    #[test]
    fn two_segments_at_a_time_at_even_intervals_are_paced() {
        let rate = spaced(2, &[2_896_000]).expect("paced");
        assert!((rate / 8e6 - 1.0).abs() < 0.01, "{rate}");
        assert!(spaced(28, &[40_000_000]).is_none(), "a window of 28 segments, once each round trip");
        let mut link = vec![116_000; 27];
        link.push(37_000_000);
        assert!(spaced(1, &link).is_none(), "and as it comes out of a link");
        assert!(spaced(2, &[1_000_000, 4_000_000]).is_none(), "acknowledgements set it off");
        // BBR: one part in eight at 1.25 of the rate, one at 0.75, the rest at it; each for a round trip.
        let mut cycle = vec![2_317_000; 17];
        cycle.extend([3_861_000; 10]);
        cycle.extend([2_896_000; 84]);
        assert!(spaced(2, &cycle).is_none());
    }
}
