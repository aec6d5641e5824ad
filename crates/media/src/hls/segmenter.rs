//! Units → segments.
//!
//! A segment with video begins with a keyframe, whatever the encoder does: a player that joins there can decode at once, and Media
//! Source Extensions take no other. So a segment is as long as the encoder's keyframes demand, and the target duration follows from
//! it (see [`super::Window`]).

use super::format::{Container, SegmentFormat};
use super::settings::{EARLY_MS, Settings};
use super::start::Start;
use crate::avc::Nals;
use crate::ts::Muxer;
use crate::{Config, Track, Unit};

/// Divides a stream in segments: at the first keyframe after the target duration. It outlives a publisher, so that numbers continue.
#[derive(Debug)]
pub struct Segmenter<F = Muxer> {
    settings: Settings,
    format: F,
    /// The tracks in the segment that is being written: video, audio.
    tracks: [Option<Config>; 2],
    /// Configurations that hold from the next segment on.
    pending: [Option<Config>; 2],
    /// Until it is known which tracks the first segment has.
    start: Option<Start>,
    /// Sound is announced that has no configuration yet: the first segment takes it when it comes.
    awaits_sound: bool,
    /// The segment that is being written.
    open: Option<Open>,
    /// The latest unit of each track in the segment before, which the next one continues.
    latest: [Option<Latest>; 2],
    number: u64,
    /// The initialization section of the segments, by the number of the segment it came with.
    init: Option<u64>,
    /// An initialization section that comes with the next segment that ends.
    next_init: Option<Vec<u8>>,
    /// The next segment does not continue the last one.
    discontinuity: bool,
    target_duration_s: Option<u32>,
    /// An estimate of the next segment's size, in bytes.
    size: usize,
}

#[derive(Debug)]
struct Open {
    bytes: Vec<u8>,
    start_ms: u64,
    discontinuity: bool,
    /// A discontinuity came within the segment: it ends at the next keyframe.
    broken: bool,
    pictures: u32,
    has_sound: bool,
    independent: bool,
    /// The latest unit of each track: video, audio.
    latest: [Option<Latest>; 2],
    /// When the first unit of each track is decoded.
    first_ms: [Option<u64>; 2],
    /// The units so far, while sound is awaited.
    units: Vec<Unit>,
}

#[derive(Debug, Clone, Copy)]
struct Latest {
    dts_ms: u64,
    /// Time since the unit before it; `None` for the first of a track.
    step_ms: Option<u64>,
}

/// Facts about a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its media sequence number: each is one more than the last.
    pub number: u64,
    /// How long it plays, in milliseconds.
    pub duration_ms: u64,
    /// It does not continue the one before it.
    pub discontinuity: bool,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Pictures in it.
    pub pictures: u32,
    /// All of it is decoded without another segment: its first picture is an IDR picture, or there is none. Pictures behind another
    /// keyframe may be shown before it, and refer to those of the segment before.
    ///
    /// Source: RFC 8216 §4.3.5.1; ISO/IEC 14496-10 §7.4.1.2.4.
    pub independent: bool,
    /// It ends where the next unit begins. The end of a publisher's last one, or of one before a gap, is assumed.
    pub continued: bool,
    /// The initialization section that it needs, by the number of the segment it came with.
    pub init: Option<u64>,
}

/// A segment. Where there is video it begins with a keyframe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Facts about it.
    pub info: SegmentInfo,
    /// Its content.
    pub bytes: Vec<u8>,
    /// An initialization section that it, and those that follow, need.
    pub init: Option<Vec<u8>>,
    /// There is sound in it.
    pub has_sound: bool,
}

/// The longest duration that is assumed of a segment's last unit, in milliseconds.
const STEP_MAX_MS: u64 = 500;
/// The duration of a last unit where nothing else is known, in milliseconds.
const STEP_MS: u64 = 40;
/// Silence of all tracks before a segment that is longer than this is a gap, and no part of the segment before, in milliseconds.
const GAP_MS: u64 = 1_000;

impl Segmenter {
    /// Waits for a stream, and writes MPEG-TS.
    pub fn new(settings: Settings) -> Self {
        Self::with_format(settings)
    }
}

impl<F: SegmentFormat> Segmenter<F> {
    /// Waits for a stream.
    pub fn with_format(settings: Settings) -> Self {
        Self {
            settings,
            format: F::default(),
            tracks: [None, None],
            pending: [None, None],
            start: Some(Start::default()),
            awaits_sound: false,
            open: None,
            latest: [None; 2],
            number: 0,
            init: None,
            next_init: None,
            discontinuity: false,
            target_duration_s: None,
            size: 0,
        }
    }

    /// The container of the segments.
    pub const fn container(&self) -> Container {
        F::CONTAINER
    }

    /// Other bounds of a segment, from now on: see [`Settings`].
    pub const fn bound(&mut self, longest_ms: u64, bytes_max: usize) {
        (self.settings.longest_ms, self.settings.bytes_max) = (longest_ms, bytes_max);
    }

