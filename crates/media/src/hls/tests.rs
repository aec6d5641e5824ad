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
        self.segmenter.config(config);
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
        let Some(Segment { info, bytes, .. }) = segment else { return };
        let mut input = &bytes[..];
        let mut all = Vec::new();
        while let Some(pes) = self.demuxer.read(&mut input).expect("a stream") {
            all.push(pes);
        }
        while let Some(pes) = self.demuxer.finish().expect("a stream") {
            all.push(pes);
        }
        self.pictures += all.iter().filter(|pes| pes.track == Track::Video).count();
        // Not the first packets: sound that belongs before the picture may be ahead of it.
        if let Some(first) = all.iter().find(|pes| pes.track == Track::Video) {
            assert!(first.random_access, "segment {} does not begin with a keyframe", info.number);
            assert_eq!(StartCodes::new(&first.payload).map(|nal| nal[0] & 31).collect::<Vec<_>>(), [9, 7, 8, 5]);
        }
        assert_eq!(all.iter().filter(|pes| pes.track == Track::Video).count() as u32, info.pictures);
        assert_eq!(bytes.len() as u64, info.bytes);
        let target_s = self.segmenter.target_duration_s().expect("a target duration");
        let window = self.window.get_or_insert_with(|| Window::new(target_s, 6));
        for gone in window.push(info, bytes) {
            assert!(!gone.is_empty());
        }
        self.text.clear();
        window.write(&self.segmenter.container(), &mut self.text);
        let wrong = self.checker.check(&self.text);
        assert_eq!(wrong, [], "{}", self.text);
        self.segments.push(info);
    }
}

/// What a stream of pictures, 40 ms each and with keyframes at these moments, is divided into, in milliseconds.
fn divided(stream: &mut Stream, begin_ms: u64, end_ms: u64, keyframes_ms: &[u64]) -> Vec<u64> {
    let before = stream.segments.len();
    for at in (begin_ms..end_ms).step_by(40) {
        stream.unit(&picture(at, keyframes_ms.contains(&at)));
    }
    stream.segments[before..].iter().map(|segment| segment.duration_ms).collect()
}

#[test]
fn announced_sound_that_comes_behind_the_first_keyframe_is_in_the_first_segment() {
    let mut stream = Stream::new(Settings::default());
    stream.segmenter.announce_sound();
    stream.config(&avc());
    divided(&mut stream, 0, 120, &[0]);
    stream.config(&Config::Mp3(crate::Mp3Config::parse(b"\xff\xfb\x90\x64abc").expect("a configuration")));
    stream.unit(&Unit { payload: b"\xff\xfb\x90\x64abc".as_slice().into(), ..sound(0) });
    divided(&mut stream, 120, 1_000, &[]);
    let ended = stream.segmenter.unit(&picture(1_000, true)).expect("a segment");
    assert!(ended.has_sound, "sound is in the first one");
    stream.take(Some(ended));
    let first = stream.segments[0];
    assert_eq!((first.number, first.duration_ms, first.pictures, first.discontinuity), (0, 1_000, 25, false));
}

#[test]
fn irregular_keyframes_raise_the_target_duration() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    let keyframes = [1_000, 3_000, 5_000, 5_200, 13_000, 21_000, 23_000, 25_000, 27_000];
    let durations = divided(&mut stream, 1_000, 28_000, &keyframes);
    // At 5,200 the target duration has not passed: that keyframe is within a segment.
    assert_eq!(durations, [2_000, 2_000, 8_000, 8_000, 2_000, 2_000, 2_000]);
    stream.end();
    assert_eq!(stream.pictures, 675);
    let window = stream.window.as_ref().expect("a window");
    assert_eq!(window.target_duration_s(), 8, "it does not fall again");
    assert!(stream.text.contains("#EXT-X-TARGETDURATION:8\n#EXT-X-MEDIA-SEQUENCE:1\n"), "{}", stream.text);
}

#[test]
fn a_publisher_with_fewer_keyframes_has_each_begin_a_segment() {
    let mut stream = Stream::new(Settings { target_ms: 1_000, ..Settings::default() });
    stream.config(&avc());
    let keyframes: Vec<u64> = (0..5).map(|at| at * 1_000).collect();
    assert_eq!(divided(&mut stream, 0, 4_000, &keyframes), [1_000; 3]);
    let ended = stream.segmenter.restart();
    stream.take(ended);
    stream.config(&avc());
    assert_eq!(divided(&mut stream, 4_000, 11_000, &[4_000, 6_000, 9_000]), [2_000, 3_000]);
    stream.end();
    assert_eq!(stream.pictures, 275);
    let discontinuities = stream.segments.iter().filter(|segment| segment.discontinuity).count();
    assert_eq!(discontinuities, 1);
    assert_eq!(stream.window.as_ref().map(Window::target_duration_s), Some(3));
}

