//! Successive playlists of a stream, held against RFC 8216.

use super::parse::{Entry, MediaPlaylist, Playlist};
use super::parse_error::ParseError;

/// Remembers what a stream's playlists said.
#[derive(Debug, Default)]
pub struct Checker {
    last: Option<MediaPlaylist>,
}

/// A rule that is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// It is no playlist.
    #[error("{0}")]
    Parse(#[from] ParseError),
    /// It is a multivariant playlist, where segments are due.
    #[error("a multivariant playlist where a media playlist is due")]
    Multivariant,
    /// §4.1: bytes that no playlist holds.
    #[error("a control character or byte order mark (RFC 8216 §4.1)")]
    Character,
    /// §4.3.3.1: a segment is longer than the target duration.
    #[error("segment {number} lasts {duration_us} µs, over a target duration of {target_s} s (RFC 8216 §4.3.3.1)")]
    Longer {
        /// The segment's number.
        number: u64,
        /// Its duration.
        duration_us: u64,
        /// The target duration.
        target_s: u32,
    },
    /// §7: fractions need version 3.
    #[error("durations with fractions in version {0} (RFC 8216 §7)")]
    Version(u32),
    /// §7: `EXT-X-MAP` needs version 6 where there are more than I-frames.
    #[error("EXT-X-MAP in version {0} (RFC 8216 §7)")]
    MapVersion(u32),
    /// §6.2.1: the target duration never changes. That it grows with a longer segment is no violation here: see [`super::Window`].
    #[error("the target duration went from {0} s to {1} s, and no new segment is that long (RFC 8216 §6.2.1)")]
    Target(u32, u32),
    /// §6.2.2: numbers never go back.
    #[error("the media sequence went back from {0} to {1} (RFC 8216 §6.2.2)")]
    SequenceBack(u64, u64),
    /// §6.2.2: segments leave from the front, and the number follows; or: segments were missed between two looks.
    #[error("segment {0} is another than before (RFC 8216 §6.2.2)")]
    Changed(u64),
    /// §6.2.1: segments that were at the end are gone.
    #[error("the playlist lost segments at its end: {0} was the last, and now {1} is (RFC 8216 §6.2.1)")]
    Shrunk(u64, u64),
    /// §4.3.3.3: the discontinuity sequence does not follow what left the playlist.
    #[error("the discontinuity sequence is {found}, where {expected} is due (RFC 8216 §6.2.2)")]
    Discontinuity {
        /// What is due.
        expected: u64,
        /// What is said.
        found: u64,
    },
    /// §6.2.2: segments left although less than three target durations remain.
    #[error("segments left, and {0} ms remain: less than three target durations (RFC 8216 §6.2.2)")]
    Short(u64),
    /// §6.2.1: something was added behind the end.
    #[error("the playlist changed after #EXT-X-ENDLIST (RFC 8216 §6.2.1)")]
    AfterEnd,
}

impl Checker {
    /// Takes the next playlist of a stream, and says what is wrong with it, alone and beside the last one.
    pub fn check(&mut self, text: &str) -> Vec<Violation> {
        let mut wrong = Vec::new();
        if text.chars().any(|c| c.is_control() && c != '\n' && c != '\r' || c == '\u{feff}') {
            wrong.push(Violation::Character);
        }
        let playlist = match Playlist::parse(text) {
            Ok(Playlist::Media(playlist)) => playlist,
            Ok(Playlist::Multivariant(_)) => {
                wrong.push(Violation::Multivariant);
                return wrong;
            }
            Err(error) => {
                wrong.push(error.into());
                return wrong;
            }
        };
        alone(&playlist, &mut wrong);
        if let Some(last) = &self.last {
            beside(last, &playlist, &mut wrong);
        }
        self.last = Some(playlist);
        wrong
    }

    /// The playlist that was checked last, if it was one.
    pub const fn last(&self) -> Option<&MediaPlaylist> {
        self.last.as_ref()
    }
}

fn alone(playlist: &MediaPlaylist, wrong: &mut Vec<Violation>) {
    if playlist.fractions && playlist.version < 3 {
        wrong.push(Violation::Version(playlist.version));
    }
    if playlist.version < 6 && playlist.entries.iter().any(|entry| entry.map.is_some()) {
        wrong.push(Violation::MapVersion(playlist.version));
    }
    let target_s = playlist.target_duration_s;
    for (at, entry) in playlist.entries.iter().enumerate() {
        let number = playlist.media_sequence.saturating_add(at as u64);
        if rounded_s(entry) > target_s.into() {
            wrong.push(Violation::Longer { number, duration_us: entry.duration_us, target_s });
        }
    }
}

/// A duration as §4.3.3.1 holds it against the target duration: rounded to the nearest second.
const fn rounded_s(entry: &Entry) -> u64 {
    entry.duration_us.saturating_add(500_000) / 1_000_000
}

fn beside(last: &MediaPlaylist, next: &MediaPlaylist, wrong: &mut Vec<Violation>) {
    if last.ended && last != next {
        wrong.push(Violation::AfterEnd);
    }
    let target_s = next.target_duration_s;
    let end = |playlist: &MediaPlaylist| playlist.media_sequence.saturating_add(playlist.entries.len() as u64);
    let fresh = end(next).saturating_sub(end(last)).min(next.entries.len() as u64) as usize;
    let needed_s = next.entries.iter().rev().take(fresh).map(rounded_s).max();
    // A longer segment may have come and gone between two looks.
    let is_seen = end(last) >= next.media_sequence;
    let has_grown = last.target_duration_s < target_s && (needed_s == Some(target_s.into()) || !is_seen);
    if last.target_duration_s != target_s && !has_grown {
        wrong.push(Violation::Target(last.target_duration_s, next.target_duration_s));
    }
    if next.media_sequence < last.media_sequence {
        wrong.push(Violation::SequenceBack(last.media_sequence, next.media_sequence));
        return;
    }
    if end(next) < end(last) {
        wrong.push(Violation::Shrunk(end(last), end(next)));
    }
    let left = (next.media_sequence - last.media_sequence).min(last.entries.len() as u64) as usize;
    let (gone, stayed) = last.entries.split_at(left);
    for (at, (before, now)) in stayed.iter().zip(&next.entries).enumerate() {
        if before != now {
            wrong.push(Violation::Changed(next.media_sequence.saturating_add(at as u64)));
        }
    }
    // Of what came and went between two looks, only its number is known.
    let left = gone.iter().filter(|entry| entry.discontinuity).count() as u64;
    let expected = last.discontinuity_sequence.saturating_add(left);
    let found = next.discontinuity_sequence;
    if is_seen && found != expected || found < expected {
        wrong.push(Violation::Discontinuity { expected, found });
    }
    let remains_us = next.entries.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.duration_us));
    if next.media_sequence > last.media_sequence && remains_us < 3_000_000 * u64::from(next.target_duration_s) {
        wrong.push(Violation::Short(remains_us / 1000));
    }
}
