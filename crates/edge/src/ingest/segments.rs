//! Units into segments and playlists.

use super::sound_wait::SoundWait;
use crate::hub::{CONTAINER, Format, Hls, Piece, Playlist, Stream};
use std::collections::VecDeque;
use std::sync::Arc;
use thalweg_media::hls::{Part, Rates, Segment, SegmentInfo, Segmenter, Settings, Window, stream_attributes};
use thalweg_media::{Config, Timeline, Track, Unit};
use thalweg_model::LimitsConfig;

/// How long a playlist may be kept by a cache, in seconds: it is another one with the next segment.
const PLAYLIST_AGE_S: u64 = 1;

/// What makes a stream's HLS state.
#[derive(Debug)]
pub(super) struct Segments {
    segmenter: Segmenter<Format>,
    sound_wait: SoundWait,
    window: Option<Window<Arc<Piece>>>,
    window_len: usize,
    /// Each with the initialization section that it needs.
    pieces: VecDeque<(Arc<Piece>, Option<u64>)>,
    inits: VecDeque<Arc<Piece>>,
    /// The first segment's number: see [`Segments::new`].
    base: u64,
    /// Segments that were listed: their numbers have no gaps.
    listed: u64,
    /// The first segment of the publisher that is there now.
    own: u64,
    version: u64,
    target_ms: u64,
    /// Segments that no memory was left for.
    lost: u64,
}

impl Segments {
    /// For a stream that begins. Its numbers go on from those of a stream of the same key before it, of which nothing is known: it may
    /// have been another process'. Media sequence numbers begin at the time since 1970, counted in the shortest segments that there are:
    /// a finer unit would be safer still, but hls.js takes a jump of numbers for media that it has not seen, and stands still behind a
    /// long one. Discontinuity sequence numbers begin at the seconds: some players hold them in 31 bits (media3, `HlsPlaylistParser`).
    pub(super) fn new(stream: &Stream, target_ms: u64, window_len: usize) -> Self {
        let mut settings = Settings::default();
        settings.target_ms = target_ms;
        Self {
            segmenter: Segmenter::with_format(settings),
            sound_wait: SoundWait::new(settings.announced_wait_ms),
            window: None,
            window_len,
            pieces: VecDeque::new(),
            inits: VecDeque::new(),
            base: stream.began_ms / settings.shortest_ms(),
            listed: 0,
            own: 0,
            version: 0,
            target_ms,
            lost: 0,
        }
    }

    /// Bounds segments by what a group of pictures may be. A publisher past its limits is closed first, so that no segment is cut off,
    /// even if sound is ahead.
    pub(super) fn bound(&mut self, limits: &LimitsConfig) {
        let longest_ms = self.target_ms + limits.gop.as_micros() / 1_000 + Timeline::APART_MAX_MS + 1_000;
        self.segmenter.bound(longest_ms, usize::try_from(limits.gop_bytes.get() * 2).unwrap_or(usize::MAX));
    }

    pub(super) fn announce_video(&mut self) {
        self.segmenter.announce_video();
    }

    pub(super) fn announce_sound(&mut self) {
        self.sound_wait.announce();
        self.segmenter.announce_sound();
    }

    pub(super) fn config(&mut self, config: &Config) {
        if config.track() == Track::Audio {
            self.announce_sound();
        }
        self.segmenter.config(config);
    }

    pub(super) fn unit(&mut self, unit: &Unit, stream: &Stream) {
        let ended = self.segmenter.unit(unit);
        self.publish(ended, stream, false);
    }

    /// Rates of the listed segments of the publisher that is there now.
    pub(super) fn rates(&self) -> Option<Rates> {
        self.window.as_ref().map(|window| window.rates(self.own))
    }

    /// Another publisher's units follow.
    pub(super) fn restart(&mut self, stream: &Stream) {
        let ended = self.segmenter.restart();
        self.publish(ended, stream, true);
        self.own = self.base + self.listed;
        self.sound_wait = SoundWait::new(Settings::default().announced_wait_ms);
    }

    /// What there is becomes a segment, since it may be a while until more comes.
    pub(super) fn pause(&mut self, stream: &Stream) {
        let ended = self.segmenter.end();
        self.publish(ended, stream, true);
    }

    /// No segment follows.
    pub(super) fn end(&mut self, stream: &Stream) {
        self.pause(stream);
        if let Some(window) = &mut self.window {
            window.end();
            self.renew(stream);
        }
    }

    /// Takes a segment that ended, if one did, the last of its publisher or not.
    fn publish(&mut self, segment: Option<Segment>, stream: &Stream, is_last: bool) {
        let mut segments = match segment {
            Some(mut segment) => {
                segment.info.init = segment.info.init.map(|number| number + self.base);
                let part = Part::Init(segment.info.number + self.base);
                let init = segment.init.take().map(|bytes| Piece::new(part, stream.began_ms, 0, &bytes)).transpose();
                let Ok(init) = init else {
                    // What needs it cannot be played.
                    self.lost += 1;
                    return;
                };
                self.inits.extend(init.map(Arc::new));
                self.sound_wait.take(segment, is_last)
            }
            None => Vec::new(),
        };
        if is_last {
            segments.extend(self.sound_wait.end());
        }
        segments.iter().for_each(|segment| self.list(segment, stream));
    }

