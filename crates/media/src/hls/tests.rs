//! Streams of every shape into playlists, and what the checker says of them.

use super::*;
use crate::avc::StartCodes;
use crate::ts::Demuxer;
use crate::{AacConfig, AvcConfig, Config, Track, Unit};
use proptest::prelude::*;
use std::sync::Arc;

fn avc() -> Config {
    Config::Avc(Arc::new(AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration")))
}

fn aac() -> Config {
    Config::Aac(Arc::new(AacConfig::low_complexity(48_000, 2).expect("a configuration")))
}

fn picture(dts_ms: u64, keyframe: bool) -> Unit {
    let payload = b"\0\0\0\x03\x65ab".as_slice().into();
    Unit { track: Track::Video, dts_ms, cts_ms: 0, keyframe, discontinuity: false, payload }
}

fn sound(dts_ms: u64) -> Unit {
    Unit { track: Track::Audio, ..picture(dts_ms, true) }
}

/// A server's part: segments into a window, each playlist through the checker.
struct Stream {
    segmenter: Segmenter,
    window: Option<Window<Vec<u8>>>,
    checker: Checker,
    demuxer: Demuxer,
    segments: Vec<SegmentInfo>,
    /// Pictures in segments.
    pictures: usize,
    text: String,
}

impl Stream {
    fn new(settings: Settings) -> Self {
        Self {
            segmenter: Segmenter::new(settings),
            window: None,
            checker: Checker::default(),
            demuxer: Demuxer::new(100_000),
            segments: Vec::new(),
            pictures: 0,
            text: String::new(),
        }
    }

    fn config(&mut self, config: &Config) {
        let ended = self.segmenter.config(config);
        self.take(ended);
    }

    fn unit(&mut self, unit: &Unit) {
        let ended = self.segmenter.unit(unit);
        self.take(ended);
    }

    fn end(&mut self) {
        let ended = self.segmenter.end();
        self.take(ended);
    }

    fn take(&mut self, segment: Option<Segment>) {
        let Some(Segment { info, bytes }) = segment else { return };
        let mut input = &bytes[..];
        let mut all = Vec::new();
        while let Some(pes) = self.demuxer.read(&mut input).expect("a stream") {
            all.push(pes);
        }
        while let Some(pes) = self.demuxer.finish().expect("a stream") {
            all.push(pes);
        }
        self.pictures += all.iter().filter(|pes| pes.track == Track::Video).count();
        if info.independent
            && let Some(first) = all.iter().find(|pes| pes.track == Track::Video)
        {
            assert_eq!(StartCodes::new(&first.payload).map(|nal| nal[0] & 31).collect::<Vec<_>>(), [9, 7, 8, 5]);
        }
        let target_s = self.segmenter.target_duration_s().expect("a target duration");
        let window = self.window.get_or_insert_with(|| Window::new(target_s, 6));
        for gone in window.push(info, bytes) {
            assert!(!gone.is_empty());
        }
        self.text.clear();
        window.write(|info, out| out.push_str(&format!("{}.ts", info.number)), &mut self.text);
        assert_eq!(self.checker.check(&self.text), [], "{}", self.text);
        self.segments.push(info);
    }
}

#[test]
fn a_publisher_with_fewer_keyframes_has_each_begin_a_segment() {
    let mut stream = Stream::new(Settings { target_ms: 1_000, ..Settings::default() });
    stream.config(&avc());
    let (before, after) = (100, 400);
    (0..before).for_each(|at| stream.unit(&picture(at * 40, at % 25 == 0)));
    let ended = stream.segmenter.restart();
    stream.take(ended);
    stream.config(&avc());
    // The target duration of a second stays, and a keyframe comes each two or three seconds: not all segments can begin with one.
    let keyframes: Vec<u64> = vec![100, 150, 225, 275, 350, 400, 475];
    (before..before + after).for_each(|at| stream.unit(&picture(at * 40, keyframes.contains(&at))));
    stream.end();
    assert_eq!(stream.pictures as u64, before + after);
    assert_eq!(stream.segmenter.target_duration_s(), Some(1));
    let independent = stream.segments.iter().filter(|segment| segment.independent).count();
    assert_eq!(independent, 4 + keyframes.len(), "{:?}", stream.segments);
    assert!(stream.segments.len() > independent);
}

#[test]
fn segments_begin_at_keyframes() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    stream.config(&aac());
    // A keyframe each second, 25 pictures a second, sound a little ahead and from before the first keyframe.
    stream.unit(&sound(900));
    stream.unit(&picture(960, false));
    for at in 0..1000 {
        stream.unit(&picture(1000 + at * 40, at % 25 == 0));
        stream.unit(&sound(1000 + at * 40));
        stream.unit(&sound(1021 + at * 40));
    }
    stream.end();
    // The first one is there after one keyframe interval; then two each.
    let durations: Vec<u64> = stream.segments.iter().map(|segment| segment.duration_ms).collect();
    assert_eq!(durations[..3], [1000, 2000, 2000]);
    // The last frame of sound ends 2 ms behind the last picture.
    assert_eq!(durations.iter().sum::<u64>(), 40_002);
    assert!(stream.segments.iter().all(|segment| segment.independent && !segment.discontinuity));
    assert_eq!(stream.pictures, 1000);
    let last = stream.segments.len() - 1;
    assert_eq!(
        stream.text,
        format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{}\n#EXT-X-INDEPENDENT-SEGMENTS\n",
            last - 5
        ) + &(last - 5..last).map(|number| format!("#EXTINF:2.000,\n{number}.ts\n")).collect::<String>()
            + &format!("#EXTINF:1.002,\n{last}.ts\n")
    );
}