#[test]
fn what_cannot_be_held_is_in_no_segment() {
    for settings in [
        Settings { longest_ms: 4_000, ..Settings::default() },
        Settings { bytes_max: 120 * 188, ..Settings::default() },
    ] {
        let mut stream = Stream::new(settings);
        stream.config(&avc());
        let durations = divided(&mut stream, 0, 16_040, &[0, 2_000, 12_000, 14_000, 16_000]);
        assert_eq!(durations[0], 2_000);
        // The long group of pictures ends where the bound is, and the next segment says that something is missing.
        assert!((2_000..=6_000).contains(&durations[1]), "{durations:?}");
        assert_eq!(durations[2..], [2_000, 2_000], "{durations:?}");
        let told: Vec<bool> = stream.segments.iter().map(|segment| segment.discontinuity).collect();
        assert_eq!(told, [false, false, true, false]);
        assert!(stream.pictures < 300 && stream.segments.iter().all(|segment| segment.bytes < 64_000));
    }
}

#[test]
fn a_gap_lengthens_no_segment() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    let durations = divided(&mut stream, 0, 4_000, &[0, 2_000]);
    assert_eq!(durations, [2_000]);
    assert_eq!(divided(&mut stream, 12_000, 16_040, &[12_000, 14_000, 16_000]), [2_000; 3]);
    let told: Vec<bool> = stream.segments.iter().map(|segment| segment.discontinuity).collect();
    assert_eq!(told, [false, false, true, false]);
    // A picture each three seconds is no gap.
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    (0..10).for_each(|at| stream.unit(&picture(at * 3_000, true)));
    assert!(stream.segments.iter().all(|segment| segment.duration_ms == 3_000 && !segment.discontinuity));
}

/// Sound from 1,000 ms on, video from `video_ms` on, until 20 s; the tracks of each segment and its duration.
fn joined(announced: bool, video_ms: u64) -> (Vec<(bool, u64)>, Stream) {
    let mut stream = Stream::new(Settings::default());
    if announced {
        stream.segmenter.announce_video();
    }
    stream.config(&aac());
    for at in (1_000..20_000).step_by(20) {
        if at == video_ms {
            stream.config(&avc());
        }
        if at >= video_ms && at % 40 == 0 {
            stream.unit(&picture(at, (at - video_ms).is_multiple_of(1_000)));
        }
        stream.unit(&sound(at + 1));
    }
    stream.end();
    (stream.segments.iter().map(|segment| (segment.pictures > 0, segment.duration_ms)).collect(), stream)
}

#[test]
fn the_first_segment_waits_for_video() {
    // Announced, as late as the keyframe is; not announced, within the bound.
    for (announced, video_ms) in [(true, 2_000), (true, 12_000), (false, 1_040), (false, 2_880)] {
        let (segments, stream) = joined(announced, video_ms);
        assert!(segments.iter().all(|&(has_video, _)| has_video), "{video_ms}: {segments:?}");
        assert!(stream.segments.iter().all(|segment| !segment.discontinuity));
        let codecs: Vec<String> = stream.segmenter.configs().map(Config::codec).collect();
        assert_eq!(codecs, ["avc1.42C01E", "mp4a.40.2"]);
    }
    // Neither: sound alone, from its beginning on, and with video, when it comes, a discontinuity.
    let (segments, stream) = joined(false, 8_000);
    assert_eq!(segments[..4], [(false, 2_000), (false, 1_980), (false, 1_980), (false, 1_039)]);
    assert!(segments[4..].iter().all(|&(has_video, _)| has_video), "{segments:?}");
    let told: Vec<u64> = stream.segments.iter().filter(|segment| segment.discontinuity).map(|s| s.number).collect();
    assert_eq!(told, [4]);
    // Announced, and it never comes.
    let mut stream = Stream::new(Settings::default());
    stream.segmenter.announce_video();
    stream.config(&aac());
    (0..2_000).for_each(|at| stream.unit(&sound(at * 20)));
    assert!(stream.segments.len() > 8 && stream.segments.iter().all(|segment| segment.duration_ms <= 2_000));
}

