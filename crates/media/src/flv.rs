//! FLV: tags in a row, into bytes and out of them.
//!
//! Source: Adobe, "Video File Format Specification" 10.1 (2010), annex E.

use crate::tag::body::{AAC, AVC};
use crate::{Config, Tag, TagKind, Track, Unit};

/// What a stream begins with, before its tags: signature, version, which tracks there are.
const HEADER: usize = 9;
const TAG_HEADER: usize = 11;
/// Behind each tag is how long it was.
const TRAILER: usize = 4;

/// A codec's byte before AAC: 10, then 44 kHz, 16 bits, stereo, whatever it really is (§E.4.2.1).
const AAC_HEAD: u8 = AAC << 4 | 0x0f;

/// Appends what a stream begins with.
pub fn write_header(audio: bool, video: bool, out: &mut Vec<u8>) {
    out.extend(b"FLV\x01");
    out.push(u8::from(audio) << 2 | u8::from(video));
    out.extend((HEADER as u32).to_be_bytes());
    out.extend([0; TRAILER]);
}

/// Appends a tag. A payload past 16 MiB cannot be said, and is left out.
pub fn write_tag(kind: TagKind, timestamp_ms: u32, payload: &[u8], out: &mut Vec<u8>) {
    write_parts(kind, timestamp_ms, &[], payload, out);
}

/// Appends an access unit as a tag; `config` is its track's, AAC or H.264 where there is none. The timestamp is the lower 32 bits of
/// its time.
pub fn write_unit(unit: &Unit, config: Option<&Config>, out: &mut Vec<u8>) {
    let cts = unit.cts_ms.to_be_bytes();
    let head = [if unit.keyframe { 0x10 | AVC } else { 0x20 | AVC }, 1, cts[1], cts[2], cts[3]];
    let (kind, head) = match (unit.track, config) {
        (Track::Video, _) => (TagKind::Video, &head[..]),
        (Track::Audio, Some(Config::Mp3(mp3))) => (TagKind::Audio, &[mp3.flv_head()][..]),
        (Track::Audio, _) => (TagKind::Audio, &[AAC_HEAD, 1][..]),
    };
    write_parts(kind, unit.dts_ms as u32, head, &unit.payload, out);
}

/// Appends a configuration as a tag: a sequence header. MP3 has none, since each frame says how it is decoded.
pub fn write_config(config: &Config, timestamp_ms: u32, out: &mut Vec<u8>) {
    match config {
        Config::Avc(avc) => write_parts(TagKind::Video, timestamp_ms, &[0x10 | AVC, 0, 0, 0, 0], &avc.record, out),
        Config::Aac(aac) => write_parts(TagKind::Audio, timestamp_ms, &[AAC_HEAD, 0], &aac.record, out),
        Config::Mp3(_) => {}
    }
}

fn write_parts(kind: TagKind, timestamp_ms: u32, head: &[u8], payload: &[u8], out: &mut Vec<u8>) {
    let length = head.len() + payload.len();
    if length > 0x00ff_ffff {
        return;
    }
    out.reserve(TAG_HEADER + length + TRAILER);
    let [l2, l1, l0] = [(length >> 16) as u8, (length >> 8) as u8, length as u8];
    let [t3, t2, t1, t0] = timestamp_ms.to_be_bytes();
    out.extend_from_slice(&[kind.number(), l2, l1, l0, t2, t1, t0, t3, 0, 0, 0]);
    out.extend_from_slice(head);
    out.extend_from_slice(payload);
    out.extend_from_slice(&((TAG_HEADER + length) as u32).to_be_bytes());
}

/// Why bytes are no FLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlvError {
    /// It does not begin with `FLV`.
    #[error("this does not begin as FLV does")]
    Signature,
    /// The header's length makes no sense.
    #[error("an FLV header of {0} bytes")]
    Header(u32),
    /// A tag is longer than the limit.
    #[error("a tag of {length} bytes is longer than the {most} that are taken")]
    Long {
        /// Length, in bytes.
        length: usize,
        /// The limit, in bytes.
        most: usize,
    },
    /// Behind a tag is not its length: the reader is out of step.
    #[error("behind a tag of {length} bytes its length is said to be {said}")]
    Trailer {
        /// The tag's length, its header included, in bytes.
        length: u32,
        /// What is behind it.
        said: u32,
    },
}

/// Reads tags, however the bytes come.
#[derive(Debug)]
pub struct FlvReader {
    tag_max: usize,
    begun: bool,
    /// What has come of the part that is read, and how long that part is.
    held: Vec<u8>,
}

/// The most that may lie between the file's header and its first tag, in bytes.
const HEADER_MAX: u32 = 1024;

impl FlvReader {
    /// A reader that takes tags with payloads of up to `tag_max` bytes.
    pub const fn new(tag_max: usize) -> Self {
        Self { tag_max, begun: false, held: Vec::new() }
    }

