//! The format of what was received, by its first bytes, so that input of another kind is named for what it is.

/// Bytes that are enough to tell formats apart: two packets of MPEG-TS begin in them.
pub(crate) const LOOKED_AT: usize = 189;

/// The name of an HLS playlist.
pub(crate) const PLAYLIST: &str = "an HLS playlist";

/// What bytes begin with, in words; `None` where that is not known.
///
/// Source: FLV: Adobe's 10.1, E.2; MPEG-TS: ISO/IEC 13818-1 §2.4.3; ISO base media: ISO/IEC 14496-12 §4.2; HLS: RFC 8216 §4.3.1.1;
/// WebVTT: W3C §4.1; Matroska: RFC 8794 §11.2.1; ADTS: ISO/IEC 14496-3 §1.A.2.2; program stream: ISO/IEC 13818-1 §2.5.3.4; Ogg: RFC 3533
/// §6; FLAC: RFC 9639 §6; JPEG: ITU-T T.81 §B.1.1.3; PNG: ISO/IEC 15948 §5.2.
pub(crate) fn name(bytes: &[u8]) -> Option<&'static str> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins = |with: &[u8]| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    let xml = begins(b"<?xml");
    Some(match bytes {
        [] => "empty",
        [b'F', b'L', b'V', ..] => "FLV",
        [0x47, rest @ ..] if rest.get(187).is_none_or(|&next| next == 0x47) => "MPEG-TS",
        [0x1f, 0x8b, ..] => "gzip",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "Matroska or WebM",
        [0, 0, 1, 0xba, ..] => "an MPEG program stream",
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] | [b'G', b'I', b'F', b'8', ..] => "an image",
        [b'O', b'g', b'g', b'S', ..] => "Ogg",
        [b'f', b'L', b'a', b'C', ..] => "FLAC",
        [b'I', b'D', b'3', ..] | [0xff, 0xf0..=0xff, ..] => "packed audio (ADTS or MP3)",
        [0, 0, 0, 1, ..] | [0, 0, 1, ..] => "a bare H.264 or HEVC stream",
        [_, _, _, _, kind @ ..] if is_box(kind) => "MP4",
        _ if begins(b"#EXTM3U") => PLAYLIST,
        _ if begins(b"<MPD") || xml && text.windows(4).any(|four| four == b"<MPD") => "a DASH manifest",
        _ if begins(b"<!doctype") || begins(b"<html") => "an HTML page",
        _ if xml || begins(b"<") => "XML",
        _ if begins(b"{") || begins(b"[") => "JSON",
        _ if begins(b"WEBVTT") => "WebVTT",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', ..] => "AVI",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "WAV",
        _ if begins(b"RIFF") => "RIFF",
        _ => return None,
    })
}

/// Whether the type of a top-level box of ISO base media files comes next. Source: ISO/IEC 14496-12, table 1.
fn is_box(bytes: &[u8]) -> bool {
    const TYPES: [&[u8]; 10] =
        [b"ftyp", b"styp", b"moov", b"moof", b"mdat", b"sidx", b"emsg", b"prft", b"free", b"skip"];
    bytes.get(..4).is_some_and(|found| TYPES.contains(&found))
}

/// Whether bytes are the beginning of an ISO base media file.
pub(crate) fn is_mp4(bytes: &[u8]) -> bool {
    bytes.get(4..).is_some_and(is_box)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn formats_are_named() {
        for (bytes, wanted) in [
            (&b"FLV\x01\x05"[..], Some("FLV")),
            (b"#EXTM3U\n#EXT", Some("an HLS playlist")),
            (b"\xef\xbb\xbf#EXTM3U", Some("an HLS playlist")),
            (b"<!DOCTYPE html><html>", Some("an HTML page")),
            (b"\n<html>", Some("an HTML page")),
            (b"<?xml version='1.0'?>\n<MPD xmlns=", Some("a DASH manifest")),
            (b"<?xml version='1.0'?><a>", Some("XML")),
            (b"\0\0\0\x18ftypmp42", Some("MP4")),
            (b"\0\0\0\x01\x67\x42", Some("a bare H.264 or HEVC stream")),
            (b"{\"error\":1}", Some("JSON")),
            (b"\x1a\x45\xdf\xa3", Some("Matroska or WebM")),
            (b"\0\0\x01\xba\x44", Some("an MPEG program stream")),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some("an image")),
            (b"\x89PNG\r\n", Some("an image")),
            (b"OggS\0\x02", Some("Ogg")),
            (b"RIFF\x04\0\0\0AVI LIST", Some("AVI")),
            (b"RIFF\x04\0\0\0WAVEfmt ", Some("WAV")),
            (b"RIFF\x04\0\0\0WEBP", Some("RIFF")),
            (b"G@\0\x10", Some("MPEG-TS")),
            (b"", Some("empty")),
            (b"\x93\xa2\x11\x07\xc3", None),
        ] {
            assert_eq!(name(bytes), wanted, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (name(&bytes), is_mp4(&bytes));
        }
    }
}
