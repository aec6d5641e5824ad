//! One timeline out of publishers' clocks, which wrap, jump, step back and restart.

use crate::Track;

/// Puts a publisher's 32-bit timestamps on a timeline that never goes back: within a track each is later than the last.
///
/// A publisher's clock that is set takes both tracks along, though not in the same instant: what is still on the old clock is
/// recognised by where it falls. So the tracks stay as far apart as the publisher has them.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Video's and sound's latest units.
    tracks: [Option<Last>; 2],
    /// The next timestamp begins a new clock, whatever it is.
    restarted: bool,
}

/// How a publisher's clock lies on the timeline: at `raw` the time is `ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    raw: u32,
    ms: i64,
}

impl Clock {
    const fn at(self, raw: u32) -> i64 {
        self.ms + raw.wrapping_sub(self.raw) as i32 as i64
    }
}

#[derive(Debug, Clone, Copy)]
struct Last {
    ms: i64,
    /// Its time by its clock: that is earlier where the track would have gone back.
    clock_ms: i64,
    /// What lay between the last two.
    step_ms: i64,
    /// When it came.
    came_ms: u64,
    /// Its clock, of its publisher.
    clock: Option<Clock>,
    /// By how much its clock went back, while it is not yet where it was before.
    back_ms: Option<i64>,
}

/// A timestamp's place on the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Milliseconds since the timeline began.
    pub ms: u64,
    /// A new clock begins here.
    pub discontinuity: bool,
}

/// Where the timeline begins, in milliseconds: so far may what comes second be behind what comes first, as behind any other unit.
const BEGIN_MS: i64 = AHEAD_MAX_MS;
/// A step ahead that is longer by this than the time that passed is a jump of the clock. A publisher that was cut off from the network for
/// a while is none. Tracks are not further apart either: the test `a_track_that_comes_late_is_on_the_same_clock`.
const AHEAD_MAX_MS: i64 = 10_000;
/// A step back that is longer is a jump of the clock. Encoders deliver tracks a little out of order.
const BACK_MAX_MS: i64 = 1_000;
/// A shorter step back than this is no jump even if both tracks take it, and steps are the same that differ by no more: the test
/// `a_step_back_of_both_tracks_is_a_jump`.
const BACK_SAME_MS: i64 = 100;
/// What goes between two clocks, where the track does not tell.
const STEP_MS: i64 = 20;
/// Most that goes between two clocks.
const STEP_MAX_MS: i64 = 200;

impl Timeline {
    /// Most that tracks on one clock are apart, in milliseconds.
    pub const APART_MAX_MS: u64 = AHEAD_MAX_MS as u64;

    /// The next timestamp is another publisher's: time goes on from here, and says so.
    pub const fn restart(&mut self) {
        self.restarted = true;
    }

    /// Puts `raw`, of a unit of `track` that came at `now_ms`, on the timeline.
    pub fn place(&mut self, track: Track, raw: u32, now_ms: u64) -> Placed {
        if std::mem::take(&mut self.restarted) {
            self.tracks.iter_mut().flatten().for_each(|last| (last.clock, last.back_ms) = (None, None));
        }
        let at = usize::from(track == Track::Audio);
        let (last, other) = (self.tracks[at], self.tracks[1 - at]);
        let latest = self.tracks.iter().flatten().map(|last| last.ms).max();
        let step_ms = last.map_or(STEP_MS, |last| last.step_ms.clamp(1, STEP_MAX_MS));
        let own = last.and_then(|last| last.clock);
        let back_ms = last.zip(own).and_then(|(last, own)| Self::back_ms(&last, own.at(raw), step_ms));
        let is_set = other.and_then(|other| other.back_ms).zip(back_ms).is_some_and(|(other, own)| {
            own > BACK_SAME_MS && other > BACK_SAME_MS && own.abs_diff(other) <= BACK_SAME_MS as u64
        });
        let clocks = [own, other.and_then(|other| other.clock)].into_iter().flatten();
        let known = clocks.filter(|_| !is_set).find(|&clock| Self::fits(clock.at(raw), clock, last, other, now_ms));
        let is_new = known.is_none();
        let begun_ms = latest.map_or(BEGIN_MS, |latest| latest + step_ms);
        let clock_ms = known.map_or(begun_ms, |clock| clock.at(raw));
        // Not the same: decoders want each unit later than the last.
        let ms = last.map_or(clock_ms, |last| clock_ms.max(last.ms + 1));
        // Carried along, so that the 32 bits may wrap.
        let clock = Clock { raw, ms: clock_ms };
        if let Some(other) = &mut self.tracks[1 - at] {
            if is_set {
                (other.clock, other.clock_ms, other.back_ms) = (Some(clock), other.ms, None);
            } else if other.clock.is_some_and(|other| other.at(raw) == clock_ms) {
                other.clock = Some(clock);
            }
        }
        let step_ms = last.map_or(STEP_MS, |last| ms - last.ms);
        let back_ms = back_ms.filter(|_| !is_new && ms > clock_ms);
        self.tracks[at] = Some(Last { ms, clock_ms, step_ms, came_ms: now_ms, clock: Some(clock), back_ms });
        Placed { ms: ms as u64, discontinuity: is_new && latest.is_some() }
    }

