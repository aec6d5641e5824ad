//! What encoders send besides one keyframe each second: keyframes far apart, MP3, and codecs that are not carried.

#![allow(clippy::print_stderr)]

mod common;

use common::{Client, Encoder, eventually, serve, serve_logged};
use std::process::{Command, Stdio};
use thalweg_edge::server::Server;
use thalweg_media::hls::{Checker, MediaPlaylist, Playlist};
use thalweg_media::ts::Demuxer;
use thalweg_media::{TagKind, Track};
use thalweg_model::LogConfig;

/// Whether FFmpeg can be asked; in CI it is there.
fn has_ffmpeg() -> bool {
    if Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).status().is_ok() {
        return true;
    }
    assert!(std::env::var("CI").is_err(), "ffmpeg is not installed, and in CI nothing is skipped");
    eprintln!("SKIPPED: ffmpeg is not installed, so nothing was published by it");
    false
}

/// Publishes as `live/cam` what FFmpeg makes of these words, as fast as it goes.
fn publish(server: &Server, words: &str) {
    let url = format!("rtmp://{}/live/cam", server.addresses.rtmp[0]);
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error"]).args(words.split_whitespace()).args(["-f", "flv", &url]);
    assert!(command.status().expect("ffmpeg starts").success(), "ffmpeg {words}");
}

/// The multivariant playlist, and the media playlist and segments of a stream that is over.
fn played(server: &Server) -> (String, MediaPlaylist, Vec<Vec<u8>>) {
    let mut client = Client::connect(server.addresses.http[0]);
    let start = eventually(|| Some(client.get("/live/cam.m3u8")).filter(|found| found.status == 200));
    let path = format!("/live/{}", start.text().lines().last().expect("a URI"));
    let text = eventually(|| Some(client.get(&path).text().to_owned()).filter(|text| text.contains("#EXT-X-ENDLIST")));
    assert_eq!(Checker::default().check(&text), [], "{text}");
    let Ok(Playlist::Media(playlist)) = Playlist::parse(&text) else { panic!("a playlist: {text}") };
    let folder = path.strip_suffix("index.m3u8").expect("its name");
    let segments = playlist.entries.iter().map(|entry| client.get(&format!("{folder}{}", entry.uri)).body).collect();
    (start.text().to_owned(), playlist, segments)
}

const PICTURES: &str = "-f lavfi -i testsrc2=size=160x90:rate=25 -f lavfi -i sine=frequency=440";
/// Sound begins two seconds before the pictures, as a relay's does that waits for a keyframe.
const LATE_PICTURES: &str = "-itsoffset 2 -f lavfi -i testsrc2=size=160x90:rate=25 -f lavfi -i sine=frequency=440";

#[test]
fn every_segment_begins_with_a_keyframe_wherever_the_encoder_sets_them() {
    if !has_ffmpeg() {
        return;
    }
    for (input, words, target_s) in [
        // Keyframes at these seconds alone.
        (
            PICTURES,
            "-t 24 -c:v libx264 -preset ultrafast -g 9999 -sc_threshold 0 -force_key_frames 0,2,4,12,20 -c:a aac",
            Some(8),
        ),
        // x264's own choice: up to 250 pictures apart, and at scene cuts.
        (PICTURES, "-t 24 -c:v libx264 -preset veryfast -c:a aac", None),
        (LATE_PICTURES, "-t 8 -c:v libx264 -preset ultrafast -g 50 -c:a aac", None),
        // A frame rate that changes.
        (
            PICTURES,
            "-t 12 -vf select='not(mod(n,3))+gte(t,6)' -vsync vfr -c:v libx264 -preset ultrafast -g 40 -c:a aac",
            None,
        ),
    ] {
        let server = serve("[hls]\ntarget = '2s'\nwindow = 100\n[limits]\npublish_return = '300ms'");
        publish(&server, &format!("{input} {words}"));
        let (_, playlist, segments) = played(&server);
        assert!(!segments.is_empty());
        for (number, segment) in segments.iter().enumerate() {
            let (mut demuxer, mut input, mut all) = (Demuxer::new(1 << 20), &segment[..], Vec::new());
            while let Some(pes) = demuxer.read(&mut input).expect("a transport stream") {
                all.push(pes);
            }
            while let Some(pes) = demuxer.finish().expect("a transport stream") {
                all.push(pes);
            }
            let first = all.iter().find(|pes| pes.track == Track::Video).expect("a picture in each segment");
            assert!(first.random_access, "{words}: segment {number} begins with no keyframe");
        }
        let longest_s = playlist.entries.iter().map(|entry| (entry.duration_us + 500_000) / 1_000_000).max();
        assert!(longest_s.expect("segments") <= u64::from(playlist.target_duration_s), "{words}");
        if let Some(target_s) = target_s {
            assert_eq!(playlist.target_duration_s, target_s, "{words}");
        }
        server.drain().expect("drained");
    }
}

/// Sound begins five seconds after the pictures.
const LATE_SOUND: &str = "-f lavfi -i testsrc2=size=160x90:rate=25 -itsoffset 5 -f lavfi -i sine=frequency=440";