#[test]
fn segments_that_left_the_playlist_stay_a_while() {
    let mut window = Window::new(2, 3);
    let info = |number| SegmentInfo { number, duration_ms: 2000, discontinuity: false, independent: true };
    for number in 0..4 {
        assert!(window.push(info(number), number).is_empty());
    }
    // Number 0 was listed among four: it stays for its own two seconds and their eight.
    for number in 4..8 {
        assert!(window.push(info(number), number).is_empty());
        assert_eq!(window.get(0), Some(&0));
    }
    assert_eq!(window.push(info(8), 8), [0]);
    assert_eq!((window.get(0), window.get(1), window.get(8), window.get(9)), (None, Some(&1), Some(&8), None));
}

#[test]
fn endless_pictures_are_cut_without_a_keyframe() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    for at in 0..1000 {
        stream.unit(&picture(1000 + at * 40, at == 0 || at == 50));
    }
    stream.end();
    assert_eq!(stream.segmenter.target_duration_s(), Some(2));
    assert_eq!(stream.pictures, 1000);
    assert!(stream.segments.iter().all(|segment| segment.duration_ms < 2500 && !segment.discontinuity));
    assert!(!stream.text.contains("INDEPENDENT"));
    // And with no second keyframe at all there is a playlist nevertheless.
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    (0..1000).for_each(|at| stream.unit(&picture(1000 + at * 40, at == 0)));
    assert_eq!(stream.segments[0].duration_ms, 10_000);
}

#[test]
fn a_publisher_that_comes_back_makes_a_discontinuity() {
    let mut stream = Stream::new(Settings::default());
    for publisher in 0..4u64 {
        stream.config(&avc());
        for at in 0..130 {
            stream.unit(&picture(publisher * 6000 + at * 40, at % 50 == 0));
        }
        let ended = stream.segmenter.restart();
        stream.take(ended);
    }
    let told: Vec<u64> = stream.segments.iter().filter(|segment| segment.discontinuity).map(|s| s.number).collect();
    assert_eq!(told, [3, 6, 9]);
    assert!(stream.text.contains("#EXT-X-DISCONTINUITY-SEQUENCE:1\n"), "{}", stream.text);
    assert_eq!(stream.pictures, 4 * 130);
}

#[test]
fn sound_alone_is_cut_by_time() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&aac());
    (0..1000).for_each(|at| stream.unit(&sound(1000 + at * 64 / 3)));
    assert!(stream.segments.iter().skip(1).all(|segment| (1980..2025).contains(&segment.duration_ms)));
}

#[test]
fn playlists_of_others_are_read() {
    let text =
        "#EXTM3U\r\n#EXT-X-TARGETDURATION:10\r\n\r\n#EXTINF:9.009,a title\r\nhttp://a/1.ts\r\n#EXT-X-ENDLIST\r\n";
    let Ok(Playlist::Media(media)) = Playlist::parse(text) else { panic!("a media playlist") };
    assert_eq!((media.version, media.target_duration_s, media.ended), (1, 10, true));
    assert_eq!(media.entries[0].duration_us, 9_009_000);
    let mut text = String::new();
    write_multivariant(3_000_000, &[avc(), aac()], "x/index.m3u8", &mut text);
    assert!(text.contains("CODECS=\"avc1.42C01E,mp4a.40.2\""), "{text}");
    let variant = Variant { uri: "x/index.m3u8".into(), bandwidth: 3_000_000 };
    assert_eq!(Playlist::parse(&text), Ok(Playlist::Multivariant(vec![variant])));
    assert_eq!(Playlist::parse("<html>"), Err(ParseError::Begin));
    assert_eq!(Playlist::parse("#EXTM3U\n#EXT-X-TARGETDURATION:1\na.ts"), Err(ParseError::NoDuration(3)));
    assert_eq!(Playlist::parse("#EXTM3U\n"), Err(ParseError::NoTarget));
}

