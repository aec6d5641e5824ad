//! The head of an audio or video tag's payload: the codec, and what follows. Enhanced RTMP's head becomes the same as FLV's.
//!
//! Source: Adobe's FLV 10.1, E.4.2.1 and E.4.3.1; Veovera, "Enhanced RTMP" v2.

use crate::codec::CodecId;

/// What a payload holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A configuration: a sequence header.
    Config,
    /// An access unit, shown `cts_ms` after it is decoded.
    Unit {
        /// In milliseconds.
        cts_ms: i32,
    },
    /// Nothing that is carried: the end of a sequence, a command to the player, metadata, tracks besides the first.
    Nothing,
}

/// A payload, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Body<'a> {
    pub(crate) codec: CodecId,
    pub(crate) is_keyframe: bool,
    pub(crate) content: Content,
    pub(crate) payload: &'a [u8],
}

/// H.264's number in FLV.
pub(crate) const AVC: u8 = 7;
/// AAC's number in FLV.
pub(crate) const AAC: u8 = 10;
/// MP3's number in FLV, and its number at 8 kHz.
pub(crate) const MP3: [u8; 2] = [2, 14];

/// The bit of a video tag that says that its head is Enhanced RTMP's.
const EXTENDED_VIDEO: u8 = 0x80;
/// The audio format that says that its head is Enhanced RTMP's.
const EXTENDED_AUDIO: u8 = 9;
/// A frame type: a command to the player.
const COMMAND: u8 = 5;

// Packet types of Enhanced RTMP.
const SEQUENCE_START: u8 = 0;
const CODED_FRAMES: u8 = 1;
/// Video: without composition time.
const CODED_FRAMES_X: u8 = 3;
const MULTITRACK_AUDIO: u8 = 5;
const MULTITRACK_VIDEO: u8 = 6;
/// Something more comes before the codec.
const MOD_EX: u8 = 7;

// Kinds of a packet with several tracks.
const ONE_TRACK: u8 = 0;
const MANY_TRACKS: u8 = 1;
const MANY_TRACKS_MANY_CODECS: u8 = 2;
/// The track that a packet without a track's number belongs to.
const FIRST_TRACK: u8 = 0;

/// Takes a video tag's payload apart; `None` where it ends early.
pub(crate) fn video(payload: &[u8]) -> Option<Body<'_>> {
    let (&head, rest) = payload.split_first()?;
    let frame_type = head >> 4 & 7;
    let is_keyframe = frame_type == 1;
    if head & EXTENDED_VIDEO == 0 {
        let codec = CodecId::Number(head & 0x0f);
        if frame_type == COMMAND || head & 0x0f != AVC {
            let content = if frame_type == COMMAND { Content::Nothing } else { Content::Unit { cts_ms: 0 } };
            return Some(Body { codec, is_keyframe, content, payload: rest });
        }
        let (&[kind, cts @ ..], payload) = rest.split_first_chunk::<4>()?;
        let content = match kind {
            0 => Content::Config,
            1 => Content::Unit { cts_ms: signed_24(cts) },
            _ => Content::Nothing,
        };
        return Some(Body { codec, is_keyframe, content, payload });
    }
    let (kind, rest) = packet_type(head & 0x0f, rest)?;
    if frame_type == COMMAND {
        return Some(nothing());
    }
    let first = if kind == MULTITRACK_VIDEO { first_track(rest) } else { Some(only_track(kind, rest)?) };
    let Some((kind, letters, rest)) = first else { return Some(nothing()) };
    let (content, payload) = match kind {
        SEQUENCE_START => (Content::Config, rest),
        CODED_FRAMES if &letters == b"avc1" => {
            let (&cts, payload) = rest.split_first_chunk::<3>()?;
            (Content::Unit { cts_ms: signed_24(cts) }, payload)
        }
        CODED_FRAMES | CODED_FRAMES_X => (Content::Unit { cts_ms: 0 }, rest),
        _ => (Content::Nothing, rest),
    };
    Some(Body { codec: number_of(letters), is_keyframe, content, payload })
}