#[test]
fn sound_that_comes_late_interrupts_no_video() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    for at in (0..20_000).step_by(40) {
        stream.unit(&picture(at, at % 4_000 == 0));
        if at == 9_000 {
            stream.config(&aac());
        }
        if at >= 9_000 {
            stream.unit(&sound(at + 1));
        }
    }
    stream.end();
    assert_eq!(stream.pictures, 500, "no picture is missing");
    let told: Vec<u64> = stream.segments.iter().filter(|segment| segment.discontinuity).map(|s| s.number).collect();
    assert_eq!(told, [3], "it begins with the keyframe at 12 s");
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
    assert!(stream.segments.iter().all(|segment| !segment.discontinuity));
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
    let info = |number| SegmentInfo {
        number,
        duration_ms: 2000,
        discontinuity: false,
        bytes: 1,
        pictures: 50,
        independent: true,
        continued: true,
        init: None,
    };
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

/// A container whose segments need an initialization section: the number of its tracks.
#[derive(Debug, Default)]
struct Boxes(u8);

impl SegmentFormat for Boxes {
    const CONTAINER: Container = Container { extension: "m4s", media_type: "video/mp4", init_extension: Some("mp4") };

    fn config(&mut self, _: &Config) {
        self.0 += 1;
    }

    fn clear(&mut self) {
        self.0 = 0;
    }

    fn init(&self) -> Option<Vec<u8>> {
        Some(vec![self.0])
    }

    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn unit(&mut self, unit: &Unit, out: &mut Vec<u8>) {
        out.extend_from_slice(&unit.payload);
    }

    fn flush(&mut self, _: &mut Vec<u8>) {}
}