/// What the checker says of the second of two playlists: numbers, discontinuity sequence, and lines.
fn second(first: (u64, u64, &str), next: (u64, u64, &str)) -> Vec<Violation> {
    let text = |(number, discontinuities, lines): (u64, u64, &str)| {
        format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{number}\n\
             #EXT-X-DISCONTINUITY-SEQUENCE:{discontinuities}\n{}",
            lines
                .split(' ')
                .map(|line| match line.strip_prefix('!') {
                    Some(name) => format!("#EXT-X-DISCONTINUITY\n#EXTINF:2.0,\n{name}\n"),
                    None => format!("#EXTINF:2.0,\n{line}\n"),
                })
                .collect::<String>()
        )
    };
    let mut checker = Checker::default();
    assert_eq!(checker.check(&text(first)), []);
    checker.check(&text(next))
}

#[test]
fn broken_rules_are_named() {
    assert_eq!(second((5, 0, "!a b c d"), (6, 1, "b c d e")), []);
    assert_eq!(second((5, 0, "a b c d"), (9, 0, "e f g h")), []);
    assert_eq!(second((5, 0, "!a b c d"), (6, 0, "b c d e")), [Violation::Discontinuity { expected: 1, found: 0 }]);
    assert_eq!(second((5, 0, "a b c d"), (6, 0, "b x d e")), [Violation::Changed(7)]);
    assert_eq!(second((5, 0, "a b c d"), (6, 0, "b c d")), []);
    assert_eq!(second((5, 0, "a b c d"), (5, 0, "a b c")), [Violation::Shrunk(9, 8)]);
    assert_eq!(second((5, 0, "a b c d"), (4, 0, "z a b c d")), [Violation::SequenceBack(5, 4)]);
    assert_eq!(second((5, 0, "a b"), (6, 0, "b c")), [Violation::Short(4000)]);
    let mut checker = Checker::default();
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.5,\na.ts\n#EXT-X-ENDLIST\n";
    let longer = Violation::Longer { number: 0, duration_us: 2_500_000, target_s: 2 };
    assert_eq!(checker.check(text), [Violation::Version(1), longer]);
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:2,\na.ts\n#EXTINF:2,\nb.ts\n";
    assert_eq!(checker.check(text), [Violation::AfterEnd, Violation::Target(2, 3), Violation::Changed(0)]);
    assert_eq!(checker.check("\u{7}"), [Violation::Character, Violation::Parse(ParseError::Begin)]);
}

proptest! {
    /// Whatever comes when, no playlist breaks a rule, and from the first keyframe on each picture is in one segment.
    #[test]
    fn every_stream_makes_playlists(
        steps in prop::collection::vec((1u64..400, any::<bool>(), 0u32..100), 1..200),
        gap in 0u64..30_000,
        video in any::<bool>(),
    ) {
        let mut stream = Stream::new(Settings::default());
        stream.config(&aac());
        if video {
            stream.config(&avc());
        }
        let (mut ms, mut pictures, mut begun) = (1000, 0, false);
        for (at, (step, is_video, chance)) in steps.into_iter().enumerate() {
            ms += step + if at == 100 { gap } else { 0 };
            let keyframe = chance < 5;
            let mut unit = if is_video && video { picture(ms, keyframe) } else { sound(ms) };
            unit.discontinuity = chance == 99;
            begun |= is_video && video && keyframe;
            pictures += usize::from(is_video && video && begun);
            stream.unit(&unit);
        }
        stream.end();
        prop_assert_eq!(stream.pictures, pictures);
    }

    #[test]
    fn nothing_panics(text in "(#EXTM3U\n)?((#EXT-X-(TARGETDURATION|MEDIA-SEQUENCE|DISCONTINUITY-SEQUENCE|VERSION):[0-9]{0,21}|#EXT-X-DISCONTINUITY|#EXTINF:[0-9.e]{0,9},|#EXT-X-STREAM-INF:[A-Z=\",]{0,20}|[a-z.]{0,5}|.{0,9})\n){0,12}") {
        let mut checker = Checker::default();
        for text in [text.as_str(), "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1,\na\n", &text] {
            checker.check(text);
        }
    }
}
