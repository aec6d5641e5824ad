//! Playlists, as far as a player needs them: what players forgive is forgiven, unlike in `media::hls`, which checks what we make.
//!
//! Source: RFC 8216 §4.3, §6.3.

use std::time::Duration;

/// Most lines that are read of one.
const LINES_MAX: usize = 100_000;

/// A playlist.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Playlist {
    /// Others to choose from; the first.
    Multivariant(String),
    /// Segments.
    Media(Media),
}

/// A media playlist.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Media {
    pub(crate) target: Duration,
    /// The number of the first segment.
    pub(crate) sequence: u64,
    pub(crate) segments: Vec<(String, Duration)>,
    /// No more will come.
    pub(crate) ended: bool,
}

impl Media {
    /// Where a player begins: three target durations before the end, so that it need not wait (§6.3.3).
    pub(crate) fn start(&self) -> u64 {
        let mut behind = Duration::ZERO;
        let back = self.segments.iter().rev().take_while(|(_, length)| {
            let counts = behind < 3 * self.target;
            behind += *length;
            counts
        });
        self.sequence + (self.segments.len() - back.count()) as u64
    }

    /// The segment with this number.
    pub(crate) fn segment(&self, number: u64) -> Option<&(String, Duration)> {
        self.segments.get(usize::try_from(number.checked_sub(self.sequence)?).ok()?)
    }

    /// The number after the last.
    pub(crate) fn end(&self) -> u64 {
        self.sequence + self.segments.len() as u64
    }
}

/// Reads a playlist; `None` where it is none.
pub(crate) fn parse(bytes: &[u8]) -> Option<Playlist> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).take(LINES_MAX);
    if lines.next()? != "#EXTM3U" {
        return None;
    }
    let (mut media, mut length, mut variant) = (Media::default(), None, false);
    for line in lines {
        let value = |tag: &str| line.strip_prefix(tag).and_then(|rest| rest.strip_prefix(':'));
        if let Some(seconds) = value("#EXTINF") {
            let seconds: f64 = seconds.split(',').next()?.trim().parse().ok()?;
            length = Some(Duration::try_from_secs_f64(seconds).ok()?);
        } else if let Some(seconds) = value("#EXT-X-TARGETDURATION") {
            media.target = Duration::from_secs(seconds.parse::<u32>().ok()?.into());
        } else if let Some(number) = value("#EXT-X-MEDIA-SEQUENCE") {
            media.sequence = number.parse().ok()?;
        } else if line == "#EXT-X-ENDLIST" {
            media.ended = true;
        } else if value("#EXT-X-STREAM-INF").is_some() {
            variant = true;
        } else if !line.is_empty() && !line.starts_with('#') {
            if variant {
                return Some(Playlist::Multivariant(line.to_owned()));
            }
            media.segments.push((line.to_owned(), length.take()?));
        }
    }
    Some(Playlist::Media(media))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_player_begins_three_targets_before_the_end() {
        let mut text = String::from("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:17\n");
        (0..6).for_each(|n| text += &format!("#EXTINF:2.000,\n{n}.ts?token=a\n"));
        let Some(Playlist::Media(media)) = parse(text.as_bytes()) else { panic!("no media playlist") };
        assert_eq!((media.start(), media.end(), media.ended), (20, 23, false));
        assert_eq!(media.segment(20).map(|(uri, _)| uri.as_str()), Some("3.ts?token=a"));
        assert_eq!((media.segment(16), media.segment(23)), (None, None));
        let short = Media { segments: media.segments[..2].to_vec(), ..media };
        assert_eq!(short.start(), 17);
    }

    #[test]
    fn the_first_variant_is_taken_and_other_texts_are_refused() {
        let text = b"#EXTM3U\r\n#EXT-X-STREAM-INF:BANDWIDTH=1\r\na/index.m3u8\r\n";
        assert_eq!(parse(text), Some(Playlist::Multivariant("a/index.m3u8".to_owned())));
        assert_eq!(parse(b"<html>"), None);
        assert_eq!(parse(b"#EXTM3U\nno-duration.ts\n"), None);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&[b"#EXTM3U\n", &bytes[..]].concat());
        }
    }
}