    fn list(&mut self, segment: &Segment, stream: &Stream) {
        // A player may hold segments of the stream before it. Source: RFC 8216 §4.3.2.3.
        let discontinuity = segment.info.discontinuity || self.listed == 0;
        let info = SegmentInfo { number: self.base + self.listed, discontinuity, ..segment.info };
        let piece = Piece::new(Part::Segment(info.number), stream.began_ms, info.duration_ms, &segment.bytes);
        let Ok(piece) = piece else {
            self.lost += 1;
            return;
        };
        self.listed += 1;
        let target_s = self.segmenter.target_duration_s().unwrap_or(1);
        let window = self.window.get_or_insert_with(|| {
            Window::new(target_s, self.window_len).after_discontinuities(stream.began_ms / 1_000)
        });
        let piece = Arc::new(piece);
        self.pieces.push_back((Arc::clone(&piece), info.init));
        for _ in window.push(info, piece) {
            self.pieces.pop_front();
        }
        let oldest = self.pieces.front().and_then(|(_, init)| *init).map(Part::Init);
        while self.inits.len() > 1 && self.inits.front().map(|init| init.part) != oldest {
            self.inits.pop_front();
        }
        self.renew(stream);
    }

    fn renew(&mut self, stream: &Stream) {
        let Some(window) = &self.window else { return };
        let mut text = String::new();
        window.write(&CONTAINER, &mut text);
        self.version += 1;
        let version = format!("{:x}-p{}", stream.began_ms, self.version);
        stream.hls.set(Hls {
            playlist: Some(Arc::new(Playlist::new(&text, &version, PLAYLIST_AGE_S))),
            pieces: self.pieces.iter().map(|(piece, _)| Arc::clone(piece)).collect(),
            inits: self.inits.clone(),
            attributes: stream_attributes(&window.rates(0), self.segmenter.configs()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use thalweg_media::AvcConfig;
    use thalweg_media::hls::Checker;
    use thalweg_model::ServeConfig;

    /// Segments of 100 ms, the shortest that can be configured, from a stream that begins at `began_ms`.
    fn segments(began_ms: u64, count: u64, mut each: impl FnMut(&str)) {
        let stream = Stream::new("live/cam", began_ms, &ServeConfig::default());
        let mut segments = Segments::new(&stream, 100, 6);
        let avc = AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration");
        segments.config(&Config::Avc(Arc::new(avc)));
        for number in 0..=count {
            let payload: &[u8] = b"\0\0\0\x01\x65";
            let (track, dts_ms) = (Track::Video, 1_000 + number * 100);
            let (keyframe, discontinuity) = (true, false);
            segments
                .unit(&Unit { track, dts_ms, cts_ms: 0, keyframe, discontinuity, payload: payload.into() }, &stream);
            if let Some(playlist) = &stream.hls.get().1.playlist {
                each(std::str::from_utf8(playlist.text()).expect("text"));
            }
        }
    }

    #[test]
    fn numbers_go_on_after_a_restart_behind_a_discontinuity() {
        let (mut checker, mut last) = (Checker::default(), (0, 0));
        for began_ms in [1_795_960_444_123, 1_795_960_470_123] {
            let mut checked = 0;
            let mut own = Checker::default();
            segments(began_ms, 255, |text| {
                assert_eq!(own.check(text), [], "{text}");
                if checked == 0 {
                    let wrong = checker.check(text);
                    assert!(!wrong.iter().any(|wrong| wrong.to_string().contains("went back")), "{wrong:?}");
                    assert!(text.contains("#EXT-X-DISCONTINUITY\n"), "{text}");
                }
                checked += 1;
            });
            let playlist = own.last().expect("a playlist");
            let numbers = (playlist.media_sequence, playlist.discontinuity_sequence);
            assert!(numbers.0 > last.0 && numbers.1 > last.1, "{numbers:?} after {last:?}");
            last = numbers;
            checker = own;
        }
    }

    #[test]
    fn rates_are_of_what_is_listed_and_of_the_publisher_that_is_there() {
        let stream = Stream::new("live/cam", 1_795_960_444_123, &ServeConfig::default());
        let mut segments = Segments::new(&stream, 1_000, 3);
        let avc = AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration");
        let rate = |segments: &Segments| segments.rates().and_then(|rates| rates.pictures_per_1000_s);
        let attributes = || stream.hls.get().1.attributes.clone();
        let play = |segments: &mut Segments, from: u64, count: u64, per_second: u64, size: usize| {
            segments.config(&Config::Avc(Arc::new(avc.clone())));
            let mut payload = ((size - 4) as u32).to_be_bytes().to_vec();
            payload.resize(size, 0x65);
            let payload: Arc<[u8]> = payload.into();
            for at in 0..=count * per_second {
                let (track, dts_ms, keyframe) = (Track::Video, from + at * 1_000 / per_second, at % per_second == 0);
                let payload = Arc::clone(&payload);
                segments.unit(&Unit { track, dts_ms, cts_ms: 0, keyframe, discontinuity: false, payload }, &stream);
            }
        };
        play(&mut segments, 10_000, 4, 50, 1_000);
        assert_eq!(rate(&segments), Some(50_000));
        assert!(attributes().contains("FRAME-RATE=50.000"), "{}", attributes());
        segments.restart(&stream);
        assert_eq!(rate(&segments), None, "nothing is known of the one that is there");
        play(&mut segments, 20_000, 2, 10, 100);
        assert_eq!(rate(&segments), Some(10_000));
        play(&mut segments, 23_000, 6, 10, 100);
        assert!(attributes().contains("FRAME-RATE=10.000"), "{}", attributes());
        let peak = segments.rates().map_or(0, |rates| rates.peak_bits_per_second);
        assert!(attributes().starts_with(&format!("BANDWIDTH={peak},")) && peak < 100_000, "{}", attributes());
    }
}