/// Takes an audio tag's payload apart; `None` where it ends early.
pub(crate) fn audio(payload: &[u8]) -> Option<Body<'_>> {
    let (&head, rest) = payload.split_first()?;
    let unit = Content::Unit { cts_ms: 0 };
    if head >> 4 != EXTENDED_AUDIO {
        let codec = CodecId::Number(head >> 4);
        if head >> 4 != AAC {
            return Some(Body { codec, is_keyframe: true, content: unit, payload: rest });
        }
        let (&kind, payload) = rest.split_first()?;
        let content = if kind == 0 { Content::Config } else { unit };
        return Some(Body { codec, is_keyframe: true, content, payload });
    }
    let (kind, rest) = packet_type(head & 0x0f, rest)?;
    let first = if kind == MULTITRACK_AUDIO { first_track(rest) } else { Some(only_track(kind, rest)?) };
    let Some((kind, letters, payload)) = first else { return Some(nothing()) };
    let content = match kind {
        SEQUENCE_START => Content::Config,
        CODED_FRAMES => unit,
        _ => Content::Nothing,
    };
    Some(Body { codec: number_of(letters), is_keyframe: true, content, payload })
}

/// A track's packet type, the letters of its codec, and its payload.
type TrackPart<'a> = (u8, [u8; 4], &'a [u8]);

/// The track of a packet that has one, and no number of it.
fn only_track(kind: u8, rest: &[u8]) -> Option<TrackPart<'_>> {
    four_cc(rest).map(|(letters, rest)| (kind, letters, rest))
}

/// The first track of a packet with track numbers, `None` where it is not in it or is cut off. The other tracks are passed over:
/// they have the content of the first one in another quality or language.
fn first_track(rest: &[u8]) -> Option<TrackPart<'_>> {
    let (&kinds, mut rest) = rest.split_first()?;
    let (layout, kind) = (kinds >> 4, kinds & 0x0f);
    let mut letters = [0; 4];
    if layout != MANY_TRACKS_MANY_CODECS {
        (letters, rest) = four_cc(rest)?;
    }
    loop {
        if layout == MANY_TRACKS_MANY_CODECS {
            (letters, rest) = four_cc(rest)?;
        }
        let (&number, after) = rest.split_first()?;
        let (part, after) = match layout {
            ONE_TRACK => (after, &[][..]),
            MANY_TRACKS | MANY_TRACKS_MANY_CODECS => {
                let (&[high, middle, low], after) = after.split_first_chunk()?;
                after.split_at_checked(u32::from_be_bytes([0, high, middle, low]) as usize)?
            }
            _ => return None,
        };
        if number == FIRST_TRACK {
            return Some((kind, letters, part));
        }
        rest = after;
    }
}

fn four_cc(bytes: &[u8]) -> Option<([u8; 4], &[u8])> {
    bytes.split_first_chunk().map(|(&letters, rest)| (letters, rest))
}

/// The packet type behind what modifies it, which is passed over.
fn packet_type(mut kind: u8, mut rest: &[u8]) -> Option<(u8, &[u8])> {
    while kind == MOD_EX {
        let (&short, after) = rest.split_first()?;
        let mut length = usize::from(short) + 1;
        rest = after;
        if length == 256 {
            let (&long, after) = rest.split_first_chunk::<2>()?;
            length = usize::from(u16::from_be_bytes(long)) + 1;
            rest = after;
        }
        let (&next, after) = rest.get(length..)?.split_first()?;
        (kind, rest) = (next & 0x0f, after);
    }
    Some((kind, rest))
}

/// What is carried has a number, whichever way it is named.
const fn number_of(letters: [u8; 4]) -> CodecId {
    match &letters {
        b"avc1" => CodecId::Number(AVC),
        b"mp4a" => CodecId::Number(AAC),
        b".mp3" => CodecId::Number(MP3[0]),
        _ => CodecId::FourCc(letters),
    }
}

const fn nothing() -> Body<'static> {
    Body { codec: CodecId::Number(0), is_keyframe: false, content: Content::Nothing, payload: &[] }
}