#[test]
fn the_first_segment_has_the_sound_that_is_announced() {
    if !has_ffmpeg() {
        return;
    }
    for codec in ["aac", "libmp3lame"] {
        let server = serve("[hls]\ntarget = '2s'\nwindow = 100\n[limits]\npublish_return = '300ms'");
        publish(&server, &format!("{LATE_SOUND} -t 15 -c:v libx264 -preset ultrafast -g 50 -c:a {codec} -ar 44100"));
        let (_, playlist, segments) = played(&server);
        assert!(
            segments.len() >= 4 && playlist.entries.iter().skip(1).all(|entry| !entry.discontinuity),
            "{playlist:?}"
        );
        for (number, segment) in segments.iter().enumerate() {
            let (mut demuxer, mut input, mut has_sound) = (Demuxer::new(1 << 20), &segment[..], false);
            while let Some(pes) = demuxer.read(&mut input).expect("a transport stream") {
                has_sound |= pes.track == Track::Audio;
            }
            while let Some(pes) = demuxer.finish().expect("a transport stream") {
                has_sound |= pes.track == Track::Audio;
            }
            assert!(has_sound, "{codec}: segment {number} of {}", segments.len());
        }
        server.drain().expect("drained");
    }
}

#[test]
fn mp3_is_carried() {
    if !has_ffmpeg() {
        return;
    }
    let server = serve("[hls]\ntarget = '1s'\nwindow = 100\n[limits]\npublish_return = '300ms'");
    // Pictures that are reordered come ahead of the sound, which is configured by its first frame.
    let words = "-t 4 -c:v libx264 -preset ultrafast -g 25 -bf 2 -c:a libmp3lame -ar 44100";
    publish(&server, &format!("{PICTURES} {words}"));
    let (start, _, segments) = played(&server);
    assert_eq!(segments.len(), 4, "the first group of pictures is there");
    assert!(start.contains(",mp4a.40.34\""), "{start}");
    for name in ["AVERAGE-BANDWIDTH=", "RESOLUTION=160x90", "FRAME-RATE=25.000"] {
        assert!(start.contains(name), "{start}");
    }
    let streams = Client::connect(server.addresses.api[0]).get("/api/streams");
    let streams: serde_json::Value = serde_json::from_slice(&streams.body).expect("JSON");
    let publisher = streams.pointer("/streams/0/publisher").unwrap_or(&streams);
    let address = publisher["address"].as_str().expect("an address");
    assert!(address.starts_with("127.0.0.1:"), "{publisher}");
    assert_eq!((publisher["video"]["width"].as_u64(), publisher["video"]["height"].as_u64()), (Some(160), Some(90)));
    assert_eq!(publisher["audio"]["codec"], "mp4a.40.34");
    assert_eq!(publisher["why"], "the publisher ended the stream", "{publisher}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("segment.ts");
    std::fs::write(&file, &segments[1]).expect("written");
    let words = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0"];
    let seen = Command::new("ffprobe").args(words).arg(&file).output().expect("ffprobe starts");
    let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
    assert!(seen.contains("h264") && seen.contains("mp3"), "{seen}");
    server.drain().expect("drained");
}

#[test]
fn a_codec_that_is_not_carried_is_refused_with_a_sentence() {
    for (kind, payload, name) in [
        (TagKind::Video, &b"\x90hvc1"[..], "HEVC"),
        (TagKind::Video, b"\x1c\0\0\0\0", "HEVC"),
        (TagKind::Video, b"\x90av01", "AV1"),
        (TagKind::Video, b"\x90vp09", "VP9"),
        (TagKind::Audio, b"\x90Opus", "Opus"),
        (TagKind::Audio, b"\x90fLaC", "FLAC"),
        (TagKind::Audio, b"\x72a", "G.711 A-law"),
        // The first of several tracks.
        (TagKind::Video, b"\x96\x00hvc1\0", "HEVC"),
        (TagKind::Audio, b"\x95\x01Opus\0a", "Opus"),
    ] {
        let (server, seen) = serve_logged("", LogConfig::default());
        let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
        encoder.send(kind, 40, payload);
        let why = format!("{name} is not carried: send H.264 video, and AAC or MP3 audio");
        assert_eq!(encoder.reason(), why);
        eventually(|| seen.text().contains(&format!("unpublish stream=live/cam why=\"{why}\"")).then_some(()));
        let streams = Client::connect(server.addresses.api[0]).get("/api/streams");
        let streams: serde_json::Value = serde_json::from_slice(&streams.body).expect("JSON");
        assert!(streams.to_string().contains(&why), "{streams}");
        server.drain().expect("drained");
    }
}

#[test]
fn a_connection_that_publishes_nothing_has_a_line_with_its_reason() {
    let (server, seen) = serve_logged("[limits]\nhead_time = '300ms'", LogConfig::default());
    let silent = std::net::TcpStream::connect(server.addresses.rtmp[0]).expect("connected");
    eventually(|| seen.text().contains("why=\"no stream was published within limits.head_time\"").then_some(()));
    let mut foreign = std::net::TcpStream::connect(server.addresses.rtmp[0]).expect("connected");
    std::io::Write::write_all(&mut foreign, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    eventually(|| (seen.text().matches("publisher-closed").count() == 2).then_some(()));
    drop((silent, foreign));
    server.drain().expect("drained");
}
