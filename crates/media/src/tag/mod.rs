//! FLV tags: what RTMP carries and HTTP-FLV is made of.

pub(crate) mod body;

use crate::Track;

/// What a tag's body is, by its number in FLV and RTMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TagKind {
    /// A codec's byte, then audio.
    Audio,
    /// A codec's byte, then video.
    Video,
    /// AMF 0 values: `onMetaData` and its like.
    Script,
}

impl TagKind {
    /// The number on the wire: 8, 9 or 18.
    pub const fn number(self) -> u8 {
        match self {
            Self::Audio => 8,
            Self::Video => 9,
            Self::Script => 18,
        }
    }

    /// Whose media it holds; `None` for a script.
    pub const fn track(self) -> Option<Track> {
        match self {
            Self::Audio => Some(Track::Audio),
            Self::Video => Some(Track::Video),
            Self::Script => None,
        }
    }

    /// The kind of a number on the wire.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            8 => Some(Self::Audio),
            9 => Some(Self::Video),
            18 => Some(Self::Script),
            _ => None,
        }
    }
}

/// An FLV tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// What the payload is.
    pub kind: TagKind,
    /// Milliseconds on the publisher's clock; it wraps.
    pub timestamp_ms: u32,
    /// The body, without the tag's header.
    pub payload: Vec<u8>,
}
