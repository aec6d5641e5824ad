//! What a stream is made of, whatever brought it: access units, and how to decode them.

use crate::{AacConfig, AvcConfig, Mp3Config};
use std::sync::Arc;

/// Which of a stream's tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Track {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
}

/// An access unit: a picture, or a frame of sound. Cloning shares the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Whose it is.
    pub track: Track,
    /// When it is decoded, in milliseconds on the stream's timeline; within a track each is later than the last.
    pub dts_ms: u64,
    /// How much later it is shown, in milliseconds.
    pub cts_ms: i32,
    /// Decoding can begin here. Each frame of sound is one.
    pub keyframe: bool,
    /// Time or content jumps before this unit: a publisher came back, or its clock was set.
    pub discontinuity: bool,
    /// H.264: NAL units, each behind its length in as many bytes as the configuration says. AAC: a raw data block.
    /// MP3: a frame, header included.
    pub payload: Arc<[u8]>,
}

/// How to decode a track. It holds until the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Config {
    /// H.264.
    Avc(Arc<AvcConfig>),
    /// AAC.
    Aac(Arc<AacConfig>),
    /// MP3.
    Mp3(Mp3Config),
}

impl Config {
    /// Whose it is.
    pub const fn track(&self) -> Track {
        match self {
            Self::Avc(_) => Track::Video,
            Self::Aac(_) | Self::Mp3(_) => Track::Audio,
        }
    }

    /// The codec's name in a playlist (RFC 6381).
    pub fn codec(&self) -> String {
        match self {
            Self::Avc(avc) => avc.codec(),
            Self::Aac(aac) => aac.codec(),
            Self::Mp3(mp3) => mp3.codec(),
        }
    }
}