    /// The target duration that the first segment lets expect, in seconds; `None` before it.
    pub const fn target_duration_s(&self) -> Option<u32> {
        self.target_duration_s
    }

    /// How the tracks in the segments are decoded.
    pub fn configs(&self) -> impl Iterator<Item = &Config> {
        self.tracks.iter().flatten()
    }

    /// Video follows, though no configuration has come: the first segment waits for it.
    pub const fn announce_video(&mut self) {
        if let Some(start) = &mut self.start {
            start.announce_video();
        }
    }

    /// Sound follows, though no configuration has come. If its configuration comes during the first segment, that begins again with it:
    /// MP3 is configured by its first frame, which encoders send behind the first keyframe where pictures are reordered.
    pub const fn announce_sound(&mut self) {
        self.awaits_sound |= self.start.is_some();
    }

    /// Takes a configuration. It holds from the next segment on, which begins at a keyframe; units of this track that come before
    /// that are in no segment, since the segment before has another configuration.
    pub fn config(&mut self, config: &Config) {
        if config.track() == Track::Video {
            self.announce_video();
        }
        self.pending[place(config.track())] = Some(config.clone());
    }

    /// Takes a unit, and returns the segment that ended before it. What comes before the first keyframe is in no segment.
    pub fn unit(&mut self, unit: &Unit) -> Option<Segment> {
        if unit.discontinuity {
            match &mut self.open {
                Some(open) => open.broken = true,
                None => self.discontinuity = self.number > 0,
            }
        }
        if self.start.is_some() && !self.starts(unit) {
            return None;
        }
        if unit.track == Track::Audio {
            self.join_sound();
        }
        let has_video = self.tracks[0].is_some();
        let is_new = self.pending[place(unit.track)].is_some();
        // A track whose configuration waits can only be decoded from its own first keyframe on; sound does not interrupt video for that.
        let entry = unit.keyframe && if unit.track == Track::Video { has_video || is_new } else { !has_video };
        if !entry && (is_new || self.tracks[place(unit.track)].is_none()) {
            return None;
        }
        let Some(open) = &mut self.open else {
            if entry {
                self.begin(unit);
                self.write(unit);
            }
            return None;
        };
        let passed_ms = unit.dts_ms.saturating_sub(open.start_ms);
        let waits = is_new || unit.track == Track::Video && self.pending.iter().any(Option::is_some);
        let is_first = self.target_duration_s.is_none() && self.start.is_none();
        let is_long = passed_ms + EARLY_MS >= self.settings.target_ms && self.start.is_none();
        let is_large = open.bytes.len() >= self.settings.bytes_max / 2;
        let mut ended = None;
        if entry && passed_ms > 0 && (open.broken || waits || is_first || is_long || is_large) {
            let broken = open.broken;
            ended = self.cut(Some(unit.dts_ms));
            self.discontinuity |= broken;
            self.begin(unit);
        } else if passed_ms >= self.settings.longest_ms || open.bytes.len() >= self.settings.bytes_max {
            let ended = self.cut(Some(unit.dts_ms));
            self.discontinuity = true;
            return ended;
        }
        self.write(unit);
        ended
    }

    /// The publisher is gone: the segment so far. What comes next does not continue it.
    pub fn end(&mut self) -> Option<Segment> {
        let ended = self.cut(None);
        self.discontinuity = self.number > 0;
        ended
    }

    /// As [`Segmenter::end`], and the tracks are gone too: another publisher may have others.
    pub fn restart(&mut self) -> Option<Segment> {
        let ended = self.end();
        self.format.clear();
        (self.tracks, self.pending) = ([None, None], [None, None]);
        (self.start, self.awaits_sound) = (Some(Start::default()), false);
        ended
    }

    /// Begins the first segment again with the configuration of the sound that was awaited.
    fn join_sound(&mut self) {
        let awaited = self.awaits_sound && self.start.is_none() && self.pending[1].is_some();
        let Some(mut open) = self.open.take_if(|open| awaited && !open.units.is_empty()) else { return };
        self.format.flush(&mut open.bytes);
        self.discontinuity |= open.discontinuity;
        self.begin(&open.units[0]);
        open.units.iter().for_each(|unit| self.write(unit));
        if let Some(begun) = &mut self.open {
            begun.broken = open.broken;
        }
    }

    /// Whether a unit at the beginning belongs in a segment.
    fn starts(&mut self, unit: &Unit) -> bool {
        let is_known = [0, 1].map(|at: usize| self.pending[at].is_some() || self.tracks[at].is_some());
        let Some(start) = &mut self.start else { return true };
        let step = start.unit(unit, is_known, &self.settings);
        if step.drop_open
            && let Some(mut open) = self.open.take()
        {
            self.format.flush(&mut open.bytes);
        }
        if step.is_over {
            self.start = None;
        }
        step.is_taken
    }

