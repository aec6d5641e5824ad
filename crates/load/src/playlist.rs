//! Playlists as a player uses them: where it begins, and where each segment is.
//!
//! Source: RFC 8216 §4.3, §6.3.

use crate::format;
use std::time::Duration;
use thalweg_media::hls;
use url::Url;

/// A playlist.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Playlist {
    /// Others to choose from: the first, whether its sound is in a playlist of its own, and the variables that it may import.
    Multivariant(String, bool, hls::Variables),
    /// Segments.
    Media(Media),
}

/// A media playlist.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Media {
    pub(crate) target: Duration,
    /// The number of the first segment.
    pub(crate) sequence: u64,
    pub(crate) segments: Vec<Segment>,
    /// No more will come.
    pub(crate) ended: bool,
}

/// A resource, or a range of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resource {
    /// As it is written.
    pub(crate) uri: String,
    /// The first byte and how many; `None` is all.
    pub(crate) range: Option<(u64, u64)>,
}

/// A segment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) resource: Resource,
    pub(crate) duration: Duration,
    /// The initialization section that it needs.
    pub(crate) map: Option<Resource>,
    /// The method it is encrypted by.
    pub(crate) encryption: Option<String>,
    /// It is absent: players do not ask for it.
    pub(crate) gap: bool,
}

/// The shortest target duration other than 0. Source: RFC 8216 §4.3.3.1: a whole number of seconds.
const TARGET_MIN: Duration = Duration::from_secs(1);

impl Media {
    /// Where a player begins: three target durations before the end of a live stream, so that it need not wait (§6.3.3), and at the
    /// first segment of one that has ended.
    pub(crate) fn start(&self) -> u64 {
        if self.ended {
            return self.sequence;
        }
        let (mut behind, target) = (Duration::ZERO, self.interval());
        let back = self.segments.iter().rev().take_while(|segment| {
            let counts = behind < 3 * target;
            behind += segment.duration;
            counts
        });
        self.sequence + (self.segments.len() - back.count()) as u64
    }

    /// How long a player waits for the next segment: the target duration, or what is assumed where that is 0.
    pub(crate) fn interval(&self) -> Duration {
        let longest = || self.segments.iter().map(|segment| segment.duration).max().unwrap_or_default();
        if self.target.is_zero() { longest().max(TARGET_MIN) } else { self.target }
    }

    /// The segment with this number.
    pub(crate) fn segment(&self, number: u64) -> Option<&Segment> {
        self.segments.get(usize::try_from(number.checked_sub(self.sequence)?).ok()?)
    }

    /// The number after the last.
    pub(crate) fn end(&self) -> u64 {
        self.sequence + self.segments.len() as u64
    }
}

/// Reads the playlist that `url` gave. `variables` are those of the multivariant playlist that it was found in.
///
/// # Errors
/// What it is instead, or which line of it is wrong.
pub(crate) fn parse(bytes: &[u8], url: &Url, variables: Option<&hls::Variables>) -> Result<Playlist, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| no_playlist(bytes))?;
    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    match hls::Playlist::parse_from(text, hls::Origin { multivariant: variables, query: &query }) {
        Ok((hls::Playlist::Multivariant(variants), variables)) => {
            let first = variants.into_iter().next().ok_or("a multivariant playlist without a playlist")?;
            Ok(Playlist::Multivariant(first.uri, first.separate_audio, variables))
        }
        Ok((hls::Playlist::Media(media), _)) => Ok(Playlist::Media(Media {
            target: Duration::from_secs(media.target_duration_s.into()),
            sequence: media.media_sequence,
            segments: media.entries.into_iter().map(segment).collect(),
            ended: media.ended,
        })),
        Err(hls::ParseError::Begin) => Err(no_playlist(bytes)),
        Err(error) => Err(format!("a playlist that cannot be read: {error}")),
    }
}

