//! Units → segments.

use crate::ts::Muxer;
use crate::{Config, Track, Unit};

/// Cuts a stream in segments: at keyframes, as soon as the target duration is there. It outlives a publisher, so that numbers go on.
#[derive(Debug)]
pub struct Segmenter {
    settings: Settings,
    muxer: Muxer,
    has_video: bool,
    has_audio: bool,
    /// The segment that is being written.
    open: Option<Open>,
    number: u64,
    /// The next segment does not go on where the last one ended.
    discontinuity: bool,
    target_duration_s: Option<u32>,
    /// A hint of how large the next segment becomes, in bytes.
    size: usize,
}

#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    start_ms: u64,
    independent: bool,
    discontinuity: bool,
    /// Something that breaks the stream came in the middle: cut as soon as may be.
    broken: bool,
    /// The latest unit of each track: video, audio.
    latest: [Option<Latest>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    dts_ms: u64,
    step_ms: u64,
}

/// How long and large segments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// A segment ends at the first keyframe that is so late, in milliseconds.
    pub target_ms: u64,
    /// The first segment ends here, keyframe or not, in milliseconds. It says what is to be expected: the others are bounded by the
    /// target duration that follows from it.
    pub longest_ms: u64,
    /// A segment that is so large ends, keyframe or not, in bytes.
    pub bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { target_ms: 2_000, longest_ms: 10_000, bytes_max: 32 << 20 }
    }
}

/// What a playlist says of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its media sequence number: each is one more than the last.
    pub number: u64,
    /// How long it plays, in milliseconds.
    pub duration_ms: u64,
    /// It does not go on where the one before it ended.
    pub discontinuity: bool,
    /// It begins with a keyframe.
    pub independent: bool,
}

/// A segment: MPEG-TS that begins with its tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What a playlist says of it.
    pub info: SegmentInfo,
    /// Its packets.
    pub bytes: Vec<u8>,
}

/// Encoders' timestamps are rounded to milliseconds: a keyframe that is so little early is in time.
const EARLY_MS: u64 = 20;
/// What a last unit lasts at most, in milliseconds.
const STEP_MAX_MS: u64 = 500;
/// What a last unit lasts where nothing tells, in milliseconds.
const STEP_MS: u64 = 40;