    /// Reads from the head of `input` until a tag is whole; `None` when all of `input` was taken before. Tags of unknown kinds
    /// are passed over.
    ///
    /// # Errors
    /// [`FlvError`]: the following tags cannot be delimited.
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Tag>, FlvError> {
        loop {
            if !self.begun {
                if !self.fill(HEADER, input) {
                    return Ok(None);
                }
                if !self.held.starts_with(b"FLV") {
                    return Err(FlvError::Signature);
                }
                let length = u32_at(&self.held, 5);
                if !(HEADER as u32..=HEADER_MAX).contains(&length) {
                    return Err(FlvError::Header(length));
                }
                if !self.fill(length as usize + TRAILER, input) {
                    return Ok(None);
                }
                self.begun = true;
                self.held.clear();
            }
            if !self.fill(TAG_HEADER, input) {
                return Ok(None);
            }
            let length = u32_at(&self.held, 0) as usize & 0x00ff_ffff;
            if length > self.tag_max {
                return Err(FlvError::Long { length, most: self.tag_max });
            }
            if !self.fill(TAG_HEADER + length + TRAILER, input) {
                return Ok(None);
            }
            let mut payload = std::mem::take(&mut self.held);
            let said = u32_at(&payload, TAG_HEADER + length);
            // Some writers leave the number out.
            if said != 0 && said as usize != TAG_HEADER + length {
                return Err(FlvError::Trailer { length: (TAG_HEADER + length) as u32, said });
            }
            let timestamp_ms = u32::from_be_bytes([payload[7], payload[4], payload[5], payload[6]]);
            let kind = TagKind::from_number(payload[0] & 0x1f);
            payload.truncate(TAG_HEADER + length);
            payload.drain(..TAG_HEADER);
            if let Some(kind) = kind {
                return Ok(Some(Tag { kind, timestamp_ms, payload }));
            }
        }
    }

    /// Takes from `input` until `wanted` bytes are held.
    fn fill(&mut self, wanted: usize, input: &mut &[u8]) -> bool {
        let n = wanted.saturating_sub(self.held.len()).min(input.len());
        let (taken, rest) = input.split_at(n);
        self.held.extend_from_slice(taken);
        *input = rest;
        self.held.len() >= wanted
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |&four| u32::from_be_bytes(four))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(bytes: &[u8], piece: usize) -> Result<Vec<Tag>, FlvError> {
        let mut reader = FlvReader::new(1000);
        let mut tags = Vec::new();
        for mut input in bytes.chunks(piece) {
            while let Some(tag) = reader.read(&mut input)? {
                tags.push(tag);
            }
        }
        Ok(tags)
    }

    #[test]
    fn a_unit_becomes_a_tag() {
        let unit = Unit {
            track: Track::Video,
            dts_ms: 0x1_0234_5678,
            cts_ms: -2,
            keyframe: true,
            discontinuity: false,
            payload: b"abc".as_slice().into(),
        };
        let mut out = Vec::new();
        write_unit(&unit, None, &mut out);
        assert_eq!(out, b"\x09\0\0\x08\x34\x56\x78\x02\0\0\0\x17\x01\xff\xff\xfeabc\0\0\0\x13");
    }

    #[test]
    fn nonsense_is_told() {
        assert_eq!(read_all(b"<!doctype html>", 4), Err(FlvError::Signature));
        assert_eq!(read_all(b"FLV\x01\x05\xff\0\0\0", 4), Err(FlvError::Header(0xff00_0000)));
        let mut bytes = Vec::new();
        write_header(true, true, &mut bytes);
        assert_eq!(bytes, b"FLV\x01\x05\0\0\0\x09\0\0\0\0");
        let long = [&bytes[..], b"\x09\xff\0\0\0\0\0\0\0\0\0"].concat();
        assert_eq!(read_all(&long, 100), Err(FlvError::Long { length: 0xff_0000, most: 1000 }));
        let wrong = [&bytes[..], b"\x09\0\0\x01\0\0\0\0\0\0\0x\0\0\0\x0d"].concat();
        assert_eq!(read_all(&wrong, 100), Err(FlvError::Trailer { length: 12, said: 13 }));
    }

    fn tags() -> impl Strategy<Value = Vec<Tag>> {
        let kind = prop_oneof![Just(TagKind::Audio), Just(TagKind::Video), Just(TagKind::Script)];
        let tag = (kind, any::<u32>(), prop::collection::vec(any::<u8>(), 0..300));
        prop::collection::vec(tag.prop_map(|(kind, timestamp_ms, payload)| Tag { kind, timestamp_ms, payload }), 0..9)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(tags in tags(), piece in 1usize..400) {
            let mut bytes = Vec::new();
            write_header(true, true, &mut bytes);
            for tag in &tags {
                write_tag(tag.kind, tag.timestamp_ms, &tag.payload, &mut bytes);
            }
            prop_assert_eq!(read_all(&bytes, piece), Ok(tags));
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1usize..50) {
            let _ = read_all(&bytes, piece);
            let _ = read_all(&[b"FLV\x01\x05\0\0\0\x09\0\0\0\0", &bytes[..]].concat(), piece);
        }
    }
}
