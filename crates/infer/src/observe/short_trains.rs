//! How fast the first segments come, from trains of four.
//!
//! A first flight of ten leaves at once, even where the rest is paced (`tcp_update_skb_after_send`): it shows the path's rate to a connection
//! whose windows are too small for long trains, or that is over before it held enough of them.

/// Segments in a train: within a first flight of ten (RFC 6928) there are several.
const SHORT_SEGMENTS: u64 = 4;
/// Trains are looked for among this many segments; behind them long ones tell.
const MAX_SEGMENTS_OF_SHORT_TRAINS: u64 = 256;
/// Trains that must come as fast: one may be two acknowledgements that met. Of a first flight of ten that comes in pairs there are three
/// (`a_first_flight_shows_the_rate_alone_in_pairs_and_paced_behind_it`).
const TRAINS_COMPARED: usize = 3;
/// What follows after less than this part of the gap before comes with it: a shaper lets go of pairs, a microsecond apart in the same test
/// (`a_first_flight_shows_the_rate_alone_in_pairs_and_paced_behind_it`).
const PARTS_OF_GAP: u64 = 8;
/// Bunches back that a train begins within, which bounds memory: more are of less than a segment.
const MAX_BUNCHES: usize = 8;

/// The fastest trains among the first segments.
#[derive(Debug, Default)]
pub(crate) struct ShortTrains {
    /// When each of the latest bunches was over, and what was delivered by then; the first `known` of them, the latest first.
    bunches: [(u64, u64); MAX_BUNCHES],
    known: usize,
    /// From the end of the bunch before to the beginning of the latest.
    gap: u64,
    /// Bytes per second, ascending.
    fastest: [f64; TRAINS_COMPARED],
    /// More than the first segments came.
    over: bool,
}

impl ShortTrains {
    /// Notes that `delivered` bytes in all have been delivered at `now` (nanoseconds).
    pub(crate) fn delivered(&mut self, now: u64, delivered: u64, mss: u64) {
        if self.over || delivered > MAX_SEGMENTS_OF_SHORT_TRAINS * mss {
            self.over = true;
            return;
        }
        let last = self.bunches[..self.known].first().map(|last| last.0);
        let gap = last.map_or(u64::MAX, |last| now.saturating_sub(last));
        if gap.saturating_mul(PARTS_OF_GAP) >= self.gap {
            self.gap = if last.is_some() { gap } else { 0 };
            self.bunches.copy_within(..MAX_BUNCHES - 1, 1);
            self.known = MAX_BUNCHES.min(self.known + 1);
        }
        self.bunches[0] = (now, delivered);
        let train = |start: &&(u64, u64)| start.1 + SHORT_SEGMENTS * mss <= delivered && start.0 < now;
        let Some((at, before)) = self.bunches[1..self.known].iter().find(train) else { return };
        let rate = (delivered - before) as f64 / (now - at) as f64 * 1e9;
        let slower = self.fastest.partition_point(|&other| other < rate);
        if slower > 0 {
            self.fastest.copy_within(1..slower, 0);
            self.fastest[slower - 1] = rate;
        }
    }

    /// The rate of the fastest trains where no more than the first segments came: long trains are few then.
    pub(crate) fn of_all(&self) -> Option<f64> {
        self.rate().filter(|_| !self.over)
    }

    /// The rate of the fastest trains, in bytes per second; `None` where too few came.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.fastest[0] > 0.0).then_some(self.fastest[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    /// Segments that come at these instants, in microseconds; the rate in Mb/s.
    fn rate(instants: &[u64]) -> Option<f64> {
        let mut trains = ShortTrains::default();
        for (n, at) in instants.iter().enumerate() {
            trains.delivered(at * 1_000, (n as u64 + 1) * MSS, MSS);
        }
        trains.rate().map(|rate| rate * 8.0 / 1e6)
    }

    #[test]
    fn a_first_flight_shows_the_rate_alone_in_pairs_and_paced_behind_it() {
        let near = |found: Option<f64>| (found.expect("trains") / 33.77 - 1.0).abs() < 0.01;
        let even: Vec<u64> = (0..10).map(|n| 1_000 + n * 343).collect();
        assert!(near(rate(&even)), "{:?}", rate(&even));
        let pairs: Vec<u64> = (0..10).map(|n| 1_000 + n / 2 * 686 + n % 2).collect();
        assert!(near(rate(&pairs)), "{:?}", rate(&pairs));
        let paced = (0..40).map(|n| 96_000 + n * 1_500);
        let all: Vec<u64> = pairs.iter().copied().chain(paced).collect();
        assert!(near(rate(&all)), "{:?}", rate(&all));
    }

    #[test]
    fn few_segments_and_what_comes_at_one_instant_have_no_rate() {
        assert_eq!(rate(&[0, 343, 686, 1_029]), None);
        assert_eq!(rate(&[5; 40]), None);
    }
}
