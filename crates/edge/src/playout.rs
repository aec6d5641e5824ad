//! What a viewer's player has in hand, inferred from when it asked for segments and when it had them.
//!
//! After some time of playing, a player has played that much media; if it had fetched less, it stalled meanwhile.
//! One that leaves a segment alone which it could have had is paused or has enough, and nothing is inferred from that.

use serde::Serialize;

/// A segment that a viewer has fetched whole. Times are milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// When it was asked for.
    pub asked_ms: u64,
    /// When its last byte was handed to the kernel.
    pub done_ms: u64,
    /// When it could be asked for.
    pub published_ms: u64,
    /// How long it plays.
    pub duration_ms: u64,
}

/// The state of a player. Segments are added in the order in which they were complete.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Playout {
    /// When it would have begun had it never stood still.
    #[serde(skip)]
    began_ms: Option<u64>,
    /// What it has fetched since.
    #[serde(skip)]
    media_ms: u64,
    #[serde(skip)]
    last_done_ms: u64,
    /// Times it stood still.
    pub stalls: u32,
    /// For how long in all, milliseconds.
    pub stalled_ms: u64,
}

/// A shorter stall is not counted: three pictures.
const TOLERANCE_MS: u64 = 100;
/// A player asks for a new segment at most this much later than it could, in addition to the segment's duration between two polls.
const SLACK_MS: u64 = 1_000;

impl Playout {
    /// A segment was complete; for how long the player had stood still before.
    pub fn fetched(&mut self, segment: &Fetched) -> u64 {
        let could_ask_ms = segment.published_ms.max(self.last_done_ms);
        let left_alone_ms = segment.asked_ms.saturating_sub(could_ask_ms);
        self.last_done_ms = segment.done_ms;
        let is_fresh = left_alone_ms <= segment.duration_ms + SLACK_MS;
        let Some(began_ms) = self.began_ms.filter(|_| is_fresh) else {
            (self.began_ms, self.media_ms) = (Some(segment.done_ms), segment.duration_ms);
            return 0;
        };
        let played_ms = segment.done_ms.saturating_sub(began_ms);
        let short_ms = played_ms.saturating_sub(self.media_ms);
        self.media_ms += segment.duration_ms;
        if short_ms <= TOLERANCE_MS {
            return 0;
        }
        self.began_ms = Some(began_ms + short_ms);
        self.stalls += 1;
        self.stalled_ms += short_ms;
        short_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of two seconds that are published every two seconds from 0 on, asked for and done at these times.
    fn play(times: &[(u64, u64)]) -> (u32, u64) {
        let mut playout = Playout::default();
        for (at, &(asked_ms, done_ms)) in times.iter().enumerate() {
            let published_ms = at as u64 * 2_000;
            playout.fetched(&Fetched { asked_ms, done_ms, published_ms, duration_ms: 2_000 });
        }
        (playout.stalls, playout.stalled_ms)
    }

    #[test]
    fn whoever_fetches_in_time_never_stands_still() {
        assert_eq!(play(&[(6_000, 6_100), (6_100, 6_200), (6_200, 6_300), (6_400, 6_500), (8_400, 8_500)]), (0, 0));
        let late: Vec<_> = (0..60).map(|at| (at * 2_000 + 900, at * 2_000 + 1_000)).collect();
        assert_eq!(play(&late), (0, 0), "each is there when the one before ends");
    }

    #[test]
    fn what_comes_too_late_is_a_stall_of_that_time() {
        assert_eq!(play(&[(0, 100), (2_000, 5_100), (5_200, 5_300), (6_100, 6_200)]), (1, 3_000));
        // Each takes half as long again as it plays.
        let slow: Vec<_> = (0..10).map(|at| (at * 3_000, (at + 1) * 3_000)).collect();
        assert_eq!(play(&slow), (9, 9_000));
        // The publisher was late: the player waited for it, and so it stood still.
        let mut playout = Playout::default();
        for (published_ms, done_ms) in [(0, 100), (2_000, 2_100), (9_000, 9_300)] {
            let asked_ms = published_ms + 50;
            playout.fetched(&Fetched { asked_ms, done_ms, published_ms, duration_ms: 2_000 });
        }
        assert_eq!((playout.stalls, playout.stalled_ms), (1, 5_200));
    }

    #[test]
    fn a_pause_is_none() {
        assert_eq!(play(&[(0, 100), (2_000, 2_100), (60_000, 60_100), (60_100, 60_200), (62_000, 62_100)]), (0, 0));
    }
}
