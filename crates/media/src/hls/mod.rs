//! HLS: units into segments, segments into playlists, and both held against the text.
//!
//! Playlists are of version 3, since durations have fractions, or of version 6 where segments need an initialization section. `EXT-X-INDEPENDENT-SEGMENTS` is younger, but
//! RFC 8216 §7 asks no version for it, and who does not know a tag ignores it (§6.3.1). A segment is held against the target
//! duration as §4.3.3.1 has it: rounded to the nearest second.
//!
//! Source: RFC 8216; of variables RFC 8216bis.

mod check;
mod format;
mod multivariant;
mod parse;
mod parse_error;
mod rates;
mod segmenter;
mod settings;
mod start;
mod variables;
mod window;

pub use check::{Checker, Violation};
pub use format::{Container, Part, SegmentFormat};
pub use multivariant::{stream_attributes, write_multivariant};
pub use parse::{ByteRange, Entry, MediaPlaylist, Playlist, Variant};
pub use parse_error::ParseError;
pub use rates::Rates;
pub use segmenter::{Segment, SegmentInfo, Segmenter};
pub use settings::Settings;
pub use variables::{Origin, Variables};
pub use window::Window;

#[cfg(test)]
mod tests;
