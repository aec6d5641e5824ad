//! Codecs that RTMP and FLV name, by number or by four letters, whether they are carried or not.
//!
//! Source: Adobe's FLV 10.1, E.4.2.1 and E.4.3.1; Veovera, "Enhanced RTMP" v2, §Enhanced Audio and §Enhanced Video; 12, 13 and 14 for
//! video are numbers that some encoders use outside of any specification.

use crate::Track;
use std::fmt;

/// How a publisher names a codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodecId {
    /// FLV's number.
    Number(u8),
    /// Four letters, as Enhanced RTMP has them.
    FourCc([u8; 4]),
}

/// A codec that is not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// Whose it is.
    pub track: Track,
    /// How the publisher names it.
    pub id: CodecId,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match (self.track, self.id) {
            (_, CodecId::FourCc(letters)) => four_cc_name(&letters),
            (Track::Video, CodecId::Number(number)) => video_name(number),
            (Track::Audio, CodecId::Number(number)) => audio_name(number),
        };
        match (name, self.id) {
            (Some(name), _) => f.write_str(name),
            (None, CodecId::Number(number)) => write!(f, "FLV codec {number}"),
            (None, CodecId::FourCc(letters)) => write!(f, "codec '{}'", letters.escape_ascii()),
        }
    }
}

const fn video_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "JPEG",
        2 => "Sorenson H.263",
        3 | 6 => "Screen video",
        4 | 5 => "On2 VP6",
        7 => "H.264",
        8 => "H.263",
        9 => "MPEG-4 Part 2",
        12 => "HEVC",
        13 => "AV1",
        14 => "VVC",
        _ => return None,
    })
}

const fn audio_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 | 3 => "linear PCM",
        1 => "ADPCM",
        2 | 14 => "MP3",
        4..=6 => "Nellymoser",
        7 => "G.711 A-law",
        8 => "G.711 µ-law",
        10 => "AAC",
        11 => "Speex",
        13 => "Opus",
        15 => "device-specific",
        _ => return None,
    })
}

const fn four_cc_name(letters: &[u8; 4]) -> Option<&'static str> {
    Some(match letters {
        b"avc1" => "H.264",
        b"hvc1" | b"hev1" => "HEVC",
        b"vvc1" => "VVC",
        b"av01" => "AV1",
        b"vp08" => "VP8",
        b"vp09" => "VP9",
        b"mp4a" => "AAC",
        b".mp3" => "MP3",
        b"Opus" => "Opus",
        b"fLaC" => "FLAC",
        b"ac-3" => "AC-3",
        b"ec-3" => "E-AC-3",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_have_names() {
        let name = |track, id| Foreign { track, id }.to_string();
        assert_eq!(name(Track::Video, CodecId::Number(12)), "HEVC");
        assert_eq!(name(Track::Audio, CodecId::Number(7)), "G.711 A-law");
        assert_eq!(name(Track::Audio, CodecId::Number(12)), "FLV codec 12");
        assert_eq!(name(Track::Video, CodecId::FourCc(*b"vp09")), "VP9");
        assert_eq!(name(Track::Video, CodecId::FourCc(*b"x\n01")), "codec 'x\\n01'");
    }
}