/// 24 bits with a sign.
const fn signed_24(bytes: [u8; 3]) -> i32 {
    i32::from_be_bytes([bytes[0], bytes[1], bytes[2], 0]) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body<'a>(codec: CodecId, is_keyframe: bool, content: Content, payload: &'a [u8]) -> Option<Body<'a>> {
        Some(Body { codec, is_keyframe, content, payload })
    }

    #[test]
    fn both_heads_say_the_same() {
        let avc = CodecId::Number(AVC);
        let unit = Content::Unit { cts_ms: -2 };
        for head in [&b"\x17\x01\xff\xff\xfeab"[..], b"\x91avc1\xff\xff\xfeab", b"\x97\x01xy\x01avc1\xff\xff\xfeab"] {
            assert_eq!(video(head), body(avc, true, unit, b"ab"), "{head:?}");
        }
        assert_eq!(video(b"\xa3avc1ab"), body(avc, false, Content::Unit { cts_ms: 0 }, b"ab"));
        assert_eq!(video(b"\x90avc1ab"), body(avc, true, Content::Config, b"ab"));
        assert_eq!(video(b"\x92avc1").map(|body| body.content), Some(Content::Nothing));
        assert_eq!(video(b"\x57\x00").map(|body| body.content), Some(Content::Nothing));
        assert_eq!(video(b"\x96\x00").map(|body| body.content), Some(Content::Nothing), "a further track");
        assert_eq!(video(b"\x93hvc1ab"), body(CodecId::FourCc(*b"hvc1"), true, Content::Unit { cts_ms: 0 }, b"ab"));
        let aac = CodecId::Number(AAC);
        for head in [&b"\xaf\0\x12\x10"[..], b"\x90mp4a\x12\x10"] {
            assert_eq!(audio(head), body(aac, true, Content::Config, b"\x12\x10"), "{head:?}");
        }
        for head in [&b"\x2fab"[..], b"\x91.mp3ab"] {
            let mp3 = CodecId::Number(MP3[0]);
            assert_eq!(audio(head), body(mp3, true, Content::Unit { cts_ms: 0 }, b"ab"), "{head:?}");
        }
        for cut in [&b""[..], b"\x17", b"\x17\x01\0\0", b"\x90hvc", b"\x97\x05xy", b"\x97\xff\x01"] {
            assert_eq!(video(cut), None, "{cut:?}");
        }
    }

    #[test]
    fn the_first_of_several_tracks_is_taken() {
        let (avc, aac) = (CodecId::Number(AVC), CodecId::Number(AAC));
        // One track; two of one codec, with their lengths; two of two codecs.
        let many = b"\x96\x11avc1\x01\0\0\x05\0\0\0xy\0\0\0\x05\xff\xff\xfeab";
        let codecs = b"\x96\x21hvc1\x01\0\0\x02xyavc1\0\0\0\x05\xff\xff\xfeab";
        for packet in [&b"\x96\x01avc1\0\xff\xff\xfeab"[..], many, codecs] {
            assert_eq!(video(packet), body(avc, true, Content::Unit { cts_ms: -2 }, b"ab"), "{packet:?}");
        }
        assert_eq!(video(b"\x96\x03hvc1\0ab"), video(b"\x93hvc1ab"));
        assert_eq!(audio(b"\x95\x00mp4a\0\x12\x10"), body(aac, true, Content::Config, b"\x12\x10"));
        assert_eq!(audio(b"\x95\x01Opus\x02ab").map(|body| body.content), Some(Content::Nothing));
        for cut in [&b"\x96\x01avc"[..], b"\x96\x11avc1\0\0\0\x05ab", b"\x96\x21avc1", b"\x96\x31avc1\0"] {
            assert_eq!(video(cut).map(|body| body.content), Some(Content::Nothing), "{cut:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            for taken in [video(&bytes), audio(&bytes)].into_iter().flatten() {
                prop_assert!(taken.payload.len() < bytes.len());
            }
        }
    }
}
