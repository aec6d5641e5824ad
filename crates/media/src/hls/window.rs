//! Segments → playlists.
//!
//! The target duration of a playlist never changes, says RFC 8216 §6.2.1, and no segment is longer (§4.3.3.1). A live encoder with
//! irregular keyframes breaks one or the other: what comes is not known before. Here a longer segment raises the target duration,
//! as nginx-rtmp-module, SRS, gohlslib and Wowza do, and players follow; it never falls.

use super::format::{Container, Part};
use super::rates::Rates;
use super::segmenter::{SegmentInfo, rounded_s};
use std::collections::VecDeque;
use std::fmt::Write;

/// The segments that a playlist lists, and those that it listed not long ago: players may still ask for them.
#[derive(Debug)]
pub struct Window<T> {
    /// The longest segment so far, or more.
    target_duration_s: u32,
    /// How many segments are listed, where three times the target duration do not need more.
    length: usize,
    listed: VecDeque<(SegmentInfo, T)>,
    /// What was listed, with how long it stays, in milliseconds.
    kept: VecDeque<(SegmentInfo, T, u64)>,
    discontinuities: u64,
    ended: bool,
}

impl<T> Window<T> {
    /// A window of `length` segments, of which `target_duration_s` is expected to be the longest.
    pub fn new(target_duration_s: u32, length: usize) -> Self {
        let (listed, kept) = (VecDeque::new(), VecDeque::new());
        Self { target_duration_s, length, listed, kept, discontinuities: 0, ended: false }
    }

    /// As though `count` discontinuities had left the playlist: a server that was started again does not go back behind its former number.
    #[must_use]
    pub const fn after_discontinuities(mut self, count: u64) -> Self {
        self.discontinuities = count;
        self
    }

    /// The target duration, in seconds. A longer segment raises it.
    pub const fn target_duration_s(&self) -> u32 {
        self.target_duration_s
    }

    /// The rates of the listed segments from the one with this number on.
    pub fn rates(&self, from: u64) -> Rates {
        let infos = self.listed.iter().map(|(info, _)| info);
        Rates::of(infos.skip_while(|info| info.number < from), self.target_duration_s)
    }

    /// Adds a segment, `value` being whatever serves it; returns what nobody may ask for any more.
    ///
    /// A segment is listed until three target durations are there without it (RFC 8216 §6.2.2), and stays for its own duration and
    /// that of the playlist behind that.
    pub fn push(&mut self, info: SegmentInfo, value: T) -> Vec<T> {
        self.target_duration_s = self.target_duration_s.max(rounded_s(info.duration_ms));
        for (_, _, stays_ms) in &mut self.kept {
            *stays_ms = stays_ms.saturating_sub(info.duration_ms);
        }
        self.listed.push_back((info, value));
        let longest_ms = self.duration_ms();
        while self.listed.len() > self.length
            && let Some((first, _)) = self.listed.front()
            && self.duration_ms() - first.duration_ms >= 3000 * u64::from(self.target_duration_s)
            && let Some((info, value)) = self.listed.pop_front()
        {
            self.discontinuities += u64::from(info.discontinuity);
            self.kept.push_back((info, value, info.duration_ms + longest_ms));
        }
        let mut gone = Vec::new();
        while self.kept.front().is_some_and(|(_, _, stays_ms)| *stays_ms == 0) {
            gone.extend(self.kept.pop_front().map(|(_, value, _)| value));
        }
        gone
    }

    /// No more segments follow: players need not ask again.
    pub const fn end(&mut self) {
        self.ended = true;
    }

    /// The segment with this number, listed or not.
    pub fn get(&self, number: u64) -> Option<&T> {
        let find = |first: Option<u64>| Some(number.checked_sub(first?)? as usize);
        let listed = find(self.listed.front().map(|(info, _)| info.number));
        match listed {
            Some(at) => self.listed.get(at).map(|(_, value)| value),
            None => self.kept.get(find(self.kept.front().map(|(info, ..)| info.number))?).map(|(_, value, _)| value),
        }
    }

    /// The listed segments, the oldest first.
    pub fn listed(&self) -> impl Iterator<Item = (&SegmentInfo, &T)> {
        self.listed.iter().map(|(info, value)| (info, value))
    }

    /// Appends the playlist, whose addresses are file names of `container`.
    pub fn write(&self, container: &Container, out: &mut String) {
        // Source: RFC 8216 §7: EXT-X-MAP takes version 6.
        let version = if self.listed.iter().any(|(info, _)| info.init.is_some()) { 6 } else { 3 };
        let mut init = None;
        let number = self.listed.front().map_or(0, |(info, _)| info.number);
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "#EXTM3U\n#EXT-X-VERSION:{version}\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:{number}\n",
            self.target_duration_s
        );
        if self.discontinuities > 0 || self.listed.iter().any(|(info, _)| info.discontinuity) {
            let _ = writeln!(out, "#EXT-X-DISCONTINUITY-SEQUENCE:{}", self.discontinuities);
        }
        if self.listed.iter().all(|(info, _)| info.independent) {
            out.push_str("#EXT-X-INDEPENDENT-SEGMENTS\n");
        }
        for (info, _) in &self.listed {
            if info.discontinuity {
                out.push_str("#EXT-X-DISCONTINUITY\n");
            }
            if let Some(number) = info.init.filter(|_| info.init != init) {
                let _ = writeln!(out, "#EXT-X-MAP:URI=\"{}\"", container.file_name(Part::Init(number)));
                init = info.init;
            }
            let _ = writeln!(out, "#EXTINF:{}.{:03},", info.duration_ms / 1000, info.duration_ms % 1000);
            out.push_str(&container.file_name(Part::Segment(info.number)));
            out.push('\n');
        }
        if self.ended {
            out.push_str("#EXT-X-ENDLIST\n");
        }
    }

    fn duration_ms(&self) -> u64 {
        self.listed.iter().map(|(info, _)| info.duration_ms).sum()
    }
}
