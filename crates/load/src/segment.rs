//! A segment as it comes: when its first picture is whole, and whether it is media at all.
//!
//! Source: RFC 8216 §3 (formats of segments); ISO/IEC 14496-12 §4.2 (boxes).

use crate::format;
use crate::glance::{NotMedia, Ts};

/// A segment.
#[derive(Debug)]
pub(crate) enum Segment {
    /// Too few bytes have come to tell.
    Unknown(Vec<u8>),
    /// A transport stream.
    Ts(Ts),
    /// A fragment of an ISO base media file.
    Mp4(Mp4),
    /// Another format that players take, such as packed audio or WebVTT.
    Other,
}

impl Default for Segment {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

impl Segment {
    /// Takes bytes in.
    ///
    /// # Errors
    /// What it is instead of a segment.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Unknown(begun) => {
                begun.extend_from_slice(bytes);
                if begun.len() < format::LOOKED_AT {
                    return Ok(());
                }
                let begun = std::mem::take(begun);
                self.begin(&begun)
            }
            Self::Ts(ts) => {
                ts.read(bytes).map_err(|NotMedia| "a segment that is no MPEG-TS after its start".to_owned())
            }
            Self::Mp4(mp4) => mp4.read(bytes).map_err(|NotMedia| "a segment that is no MP4 after its start".to_owned()),
            Self::Other => Ok(()),
        }
    }

    /// The segment is whole.
    ///
    /// # Errors
    /// What it is instead of a segment, or what of it is missing.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        if let Self::Unknown(begun) = self {
            let begun = std::mem::take(begun);
            self.begin(&begun)?;
        }
        match self {
            Self::Ts(ts) if !ts.bytes.is_multiple_of(188) => Err("segments that are not whole packets".to_owned()),
            Self::Mp4(mp4) if !mp4.is_at_end() => Err("segments that end within a box".to_owned()),
            _ => Ok(()),
        }
    }

    /// Whether it is of a format that players take.
    pub(crate) const fn is_media(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }

    /// Whether the first picture is whole.
    pub(crate) const fn has_picture(&self) -> bool {
        match self {
            Self::Ts(ts) => ts.has_picture(),
            Self::Mp4(mp4) => mp4.has_media,
            Self::Unknown(_) | Self::Other => false,
        }
    }

    fn begin(&mut self, begun: &[u8]) -> Result<(), String> {
        *self = match format::name(begun) {
            Some("MPEG-TS") => Self::Ts(Ts::default()),
            _ if format::is_mp4(begun) => Self::Mp4(Mp4::default()),
            Some("packed audio (ADTS or MP3)" | "WebVTT") => Self::Other,
            Some(other) => return Err(format!("a segment that is no media: it is {other}")),
            None => return Err("a segment that is no media: its format is not known (it may be encrypted)".to_owned()),
        };
        self.read(begun)
    }
}

/// Top-level boxes of an ISO base media file.
#[derive(Debug, Default)]
pub(crate) struct Mp4 {
    /// What came of the next box's size and type.
    header: Vec<u8>,
    /// Bytes of the present box still to come.
    left: u64,
    is_media: bool,
    /// A box of media data is whole.
    has_media: bool,
}

impl Mp4 {
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), NotMedia> {
        loop {
            let n = self.left.min(bytes.len() as u64) as usize;
            bytes = &bytes[n..];
            self.left -= n as u64;
            if self.left > 0 {
                return Ok(());
            }
            self.has_media |= std::mem::take(&mut self.is_media);
            if bytes.is_empty() {
                return Ok(());
            }
            let n = (self.header_len() - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.header.len() == self.header_len() {
                self.begin_box()?;
            }
        }
    }

    /// Bytes of a box's size and type: a size of 1 says that a size of 64 bits follows.
    fn header_len(&self) -> usize {
        if self.header.starts_with(&[0, 0, 0, 1]) { 16 } else { 8 }
    }

    fn begin_box(&mut self) -> Result<(), NotMedia> {
        let header = std::mem::take(&mut self.header);
        let (size, kind) = header.split_at(4);
        let size = match u32::from_be_bytes([size[0], size[1], size[2], size[3]]) {
            // To the end of the file.
            0 => u64::MAX,
            1 => u64::from_be_bytes(std::array::from_fn(|at| header[8 + at])),
            size => size.into(),
        };
        self.left = size.checked_sub(header.len() as u64).ok_or(NotMedia)?;
        self.is_media = kind.starts_with(b"mdat");
        if kind[..4].iter().all(|byte| (0x20..0x7f).contains(byte)) { Ok(()) } else { Err(NotMedia) }
    }

    const fn is_at_end(&self) -> bool {
        (self.left == 0 && self.header.is_empty()) || self.left > u32::MAX as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mp4_box(kind: &[u8; 4], payload: usize) -> Vec<u8> {
        [&(8 + payload as u32).to_be_bytes()[..], kind, &vec![7; payload]].concat()
    }

    fn read(bytes: &[u8], step: usize) -> Result<(Segment, bool), String> {
        let mut segment = Segment::default();
        let mut pictured_early = false;
        for piece in bytes.chunks(step) {
            pictured_early |= segment.has_picture();
            segment.read(piece)?;
        }
        segment.end()?;
        Ok((segment, pictured_early))
    }

    #[test]
    fn a_fragment_has_a_picture_once_its_data_is_whole() {
        let large = [&1_u32.to_be_bytes()[..], b"mdat", &(16 + 300_u64).to_be_bytes(), &[7; 300]].concat();
        let file = [mp4_box(b"styp", 16), mp4_box(b"moof", 200), large, mp4_box(b"moof", 100)].concat();
        for step in [1, 7, 100, 10_000] {
            let (segment, _) = read(&file, step).expect("MP4");
            assert!(segment.has_picture(), "{step}");
        }
        let cut = &file[..file.len() - 1];
        assert_eq!(read(cut, 100).expect_err("cut"), "segments that end within a box");
        let init = [mp4_box(b"ftyp", 16), mp4_box(b"moov", 400)].concat();
        assert!(!read(&init, 50).expect("MP4").0.has_picture());
    }

    #[test]
    fn what_is_no_segment_is_named() {
        for (bytes, part) in [
            (b"<html>not found</html>".to_vec(), "an HTML page"),
            (b"FLV\x01\x05\0\0\0\x09".to_vec(), "FLV"),
            ((0..200_u8).map(|n| n.wrapping_mul(73) | 0x80).collect(), "may be encrypted"),
            (Vec::new(), "empty"),
        ] {
            let error = read(&bytes, 50).expect_err("refused");
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600), step in 1usize..300) {
            let start = [mp4_box(b"styp", 4), bytes].concat();
            let _ = read(&start, step);
        }
    }
}