fn segment(entry: hls::Entry) -> Segment {
    let range = |range: hls::ByteRange| (range.start, range.len);
    Segment {
        resource: Resource { uri: entry.uri, range: entry.range.map(range) },
        duration: Duration::from_micros(entry.duration_us),
        map: entry.map.map(|uri| Resource { uri: uri.to_string(), range: entry.map_range.map(range) }),
        encryption: entry.encryption.map(|method| method.to_string()),
        gap: entry.gap,
    }
}

pub(crate) fn no_playlist(bytes: &[u8]) -> String {
    match format::name(bytes) {
        Some(format::PLAYLIST) => "a playlist that does not begin with #EXTM3U".to_owned(),
        Some(name) => format!("an answer that is no playlist: it is {name}"),
        None => "an answer that is no playlist".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<Playlist, String> {
        super::parse(bytes, &Url::parse("http://a/x.m3u8").expect("a URL"), None)
    }

    #[test]
    fn a_player_begins_three_targets_before_the_end() {
        let mut text = String::from("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:17\n");
        (0..6).for_each(|n| text += &format!("#EXTINF:2.000,\n{n}.ts?token=a\n"));
        let Ok(Playlist::Media(media)) = parse(text.as_bytes()) else { panic!("no media playlist") };
        assert_eq!((media.start(), media.end(), media.ended), (20, 23, false));
        assert_eq!(media.segment(20).map(|segment| segment.resource.uri.as_str()), Some("3.ts?token=a"));
        assert_eq!((media.segment(16), media.segment(23)), (None, None));
        let short = Media { segments: media.segments[..2].to_vec(), ..media.clone() };
        assert_eq!(short.start(), 17);
        let zero = Media { target: Duration::ZERO, ..media.clone() };
        assert_eq!((zero.start(), zero.interval()), (20, Duration::from_secs(2)), "as long as its segments");
        assert_eq!(Media { ended: true, ..media }.start(), 17, "one that has ended is played from its start");
    }

    #[test]
    fn ranges_maps_and_keys_belong_to_segments() {
        let text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"700@0\"\n\
                    #EXTINF:2,\n#EXT-X-BYTERANGE:1000@700\nall.mp4\n#EXTINF:2,\n#EXT-X-BYTERANGE:500\nall.mp4\n\
                    #EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:2,\nb.ts\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:2,\nc.ts\n#EXT-X-ENDLIST\n";
        let Ok(Playlist::Media(media)) = parse(text.as_bytes()) else { panic!("no media playlist") };
        let ranges: Vec<_> = media.segments.iter().map(|segment| segment.resource.range).collect();
        assert_eq!(ranges, [Some((700, 1_000)), Some((1_700, 500)), None, None]);
        let map = Some(Resource { uri: "all.mp4".to_owned(), range: Some((0, 700)) });
        assert!(media.segments.iter().all(|segment| segment.map == map));
        let methods: Vec<_> = media.segments.iter().map(|segment| segment.encryption.as_deref()).collect();
        assert_eq!(methods, [None, None, Some("AES-128"), None]);
    }

    #[test]
    fn the_first_variant_is_taken_and_other_texts_are_named() {
        let text = b"#EXTM3U\r\n#EXT-X-STREAM-INF:BANDWIDTH=1\r\na/index.m3u8\r\n";
        assert_eq!(
            parse(text),
            Ok(Playlist::Multivariant("a/index.m3u8".to_owned(), false, hls::Variables::default()))
        );
        for (bytes, part) in [
            (&b"<html>"[..], "it is an HTML page"),
            (b"FLV\x01\x05\0\0\0\x09\xff", "it is FLV"),
            (b"\xef\xbb\xbf#EXTM3U\n", "a playlist that does not begin with #EXTM3U"),
            (b"\n#EXTM3U\n", "a playlist that does not begin with #EXTM3U"),
            (b"#EXTM3U\n#EXT-X-TARGETDURATION:2\nno-duration.ts\n", "without #EXTINF"),
        ] {
            let error = parse(bytes).expect_err("refused");
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&[b"#EXTM3U\n", &bytes[..]].concat());
        }
    }
}
