//! An HLS player: playlists by the clock, segments by the playlist.
//!
//! Source: RFC 8216 §6.3.

use crate::format;
use crate::playlist::{Media, Playlist, Resource, no_playlist, parse};
use crate::playout::Playout;
use crate::request::{Next, What};
use crate::segment::Segment;
use crate::tally::Tally;
use std::time::Duration;
use thalweg_media::hls::Variables;
use url::Url;

/// Longest playlist that is taken.
const PLAYLIST_MAX: usize = 1 << 20;
const BAD_URI: &str = "a URI that cannot be read";
/// After a failure it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A player's state.
#[derive(Debug)]
pub(crate) struct Hls {
    entry: Url,
    /// Where the media playlist is, once that is known.
    media: Option<Url>,
    /// The variables of the multivariant playlist that led there.
    variables: Option<Variables>,
    playlist: Media,
    /// The number of the segment that comes next.
    next: Option<u64>,
    /// When the playlist was asked for last, and whether it had anything new.
    loaded: Duration,
    /// What came of a playlist.
    text: Vec<u8>,
    /// What came of a segment.
    segment: Segment,
    /// The initialization section that the player has.
    map: Option<Resource>,
    playout: Playout,
    pictured: bool,
}

impl Hls {
    pub(crate) fn new(entry: Url, buffer: Duration) -> Self {
        Self {
            entry,
            media: None,
            variables: None,
            playlist: Media::default(),
            next: None,
            loaded: Duration::ZERO,
            text: Vec::new(),
            segment: Segment::default(),
            map: None,
            playout: Playout::new(buffer),
            pictured: false,
        }
    }

    pub(crate) const fn playout(&self) -> &Playout {
        &self.playout
    }

    pub(crate) const fn has_picture(&self) -> bool {
        self.pictured
    }

    /// Where the answer to what was asked is instead.
    pub(crate) fn moved(&mut self, what: What, to: &Url) {
        if what == What::Playlist {
            *(self.media.as_mut().unwrap_or(&mut self.entry)) = to.clone();
        }
    }

    /// Takes a part of an answer's body, `now` after the start.
    pub(crate) fn body(&mut self, what: What, bytes: &[u8], now: Duration, tally: &mut Tally) -> Result<(), String> {
        match what {
            What::Playlist => {
                let was_looked_at = self.text.len() >= format::LOOKED_AT;
                self.text.extend_from_slice(bytes);
                // A live stream has no end at which it would be looked at.
                let is_looked_at = self.text.len() >= format::LOOKED_AT;
                if is_looked_at && !was_looked_at && format::name(&self.text) != Some(format::PLAYLIST) {
                    return Err(no_playlist(&self.text));
                }
                if self.text.len() > PLAYLIST_MAX {
                    return Err("a playlist of more than 1 MiB".to_owned());
                }
                return Ok(());
            }
            What::Map(_) => return Ok(()),
            What::Segment(..) => self.segment.read(bytes)?,
        }
        if !self.pictured && self.segment.has_picture() {
            self.pictured = true;
            tally.playing += 1;
            tally.first_frame.record(now);
        }
        Ok(())
    }

    /// An answer is whole; what was asked for was due at `due`.
    pub(crate) fn whole(
        &mut self,
        what: What,
        due: Duration,
        now: Duration,
        tally: &mut Tally,
    ) -> Result<Next, String> {
        match what {
            What::Playlist => {
                tally.playlist.record(now.saturating_sub(due));
                let text = std::mem::take(&mut self.text);
                let from = self.media.as_ref().unwrap_or(&self.entry);
                match parse(&text, from, self.variables.as_ref())? {
                    Playlist::Multivariant(uri, separate_audio, variables) => {
                        if separate_audio {
                            tally.failed("sound in a playlist of its own (EXT-X-MEDIA), which is not fetched");
                        }
                        let url = from.join(&uri).map_err(|_| BAD_URI)?;
                        self.variables = Some(variables);
                        if self.media.replace(url.clone()).is_some() {
                            return Err("a multivariant playlist in a multivariant playlist".to_owned());
                        }
                        return Ok(Next::Ask { url, what: What::Playlist, due: now });
                    }
                    Playlist::Media(media) => {
                        let is_new = media.end() != self.playlist.end();
                        name_faults(&media, &self.playlist, tally);
                        self.playlist = media;
                        self.media.get_or_insert_with(|| self.entry.clone());
                        self.loaded = due;
                        return self.next(now, is_new, tally);
                    }
                }
            }
            What::Map(_) => {
                let playlist = &self.playlist;
                let segment = self.next.and_then(|next| playlist.segment(next));
                self.map = segment.and_then(|segment| segment.map.clone());
            }
            What::Segment(length, _) => {
                tally.segment.record(now.saturating_sub(due));
                let mut segment = std::mem::take(&mut self.segment);
                if let Err(why) = segment.end() {
                    if !segment.is_media() {
                        return Err(why);
                    }
                    tally.failed(&why);
                }
                if !self.pictured {
                    // One picture alone has no second one that ends it.
                    self.pictured = true;
                    tally.playing += 1;
                    tally.first_frame.record(now);
                }
                if let Some(stall) = self.playout.arrived(now, length) {
                    tally.stall.record(stall);
                }
                self.next = self.next.map(|next| next + 1);
            }
        }
        self.next(now, true, tally)
    }