impl Segmenter {
    /// Waits for a stream.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            muxer: Muxer::default(),
            has_video: false,
            has_audio: false,
            open: None,
            number: 0,
            discontinuity: false,
            target_duration_s: None,
            size: 0,
        }
    }

    /// The longest that a segment may be, in seconds, once there is one. It never changes (RFC 8216 §6.2.1).
    pub const fn target_duration_s(&self) -> Option<u32> {
        self.target_duration_s
    }

    /// Takes a configuration; the segment so far, if one was being written: decoders begin anew behind it.
    pub fn config(&mut self, config: &Config) -> Option<Segment> {
        let ended = self.end();
        match config.track() {
            Track::Video => self.has_video = true,
            Track::Audio => self.has_audio = true,
        }
        self.muxer.config(config);
        ended
    }

    /// Takes a unit, and returns the segment that ended before it. What comes before the first keyframe is in no segment.
    pub fn unit(&mut self, unit: &Unit) -> Option<Segment> {
        let leads = unit.track == if self.has_video { Track::Video } else { Track::Audio };
        let entry = leads && unit.keyframe;
        let limit_ms = self.limit_ms();
        let first = self.target_duration_s.is_none();
        let ended = match &mut self.open {
            None if entry => {
                self.begin(unit, true);
                None
            }
            None => return None,
            Some(open) => {
                open.broken |= unit.discontinuity;
                let passed_ms = unit.dts_ms.saturating_sub(open.start_ms);
                // One that could not begin with a keyframe ends at the next: who joins there waits for a keyframe no longer than it must.
                let wanted =
                    open.broken || first || !open.independent || passed_ms + EARLY_MS >= self.settings.target_ms;
                let last = open.latest[place(unit.track)];
                let step_ms = last.map_or(STEP_MS, |last| unit.dts_ms.saturating_sub(last.dts_ms)).min(STEP_MAX_MS);
                let late = passed_ms + step_ms > limit_ms || open.bytes.len() >= self.settings.bytes_max;
                if passed_ms > 0 && (entry && wanted || late) {
                    let broken = open.broken;
                    let ended = self.cut(Some(unit.dts_ms), limit_ms);
                    self.discontinuity |= broken;
                    self.begin(unit, entry);
                    ended
                } else {
                    None
                }
            }
        };
        if let Some(open) = &mut self.open {
            let last = &mut open.latest[place(unit.track)];
            let step_ms = last.map_or(STEP_MS, |last| unit.dts_ms.saturating_sub(last.dts_ms));
            *last = Some(Latest { dts_ms: unit.dts_ms, step_ms });
            self.muxer.write(unit, &mut open.bytes);
        }
        ended
    }

    /// The publisher is gone: the segment so far. What comes next does not go on from it.
    pub fn end(&mut self) -> Option<Segment> {
        let limit_ms = self.limit_ms();
        let ended = self.cut(None, limit_ms);
        self.discontinuity = self.number > 0;
        ended
    }

    /// As [`Segmenter::end`], and the tracks are gone too: another publisher may have others.
    pub fn restart(&mut self) -> Option<Segment> {
        let ended = self.end();
        self.muxer.clear();
        (self.has_video, self.has_audio) = (false, false);
        ended
    }

    /// Longer than this no segment gets: rounded, that is the target duration.
    fn limit_ms(&self) -> u64 {
        self.target_duration_s.map_or(self.settings.longest_ms.max(1000), |target_s| u64::from(target_s) * 1000 + 499)
    }

    fn begin(&mut self, unit: &Unit, independent: bool) {
        let mut bytes = Vec::with_capacity(self.size);
        self.muxer.begin(&mut bytes);
        let discontinuity = std::mem::take(&mut self.discontinuity);
        let start_ms = unit.dts_ms;
        self.open = Some(Open { bytes, start_ms, independent, discontinuity, broken: false, latest: [None; 2] });
    }

    /// Ends the open segment before `next_ms`, or with its last unit.
    fn cut(&mut self, next_ms: Option<u64>, limit_ms: u64) -> Option<Segment> {
        let mut open = self.open.take()?;
        self.muxer.flush(&mut open.bytes);
        let end_ms = open.latest.iter().flatten().map(|last| last.dts_ms + last.step_ms.min(STEP_MAX_MS)).max();
        let own_ms = end_ms.unwrap_or(open.start_ms).saturating_sub(open.start_ms).clamp(1, limit_ms);
        let natural_ms = next_ms.map_or(own_ms, |next_ms| next_ms - open.start_ms);
        // Behind a gap that is longer than a segment may be, time goes on anew.
        let duration_ms = if natural_ms > limit_ms { own_ms } else { natural_ms };
        self.discontinuity |= natural_ms > limit_ms;
        if self.target_duration_s.is_none() {
            self.target_duration_s = Some(self.expect(duration_ms));
        }
        // A quarter more than the last one: most segments need no second allocation.
        self.size = (open.bytes.len() / 4 * 5).min(self.settings.bytes_max);
        let info = SegmentInfo {
            number: self.number,
            duration_ms,
            discontinuity: open.discontinuity,
            independent: open.independent,
        };
        self.number += 1;
        Some(Segment { info, bytes: open.bytes })
    }

    /// The target duration, when keyframes come as far apart as in a first segment of `first_ms`.
    fn expect(&self, first_ms: u64) -> u32 {
        let target_ms = self.settings.target_ms.max(1);
        let expected_ms = if self.has_video { target_ms.div_ceil(first_ms) * first_ms } else { target_ms };
        ((expected_ms.max(first_ms) + 500) / 1000).max(1) as u32
    }
}

const fn place(track: Track) -> usize {
    match track {
        Track::Video => 0,
        Track::Audio => 1,
    }
}
