//! One timeline out of publishers' clocks, which wrap, jump, step back and restart.

use crate::Track;

/// Puts a publisher's 32-bit timestamps on a timeline that never goes back: within a track each is later than the last.
///
/// A publisher's clock that is set takes both tracks along, though not in the same instant: what is still on the old clock is
/// recognised by where it falls. So the tracks stay as far apart as the publisher has them.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// The clock in force, and the one before it.
    clocks: [Option<Clock>; 2],
    video: Option<Last>,
    audio: Option<Last>,
    /// The next timestamp begins a new clock, whatever it is.
    restarted: bool,
}

/// How a publisher's clock lies on the timeline: at `raw` the time is `ms`.
#[derive(Debug, Clone, Copy)]
struct Clock {
    raw: u32,
    ms: i64,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    ms: i64,
    /// What lay between the last two.
    step_ms: i64,
}

/// A timestamp's place on the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Milliseconds since the timeline began.
    pub ms: u64,
    /// A new clock begins here.
    pub discontinuity: bool,
}

/// Where the timeline begins, in milliseconds: what comes second may be a little earlier than what comes first.
const BEGIN_MS: i64 = 1_000;
/// A step ahead that is longer is a jump of the clock. A publisher that was cut off from the network for a while is none.
const AHEAD_MAX_MS: i64 = 10_000;
/// A step back that is longer is a jump of the clock. Encoders deliver tracks a little out of order.
const BACK_MAX_MS: i64 = 1_000;
/// What goes between two clocks, where the track does not tell.
const STEP_MS: i64 = 20;
/// Most that goes between two clocks.
const STEP_MAX_MS: i64 = 200;

impl Timeline {
    /// The next timestamp is another publisher's: time goes on from here, and says so.
    pub const fn restart(&mut self) {
        self.restarted = true;
    }

    /// Puts `raw`, of a unit of `track`, on the timeline.
    pub fn place(&mut self, track: Track, raw: u32) -> Placed {
        let latest = self.video.iter().chain(&self.audio).map(|last| last.ms).max();
        let last = *self.last(track);
        // A track's first unit is held against the other track.
        let near = last.map(|last| last.ms).or(latest);
        let fits = |clock: &Clock| {
            let ms = clock.ms + i64::from(raw.wrapping_sub(clock.raw) as i32);
            let step = ms - near.unwrap_or(ms);
            (-BACK_MAX_MS..=AHEAD_MAX_MS).contains(&step).then_some(ms)
        };
        let known = if self.restarted { None } else { self.clocks.iter().flatten().find_map(fits) };
        let discontinuity = known.is_none() && latest.is_some();
        let ms = known.unwrap_or_else(|| {
            let step_ms = last.map_or(STEP_MS, |last| last.step_ms.clamp(1, STEP_MAX_MS));
            latest.map_or(BEGIN_MS, |latest| latest + step_ms)
        });
        // Not the same: decoders want each unit later than the last.
        let ms = last.map_or(ms, |last| ms.max(last.ms + 1)).max(0);
        if known.is_none() {
            let before = if self.restarted { None } else { self.clocks[0] };
            self.clocks = [Some(Clock { raw, ms }), before];
            self.restarted = false;
        } else if let Some(clock) = &mut self.clocks[0]
            && fits(clock).is_some()
        {
            // Carried along, so that the 32 bits may wrap.
            let ahead = i64::from(raw.wrapping_sub(clock.raw) as i32);
            *clock = Clock { raw, ms: clock.ms + ahead };
        }
        let step_ms = last.map_or(STEP_MS, |last| ms - last.ms);
        *self.last(track) = Some(Last { ms, step_ms });
        Placed { ms: ms as u64, discontinuity }
    }

    const fn last(&mut self, track: Track) -> &mut Option<Last> {
        match track {
            Track::Video => &mut self.video,
            Track::Audio => &mut self.audio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Track::{Audio, Video};
    use proptest::prelude::*;

    fn place_all(timeline: &mut Timeline, raws: &[(Track, u32)]) -> (Vec<u64>, usize) {
        let placed: Vec<Placed> = raws.iter().map(|&(track, raw)| timeline.place(track, raw)).collect();
        (placed.iter().map(|p| p.ms).collect(), placed.iter().filter(|p| p.discontinuity).count())
    }

    #[test]
    fn tracks_stay_as_far_apart_as_they_came() {
        let raws = [(Video, 5000), (Audio, 4990), (Video, 5040), (Audio, 5011), (Video, 8000)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![1000, 990, 1040, 1011, 4000], 0));
    }

    #[test]
    fn thirty_two_bits_wrap() {
        let raws = [(Video, u32::MAX - 20), (Audio, u32::MAX - 9), (Video, 19), (Audio, 14)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![1000, 1011, 1040, 1035], 0));
        // Months: the clock is carried along.
        let mut timeline = Timeline::default();
        let mut raw = 0u32;
        let mut ms = timeline.place(Video, raw).ms;
        for _ in 0..2_000_000 {
            raw = raw.wrapping_add(9_000);
            let placed = timeline.place(Video, raw);
            assert_eq!((placed.ms, placed.discontinuity), (ms + 9_000, false));
            ms = placed.ms;
        }
    }

    #[test]
    fn a_clock_that_is_set_is_told_once_and_stragglers_keep_their_place() {
        let raws = [
            (Video, 0),
            (Audio, 0),
            (Video, 40),
            (Video, 900_000),
            (Audio, 21),
            (Video, 900_040),
            (Audio, 42),
            (Audio, 900_010),
        ];
        assert_eq!(
            place_all(&mut Timeline::default(), &raws),
            (vec![1000, 1000, 1040, 1080, 1021, 1120, 1042, 1090], 1)
        );
        // And back to nothing.
        let raws = [(Video, 900_000), (Video, 900_040), (Video, 0), (Video, 40)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![1000, 1040, 1080, 1120], 1));
    }

    #[test]
    fn small_steps_back_are_no_jump() {
        let raws = [(Video, 1000), (Video, 900), (Video, 1000), (Video, 1040)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![1000, 1001, 1002, 1040], 0));
    }

    #[test]
    fn another_publisher_goes_on_where_the_last_one_ended() {
        let mut timeline = Timeline::default();
        place_all(&mut timeline, &[(Video, 0), (Video, 40)]);
        timeline.restart();
        assert_eq!(place_all(&mut timeline, &[(Video, 0), (Audio, 5), (Video, 40)]), (vec![1080, 1085, 1120], 1));
    }

    proptest! {
        #[test]
        fn no_track_goes_back(raws in prop::collection::vec((any::<bool>(), any::<u32>(), 0u8..20), 1..60)) {
            let mut timeline = Timeline::default();
            let mut last = [None::<u64>; 2];
            let mut small = 0u32;
            for (video, raw, how) in raws {
                small = small.wrapping_add(u32::from(how));
                if how == 0 {
                    timeline.restart();
                }
                let track = if video { Video } else { Audio };
                let placed = timeline.place(track, if how < 3 { raw } else { small });
                let last = &mut last[usize::from(video)];
                prop_assert!(last.is_none_or(|last| placed.ms > last));
                prop_assert!(last.is_none_or(|last| placed.ms <= last + 60 * 12_000));
                *last = Some(placed.ms);
            }
        }
    }
}