    /// By how much a track's clock has gone back if its next time is `ms`; `None` once the track is where it was before.
    fn back_ms(last: &Last, ms: i64, step_ms: i64) -> Option<i64> {
        (ms <= last.ms).then(|| last.back_ms.unwrap_or(last.clock_ms + step_ms - ms))
    }

    /// Whether `ms`, by `clock`, can be a track's next time behind `last`, beside `other`.
    fn fits(ms: i64, clock: Clock, last: Option<Last>, other: Option<Last>, now_ms: u64) -> bool {
        let is_beside = |other: Last| {
            // On the same clock alone: another one has been set.
            let is_same = other.clock.is_some_and(|other| other.at(clock.raw) == clock.ms);
            is_same && (ms - other.ms).abs() <= AHEAD_MAX_MS
        };
        let is_beside = other.is_some_and(is_beside);
        let Some(last) = last else { return is_beside && ms >= 0 };
        let passed_ms = now_ms.saturating_sub(last.came_ms).min(i32::MAX as u64) as i64;
        ms >= last.ms - BACK_MAX_MS && (is_beside || ms <= last.ms + AHEAD_MAX_MS + passed_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Track::{Audio, Video};
    use proptest::prelude::*;

    fn place_all(timeline: &mut Timeline, raws: &[(Track, u32)]) -> (Vec<u64>, usize) {
        let placed: Vec<Placed> = raws.iter().map(|&(track, raw)| timeline.place(track, raw, 0)).collect();
        (placed.iter().map(|p| p.ms).collect(), placed.iter().filter(|p| p.discontinuity).count())
    }

    #[test]
    fn tracks_stay_as_far_apart_as_they_came() {
        let raws = [(Video, 5000), (Audio, 4990), (Video, 5040), (Audio, 5011), (Video, 8000)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![10_000, 9_990, 10_040, 10_011, 13_000], 0));
    }

    #[test]
    fn thirty_two_bits_wrap() {
        let raws = [(Video, u32::MAX - 20), (Audio, u32::MAX - 9), (Video, 19), (Audio, 14)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![10_000, 10_011, 10_040, 10_035], 0));
        // Months: the clock is carried along.
        let mut timeline = Timeline::default();
        let mut raw = 0u32;
        let mut ms = timeline.place(Video, raw, 0).ms;
        for _ in 0..2_000_000 {
            raw = raw.wrapping_add(9_000);
            let placed = timeline.place(Video, raw, 0);
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
            (vec![10_000, 10_000, 10_040, 10_080, 10_021, 10_120, 10_042, 10_090], 1)
        );
        // And back to nothing.
        let raws = [(Video, 900_000), (Video, 900_040), (Video, 0), (Video, 40)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![10_000, 10_040, 10_080, 10_120], 1));
    }

    #[test]
    fn small_steps_back_are_no_jump() {
        let raws = [(Video, 1000), (Video, 900), (Video, 1000), (Video, 1040)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![10_000, 10_001, 10_002, 10_040], 0));
    }

    #[test]
    fn a_track_that_comes_late_is_on_the_same_clock() {
        let mut raws: Vec<_> = (0..38).map(|at| (Video, at * 40)).collect();
        raws.extend([(Audio, 0), (Audio, 21), (Video, 1_520), (Audio, 43)]);
        let (placed, jumps) = place_all(&mut Timeline::default(), &raws);
        assert_eq!((&placed[38..], jumps), (&[10_000, 10_021, 11_520, 10_043][..], 0));
        // As far as tracks may be apart, in the beginning too.
        let raws = [(Video, 20_000), (Audio, 10_000), (Video, 20_040), (Audio, 10_021)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![10_000, 0, 10_040, 21], 0));
        // Further: a clock of its own, on which no picture is placed.
        let raws = [(Video, 20_000), (Audio, 9_000), (Video, 20_040), (Audio, 9_021), (Video, 20_080)];
        assert_eq!(place_all(&mut Timeline::default(), &raws), (vec![10_000, 10_020, 10_040, 10_041, 10_080], 1));
    }

    #[test]
    fn a_long_step_ahead_that_took_as_long_is_no_jump() {
        let mut timeline = Timeline::default();
        let placed: Vec<_> = (0..3).map(|at| timeline.place(Video, at * 12_000, u64::from(at) * 11_900)).collect();
        assert_eq!(placed.iter().map(|placed| placed.ms).collect::<Vec<_>>(), [10_000, 22_000, 34_000]);
        assert!(placed.iter().all(|placed| !placed.discontinuity));
        assert!(timeline.place(Video, 58_000, 24_000).discontinuity, "nothing took that long");
        // The other track has come as far.
        let mut raws = vec![(Video, 0)];
        raws.extend((0..24).map(|at| (Audio, at * 500)));
        raws.extend([(Video, 12_000), (Audio, 12_000)]);
        let (placed, jumps) = place_all(&mut Timeline::default(), &raws);
        assert_eq!((placed[25], placed[26], jumps), (22_000, 22_000, 0));
    }

    #[test]
    fn a_step_back_of_both_tracks_is_a_jump() {
        let mut timeline = Timeline::default();
        let raws: Vec<_> = (0..50).flat_map(|at| [(Video, at * 40), (Audio, at * 40)]).collect();
        assert_eq!(place_all(&mut timeline, &raws).1, 0);
        // 0.6 s back from 2,000: the first of them is not known to be one.
        let raws: Vec<_> = (0..25).flat_map(|at| [(Video, 1_400 + at * 40), (Audio, 1_400 + at * 40)]).collect();
        let (placed, jumps) = place_all(&mut timeline, &raws);
        assert_eq!((jumps, placed[0], placed[1]), (1, 11_961, 12_001));
        let wanted = (1..25u64).flat_map(|at| [12_001 + at * 40; 2]).collect::<Vec<_>>();
        assert_eq!(placed[2..], wanted, "and goes on at its own pace");
        // One track alone may be out of order.
        let raws = [(Video, 1_800), (Audio, 2_400), (Video, 2_400), (Audio, 2_440)];
        assert_eq!(place_all(&mut timeline, &raws), (vec![12_962, 13_001, 13_001, 13_041], 0));
    }

    #[test]
    fn another_publisher_goes_on_where_the_last_one_ended() {
        let mut timeline = Timeline::default();
        place_all(&mut timeline, &[(Video, 0), (Video, 40)]);
        timeline.restart();
        assert_eq!(place_all(&mut timeline, &[(Video, 0), (Audio, 5), (Video, 40)]), (vec![10_080, 10_085, 10_120], 1));
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
                let placed = timeline.place(track, if how < 3 { raw } else { small }, 0);
                let last = &mut last[usize::from(video)];
                prop_assert!(last.is_none_or(|last| placed.ms > last));
                prop_assert!(last.is_none_or(|last| placed.ms <= last + 60 * 12_000));
                *last = Some(placed.ms);
            }
        }
    }
}