    /// What comes after something failed.
    pub(crate) fn failed(&mut self, what: What, now: Duration) -> Next {
        self.text.clear();
        self.segment = Segment::default();
        if let What::Segment(..) | What::Map(_) = what {
            // A player steps over what it cannot have.
            self.next = self.next.map(|next| next + 1);
        }
        self.reload(now + AGAIN)
    }

    fn reload(&self, due: Duration) -> Next {
        Next::Ask { url: self.media.clone().unwrap_or_else(|| self.entry.clone()), what: What::Playlist, due }
    }

    fn next(&mut self, now: Duration, is_new: bool, tally: &mut Tally) -> Result<Next, String> {
        let playlist = &self.playlist;
        let mut next = *self.next.get_or_insert_with(|| playlist.start());
        while playlist.segment(next).is_some_and(|segment| segment.gap) {
            next += 1;
            self.next = Some(next);
        }
        if next < playlist.sequence {
            tally.failed("segments that were gone before they were asked for");
            next = playlist.sequence;
            self.next = Some(next);
        }
        if let Some(segment) = playlist.segment(next) {
            if let Some(method) = &segment.encryption {
                tally.failed(&format!("an encrypted stream (EXT-X-KEY METHOD={method}), which is not decrypted here"));
                return Ok(Next::Over);
            }
            let (resource, what) = match &segment.map {
                Some(map) if self.map.as_ref() != Some(map) => (map, What::Map(map.range)),
                _ => (&segment.resource, What::Segment(segment.duration, segment.resource.range)),
            };
            let base = self.media.as_ref().unwrap_or(&self.entry);
            let url = base.join(&resource.uri).map_err(|_| BAD_URI)?;
            return Ok(Next::Ask { url, what, due: now });
        }
        if playlist.ended {
            return Ok(Next::Over);
        }
        // §6.3.4: a target duration after it was asked for, or half of that where it had not changed.
        let target = playlist.interval();
        let wait = if is_new { target } else { target / 2 };
        Ok(self.reload((self.loaded + wait).max(now)))
    }
}