#[test]
fn an_initialization_section_is_listed_before_the_segments_that_need_it() {
    let mut segmenter = Segmenter::<Boxes>::with_format(Settings::default());
    let mut window = Window::new(2, 6);
    let mut inits = Vec::new();
    for publisher in 0..2u64 {
        segmenter.config(&avc());
        for at in 0..130 {
            let ended = segmenter.unit(&picture(publisher * 6_000 + at * 40, at % 50 == 0));
            inits.extend(ended.into_iter().map(|segment| (window.push(segment.info, ()), segment.init)));
        }
        inits.extend(segmenter.restart().map(|segment| (window.push(segment.info, ()), segment.init)));
    }
    let inits: Vec<Option<Vec<u8>>> = inits.into_iter().map(|(_, init)| init).collect();
    assert_eq!(inits, [Some(vec![1]), None, None, Some(vec![1]), None, None]);
    let mut text = String::new();
    window.write(&segmenter.container(), &mut text);
    assert_eq!(Checker::default().check(&text), [], "{text}");
    let lines = |tag: &str| text.lines().filter(|line| line.starts_with(tag)).collect::<Vec<_>>();
    assert_eq!(lines("#EXT-X-VERSION"), ["#EXT-X-VERSION:6"]);
    assert_eq!(lines("#EXT-X-MAP"), ["#EXT-X-MAP:URI=\"init-0.mp4\"", "#EXT-X-MAP:URI=\"init-3.mp4\""]);
    let Ok(Playlist::Media(playlist)) = Playlist::parse(&text) else { panic!("{text}") };
    let maps: Vec<_> = playlist.entries.iter().map(|entry| entry.map.as_deref()).collect();
    assert_eq!((maps[0], maps[2], maps[3]), (Some("init-0.mp4"), Some("init-0.mp4"), Some("init-3.mp4")));
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
fn variables_are_replaced_or_named() {
    let multivariant = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"cdn\",VALUE=\"http://a\"\n#EXT-X-DEFINE:NAME=\"at\",VALUE=\"{$cdn}/x-1\"\n\
                        #EXT-X-STREAM-INF:BANDWIDTH=1\n{$at}/index.m3u8?{$cdn}\n";
    let (playlist, variables) = Playlist::parse_from(multivariant, Origin::default()).expect("a playlist");
    let Playlist::Multivariant(variants) = playlist else { panic!("variants") };
    assert_eq!(variants[0].uri, "http://a/x-1/index.m3u8?http://a");
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-DEFINE:IMPORT=\"at\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n\
                #EXT-X-DEFINE:NAME=\"none\",VALUE=\"\"\n#EXT-X-MAP:URI=\"{$at}/i.mp4\"\n#EXTINF:2,{$title}\n{$at}/{$}1.m4s{$none}?t={$token}\n";
    let query = [("token".to_owned(), "a b".to_owned()), ("empty".to_owned(), String::new())];
    let origin = Origin { multivariant: Some(&variables), query: &query };
    let Ok((Playlist::Media(media), _)) = Playlist::parse_from(text, origin) else { panic!("a media playlist") };
    assert_eq!(media.entries[0].uri, "http://a/x-1/{$}1.m4s?t=a b");
    assert_eq!(media.entries[0].map.as_deref(), Some("http://a/x-1/i.mp4"));

    for (line, says) in [
        ("{$other}/1.ts", "line 3: the variable 'other' is used, and no #EXT-X-DEFINE before it defines it"),
        (
            "#EXT-X-DEFINE:IMPORT=\"other\"",
            "takes the variable 'other' from the multivariant playlist, where it is not",
        ),
        ("#EXT-X-DEFINE:QUERYPARAM=\"empty\"", "'empty' from the query of the playlist's URI, where it is not"),
        ("#EXT-X-DEFINE:IMPORT=\"at\"\n#EXT-X-DEFINE:IMPORT=\"at\"", "line 4: the variable 'at' is defined twice"),
        ("#EXT-X-DEFINE:NAME=\"a\"", "line 3: the value of EXT-X-DEFINE makes no sense"),
        ("#EXT-X-DEFINE:NAME=\"a b\",VALUE=\"\"", "line 3: the value of EXT-X-DEFINE makes no sense"),
        ("#EXT-X-DEFINE:NAME=\"a\",IMPORT=\"at\"", "line 3: the value of EXT-X-DEFINE makes no sense"),
    ] {
        let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{line}\n");
        let error = Playlist::parse_from(&text, origin).expect_err(line).to_string();
        assert!(error.contains(says), "{line}: {error}");
    }
    // Without the playlist that it was found in.
    assert!(
        Playlist::parse(text).is_err_and(|error| error.to_string().contains("'at' from the multivariant playlist"))
    );
    // Values that are made of values double with each line.
    let doubled = (1..40).map(|n| format!("#EXT-X-DEFINE:NAME=\"{n}\",VALUE=\"{{${0}}}{{${0}}}\"\n", n - 1));
    let text = format!("#EXTM3U\n#EXT-X-DEFINE:NAME=\"0\",VALUE=\"xxxxxxxx\"\n{}", doubled.collect::<String>());
    assert!(matches!(Playlist::parse(&text), Err(ParseError::Substituted { .. })));
}

#[test]
fn playlists_of_others_are_read() {
    let text =
        "#EXTM3U\r\n#EXT-X-TARGETDURATION:10\r\n\r\n#EXTINF:9.009,a title\r\nhttp://a/1.ts\r\n#EXT-X-ENDLIST\r\n";
    let Ok(Playlist::Media(media)) = Playlist::parse(text) else { panic!("a media playlist") };
    assert_eq!((media.version, media.target_duration_s, media.ended), (1, 10, true));
    assert_eq!(media.entries[0].duration_us, 9_009_000);
    let text = "#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"a,b.mp4\",BYTERANGE=\"9@0\"\n\
                #EXTINF:2,\n1.m4s\n#EXTINF:2,\n2.m4s\n#EXT-X-MAP:URI=\"c.mp4\"\n#EXTINF:2,\n3.m4s\n";
    let Ok(Playlist::Media(media)) = Playlist::parse(text) else { panic!("a media playlist") };
    let maps: Vec<Option<&str>> = media.entries.iter().map(|entry| entry.map.as_deref()).collect();
    assert_eq!(maps, [Some("a,b.mp4"), Some("a,b.mp4"), Some("c.mp4")]);
    assert_eq!(Checker::default().check(text), []);
    let old = text.replace("VERSION:6", "VERSION:5");
    assert_eq!(Checker::default().check(&old), [Violation::MapVersion(5)]);
    let nameless = text.replace("URI", "URL");
    assert_eq!(Playlist::parse(&nameless), Err(ParseError::Value { line: 4, tag: "EXT-X-MAP" }));
    let rates = Rates {
        peak_bits_per_second: 3_000_000,
        average_bits_per_second: 2_000_000,
        pictures_per_1000_s: Some(29_970),
    };
    let mut text = String::new();
    write_multivariant(&stream_attributes(&rates, [avc(), aac()].iter()), "x/index.m3u8", &mut text);
    let line = "#EXT-X-STREAM-INF:BANDWIDTH=3000000,AVERAGE-BANDWIDTH=2000000,CODECS=\"avc1.42C01E,mp4a.40.2\",FRAME-RATE=29.970";
    assert!(text.contains(line), "{text}");
    let variant = Variant { uri: "x/index.m3u8".into(), bandwidth: 3_000_000, separate_audio: false };
    assert_eq!(Playlist::parse(&text), Ok(Playlist::Multivariant(vec![variant])));
    let text = "#EXTM3U a=\"b\"\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"x\",URI=\"a.m3u8\"\n\
                #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",NAME=\"x\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\n1\n\
                #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"b\"\n2\n#EXT-X-STREAM-INF:BANDWIDTH=1\n3\n";
    let Ok(Playlist::Multivariant(variants)) = Playlist::parse(text) else { panic!("variants") };
    assert_eq!(variants.iter().map(|variant| variant.separate_audio).collect::<Vec<_>>(), [true, false, false]);
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-GAP\n#EXTINF:2,\n1.ts\n#EXTINF:2,\n2.ts\n";
    let Ok(Playlist::Media(media)) = Playlist::parse(text) else { panic!("a media playlist") };
    assert_eq!(media.entries.iter().map(|entry| entry.gap).collect::<Vec<_>>(), [true, false]);
    assert_eq!(Playlist::parse("<html>"), Err(ParseError::Begin));
    assert_eq!(Playlist::parse("#EXTM3U8\n"), Err(ParseError::Begin));
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
    // With a segment that long it may grow; it never falls.
    let list = |target_s: u32, durations: &[u32]| {
        let segments: String = durations.iter().map(|s| format!("#EXTINF:{s},\n{s}.ts\n")).collect();
        format!("#EXTM3U\n#EXT-X-TARGETDURATION:{target_s}\n{segments}")
    };
    let mut checker = Checker::default();
    assert_eq!(checker.check(&list(2, &[1, 2])), []);
    assert_eq!(checker.check(&list(5, &[1, 2, 5])), []);
    assert_eq!(checker.check(&list(6, &[1, 2, 5, 4])), [Violation::Target(5, 6)]);
    assert_eq!(checker.check(&list(5, &[1, 2, 5, 4, 5])), [Violation::Target(6, 5)]);
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
        let mut stream = Stream::new(Settings { longest_ms: 200_000, ..Settings::default() });
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

#[test]
fn the_last_segment_is_as_long_as_its_tracks_though_sound_is_ahead() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    stream.config(&aac());
    for at in (0..4_040).step_by(20) {
        if at % 40 == 0 {
            stream.unit(&picture(10_000 + at, at % 2_000 == 0));
        }
        if at < 4_000 {
            stream.unit(&sound(18_000 + at));
        }
    }
    stream.end();
    // The last one is one picture.
    assert_eq!(stream.segments.iter().map(|info| info.duration_ms).collect::<Vec<_>>(), [2_000, 2_000, 40]);
}

#[test]
fn segments_that_begin_without_an_idr_picture_are_not_declared_independent() {
    let mut stream = Stream::new(Settings::default());
    stream.config(&avc());
    // An I picture of an open group.
    let intra = b"\0\0\0\x03\x41\x88\x80".as_slice();
    for at in (0..20_000).step_by(1_000) {
        let mut unit = picture(at, true);
        if at == 5_000 {
            unit.payload = intra.into();
        }
        let ended = stream.segmenter.unit(&unit);
        let Some(Segment { info, bytes, .. }) = ended else { continue };
        let window = stream.window.get_or_insert_with(|| Window::new(2, 3));
        window.push(info, bytes);
        stream.text.clear();
        window.write(&stream.segmenter.container(), &mut stream.text);
        let is_declared = stream.text.contains("#EXT-X-INDEPENDENT-SEGMENTS\n");
        let is_listed = stream.window.iter().flat_map(Window::listed).any(|(info, _)| !info.independent);
        assert_eq!(is_declared, !is_listed, "{}", stream.text);
        stream.segments.push(info);
    }
    assert_eq!(stream.segments.iter().filter(|info| !info.independent).count(), 1);
    assert!(stream.text.contains("#EXT-X-INDEPENDENT-SEGMENTS\n"), "it has left the playlist");
}