    fn begin(&mut self, unit: &Unit) {
        // Sound that begins a segment leaves video's configuration waiting for its keyframe.
        let from = if unit.track == Track::Video { 0 } else { 1 };
        let mut is_other = false;
        for at in from..2 {
            if let Some(config) = self.pending[at].take() {
                is_other = true;
                self.format.config(&config);
                self.tracks[at] = Some(config);
                // Source: RFC 8216 §4.3.2.3: other tracks, or another encoding.
                self.discontinuity |= self.number > 0;
            }
        }
        self.awaits_sound &= self.tracks[1].is_none();
        if is_other {
            self.next_init = self.format.init();
        }
        let mut bytes = Vec::with_capacity(self.size);
        self.format.begin(&mut bytes);
        let discontinuity = std::mem::take(&mut self.discontinuity);
        let start_ms = unit.dts_ms;
        let latest = if discontinuity { [None; 2] } else { self.latest };
        let (units, first_ms) = (Vec::new(), [None; 2]);
        let (broken, pictures, has_sound) = (false, 0, false);
        let independent = self.is_independent(unit);
        self.open = Some(Open {
            bytes,
            start_ms,
            discontinuity,
            broken,
            pictures,
            has_sound,
            independent,
            latest,
            first_ms,
            units,
        });
    }

    /// Whether what follows `unit` is decoded without what was before.
    fn is_independent(&self, unit: &Unit) -> bool {
        match &self.tracks[0] {
            Some(Config::Avc(avc)) if unit.track == Track::Video => Nals::new(&unit.payload, avc.length_size).has_idr(),
            _ => true,
        }
    }

    fn write(&mut self, unit: &Unit) {
        let Some(open) = &mut self.open else { return };
        open.pictures += u32::from(unit.track == Track::Video);
        open.has_sound |= unit.track == Track::Audio;
        open.first_ms[place(unit.track)].get_or_insert(unit.dts_ms);
        let last = &mut open.latest[place(unit.track)];
        let step_ms = last.map(|last| unit.dts_ms.saturating_sub(last.dts_ms));
        *last = Some(Latest { dts_ms: unit.dts_ms, step_ms });
        if self.awaits_sound {
            open.units.push(unit.clone());
        }
        self.format.unit(unit, &mut open.bytes);
    }

    /// Ends the open segment before `next_ms`, or with its last unit.
    fn cut(&mut self, next_ms: Option<u64>) -> Option<Segment> {
        let mut open = self.open.take()?;
        self.awaits_sound = false;
        self.format.flush(&mut open.bytes);
        let end_ms = |last: &Latest, step_max_ms: u64| last.dts_ms + last.step_ms.unwrap_or(STEP_MS).min(step_max_ms);
        let is_step_known = open.latest.iter().flatten().any(|last| last.step_ms.is_some());
        let silent_ms = open.latest.iter().flatten().map(|last| end_ms(last, u64::MAX)).max().unwrap_or(open.start_ms);
        let continued_ms = next_ms.filter(|&next_ms| !is_step_known || next_ms <= silent_ms + GAP_MS);
        // A gap lengthens no segment: the stream does not continue behind it.
        self.discontinuity |= continued_ms.is_none() && next_ms.is_some();
        self.latest = if continued_ms.is_some() { open.latest } else { [None; 2] };
        // As long as the longer track in it: sound that is ahead of video begins as much later as it ends.
        let own_ms = |(first_ms, last): (&Option<u64>, &Option<Latest>)| {
            Some(end_ms(last.as_ref()?, STEP_MAX_MS).saturating_sub((*first_ms)?))
        };
        let longest_ms = || open.first_ms.iter().zip(&open.latest).filter_map(own_ms).max().unwrap_or(0);
        let duration_ms = continued_ms.map_or_else(longest_ms, |end_ms| end_ms.saturating_sub(open.start_ms)).max(1);
        if self.target_duration_s.is_none() {
            self.target_duration_s = Some(self.expect(duration_ms, open.pictures > 0));
        }
        // A quarter more than the last one: most segments need no second allocation.
        self.size = (open.bytes.len() / 4 * 5).min(self.settings.bytes_max);
        let init = self.next_init.take();
        if init.is_some() {
            self.init = Some(self.number);
        }
        let info = SegmentInfo {
            number: self.number,
            duration_ms,
            discontinuity: open.discontinuity,
            bytes: open.bytes.len() as u64,
            pictures: open.pictures,
            independent: open.independent,
            continued: continued_ms.is_some(),
            init: self.init,
        };
        self.number += 1;
        Some(Segment { info, bytes: open.bytes, init, has_sound: open.has_sound })
    }

    /// The target duration, when keyframes come as far apart as in a first segment of `first_ms`.
    fn expect(&self, first_ms: u64, has_video: bool) -> u32 {
        let target_ms = self.settings.target_ms.max(1);
        let expected_ms = if has_video { target_ms.div_ceil(first_ms) * first_ms } else { target_ms };
        rounded_s(expected_ms.max(first_ms)).max(1)
    }
}

/// As RFC 8216 §4.3.3.1 holds a segment against the target duration: rounded to the nearest second.
pub(super) const fn rounded_s(duration_ms: u64) -> u32 {
    ((duration_ms + 500) / 1000) as u32
}

const fn place(track: Track) -> usize {
    match track {
        Track::Video => 0,
        Track::Audio => 1,
    }
}