/// Counts what is wrong with `media`, which comes after `last`.
fn name_faults(media: &Media, last: &Media, tally: &mut Tally) {
    if media.segments.is_empty() {
        tally.failed("a playlist without segments");
    }
    if media.target.is_zero() {
        tally.failed("a target duration of 0 s, in place of which the longest segment's is taken");
    }
    if media.sequence < last.sequence {
        tally.failed("a media sequence that went back (EXT-X-MEDIA-SEQUENCE)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(next: Next) -> (String, What, f64) {
        match next {
            Next::Ask { url, what, due } => (url.path().to_owned(), what, due.as_secs_f64()),
            Next::Over => panic!("over"),
        }
    }

    #[test]
    fn a_player_polls_by_the_clock_and_takes_each_segment_once() {
        let s = Duration::from_secs_f64;
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.m3u8").expect("a URL"), Duration::ZERO);
        let mut at = |text: &str, player: &mut Hls, due: f64, now: f64| {
            player.body(What::Playlist, text.as_bytes(), s(now), &mut tally).expect("taken");
            ask(player.whole(What::Playlist, s(due), s(now), &mut tally).expect("a playlist"))
        };
        let head = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n";
        let multivariant = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nx/7/index.m3u8\n";
        assert_eq!(at(multivariant, &mut player, 0.0, 0.01), ("/live/x/7/index.m3u8".into(), What::Playlist, 0.01));
        let one = format!("{head}#EXT-X-MEDIA-SEQUENCE:4\n#EXTINF:2.0,\n4.ts\n");
        assert_eq!(at(&one, &mut player, 0.01, 0.02), ("/live/x/7/4.ts".into(), What::Segment(s(2.0), None), 0.02));
        let mut other = Tally::default();
        let segment = What::Segment(s(2.0), None);
        player.body(segment, b"\0\0\0\x08mdat", s(0.05), &mut other).expect("taken");
        let next = player.whole(What::Segment(s(2.0), None), s(0.02), s(0.05), &mut other).expect("next");
        assert_eq!(ask(next), ("/live/x/7/index.m3u8".into(), What::Playlist, 2.01));
        assert_eq!(at(&one, &mut player, 2.01, 2.02), ("/live/x/7/index.m3u8".into(), What::Playlist, 3.01), "half");
        let two = format!("{head}#EXT-X-MEDIA-SEQUENCE:5\n#EXTINF:2.0,\n5.ts\n");
        assert_eq!(at(&two, &mut player, 3.01, 3.02).0, "/live/x/7/5.ts");
        let late = format!("{head}#EXT-X-MEDIA-SEQUENCE:9\n#EXTINF:2.0,\n9.ts\n");
        assert_eq!(at(&late, &mut player, 5.0, 5.0).0, "/live/x/7/9.ts");
        assert_eq!(tally.failures.values().sum::<u64>(), 1, "{:?}", tally.failures);
    }

    #[test]
    fn an_endless_answer_is_named_by_its_first_bytes() {
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.flv").expect("a URL"), Duration::ZERO);
        let mut body = |bytes: &[u8]| player.body(What::Playlist, bytes, Duration::ZERO, &mut tally);
        assert_eq!(body(b"FLV\x01\x05"), Ok(()));
        assert_eq!(body(&[0; 200]), Err("an answer that is no playlist: it is FLV".to_owned()));
    }

    #[test]
    fn playlists_that_no_player_can_follow_are_named() {
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.m3u8").expect("a URL"), Duration::ZERO);
        let mut at = |text: &str, tally: &mut Tally| {
            player.body(What::Playlist, text.as_bytes(), Duration::ZERO, tally).expect("taken");
            ask(player.whole(What::Playlist, Duration::ZERO, Duration::ZERO, tally).expect("a playlist"))
        };
        let none = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:7\n";
        assert_eq!(at(none, &mut tally), ("/live/x.m3u8".into(), What::Playlist, 2.0));
        let zero = "#EXTM3U\n#EXT-X-TARGETDURATION:0\n#EXT-X-MEDIA-SEQUENCE:6\n#EXTINF:3,\n6.ts\n#EXTINF:3,\n7.ts\n";
        assert_eq!(at(zero, &mut tally).0, "/live/7.ts");
        let named = ["without segments", "0 s", "went back"];
        let is_named = |part: &&str| tally.failures.iter().any(|(why, &count)| why.contains(*part) && count == 1);
        assert!(named.iter().all(is_named) && tally.failures.len() == 3, "{:?}", tally.failures);
        let over = "#EXTM3U\n#EXT-X-TARGETDURATION:0\n#EXT-X-MEDIA-SEQUENCE:6\n#EXTINF:3,\n6.ts\n";
        assert_eq!(at(over, &mut tally), ("/live/x.m3u8".into(), What::Playlist, 3.0), "not at once");
    }

    #[test]
    fn what_is_no_media_is_no_picture_and_is_not_played() {
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.m3u8").expect("a URL"), Duration::ZERO);
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXTINF:2,\nb.ts\n#EXT-X-ENDLIST\n";
        player.body(What::Playlist, text.as_bytes(), Duration::ZERO, &mut tally).expect("taken");
        player.whole(What::Playlist, Duration::ZERO, Duration::ZERO, &mut tally).expect("a playlist");
        for (body, why) in [(&b"<html>login</html>"[..], "an HTML page"), (b"", "empty")] {
            let what = What::Segment(Duration::from_secs(2), None);
            player.body(what, body, Duration::ZERO, &mut tally).expect("too short to tell");
            let error = player.whole(what, Duration::ZERO, Duration::ZERO, &mut tally).expect_err("no segment");
            assert!(error.contains(why), "{error}");
            player.failed(what, Duration::ZERO);
        }
        assert!(!player.has_picture() && tally.playing == 0 && tally.first_frame.summary().is_none());
        assert_eq!(player.playout().stalls(Duration::from_secs(60)), (0, Duration::ZERO), "it never began");
    }

    #[test]
    fn an_initialization_section_is_fetched_once_and_ranges_are_asked_for() {
        let s = Duration::from_secs_f64;
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.m3u8").expect("a URL"), Duration::ZERO);
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"a.mp4\",BYTERANGE=\"700@0\"\n\
                    #EXTINF:2,\n#EXT-X-BYTERANGE:8@700\na.mp4\n#EXTINF:2,\n#EXT-X-BYTERANGE:8\na.mp4\n#EXT-X-ENDLIST\n";
        player.body(What::Playlist, text.as_bytes(), s(0.0), &mut tally).expect("taken");
        let mut next = player.whole(What::Playlist, s(0.0), s(0.0), &mut tally).expect("a playlist");
        let mut asked = Vec::new();
        while let Next::Ask { what, .. } = next {
            asked.push(what);
            player.body(what, b"\0\0\0\x08mdat", s(0.0), &mut tally).expect("taken");
            next = player.whole(what, s(0.0), s(0.0), &mut tally).expect("next");
        }
        let segment = |from| What::Segment(s(2.0), Some((from, 8)));
        assert_eq!(asked, [What::Map(Some((0, 700))), segment(700), segment(708)]);
        assert!(tally.failures.is_empty(), "{:?}", tally.failures);
    }

    #[test]
    fn absent_segments_are_not_asked_for_and_separate_sound_is_named() {
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.m3u8").expect("a URL"), Duration::ZERO);
        let mut at = |text: &str, tally: &mut Tally| {
            player.body(What::Playlist, text.as_bytes(), Duration::ZERO, tally).expect("taken");
            player.whole(What::Playlist, Duration::ZERO, Duration::ZERO, tally).map(ask)
        };
        let text = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"en\",URI=\"en.m3u8\"\n\
                    #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nv.m3u8\n";
        assert_eq!(at(text, &mut tally).expect("a playlist").0, "/live/v.m3u8");
        let failure = tally.failures.keys().next().expect("a failure");
        assert!(failure.contains("EXT-X-MEDIA"), "{failure}");
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-GAP\n#EXTINF:2,\na.ts\n#EXTINF:2,\nb.ts\n#EXT-X-ENDLIST\n";
        assert_eq!(at(text, &mut tally).expect("a playlist").0, "/live/b.ts");
    }

    #[test]
    fn variables_come_from_the_multivariant_playlist_and_the_query() {
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.m3u8?seat=5%2F6").expect("a URL"), Duration::ZERO);
        let mut at = |text: &str| {
            player.body(What::Playlist, text.as_bytes(), Duration::ZERO, &mut tally).expect("taken");
            match player.whole(What::Playlist, Duration::ZERO, Duration::ZERO, &mut tally)? {
                Next::Ask { url, .. } => Ok(url.to_string()),
                Next::Over => Err("over".to_owned()),
            }
        };
        let text = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"cdn\",VALUE=\"http://b\"\n#EXT-X-DEFINE:QUERYPARAM=\"seat\"\n\
                    #EXT-X-STREAM-INF:BANDWIDTH=1\n{$cdn}/v.m3u8?at={$seat}\n";
        assert_eq!(at(text).expect("a playlist"), "http://b/v.m3u8?at=5/6");
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-DEFINE:IMPORT=\"seat\"\n#EXT-X-DEFINE:QUERYPARAM=\"at\"\n\
                    #EXTINF:2,\n{$seat}/{$at}/a.ts\n";
        assert_eq!(at(text).expect("a playlist"), "http://b/5/6/5/6/a.ts");
        let error = at("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{$cdn}/a.ts\n").expect_err("not imported");
        assert!(error.contains("line 4: the variable 'cdn' is used"), "{error}");
    }

    #[test]
    fn an_encrypted_stream_is_named_and_not_played() {
        let mut tally = Tally::default();
        let mut player = Hls::new(Url::parse("http://a/live/x.m3u8").expect("a URL"), Duration::ZERO);
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n#EXTINF:2,\na.ts\n";
        player.body(What::Playlist, text.as_bytes(), Duration::ZERO, &mut tally).expect("taken");
        let next = player.whole(What::Playlist, Duration::ZERO, Duration::ZERO, &mut tally);
        assert_eq!(next, Ok(Next::Over));
        let failure = tally.failures.keys().next().expect("a failure");
        assert!(failure.contains("METHOD=SAMPLE-AES"), "{failure}");
    }
}
