//! What people watch with: hls.js and mpegts.js in Chromium, FFmpeg's programs, curl.
//!
//! Needs the Debian packages `chromium`, `npm`, `ffmpeg`, `openssl` and `curl`, and the two players from npm, which are installed once.

#![allow(clippy::print_stderr)]

mod common;

use common::browser::{players, watch};
use common::edge::{Edge, LOCAL, Tied, ffmpeg, installed};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Players are given the machine one test after another: each decodes in software, and takes a core.
fn alone() -> MutexGuard<'static, ()> {
    static PLAYING: Mutex<()> = Mutex::new(());
    PLAYING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to publish a tone and a picture whose sound pauses from second 4 to 18.
fn publish_paused(folder: &Path, to: &str) -> Tied {
    let made = ffmpeg(
        "-y -f lavfi -i testsrc2=size=320x180:rate=25 -f lavfi -i sine=frequency=440 -t 40 -af aselect='not(between(t,4,18))' \
         -c:v libx264 -preset ultrafast -g 50 -pix_fmt yuv420p -c:a aac -max_interleave_delta 100000 -f flv paused.flv",
    )
    .current_dir(folder)
    .status();
    assert!(made.is_ok_and(|status| status.success()), "FFmpeg makes the stream");
    // From a file, whose packets FFmpeg sends at their time: it would wait for a live source's sound.
    let words = format!("-re -i paused.flv -c copy -max_interleave_delta 100000 -f flv {to}");
    Tied(ffmpeg(&words).current_dir(folder).spawn().expect("FFmpeg starts"))
}

/// A certificate for this host, signed by itself.
fn certificate(folder: &Path) {
    let status = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem"])
        .args(["-out", "chain.pem"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "openssl makes a certificate");
}

fn with_https(folder: &Path, more: &str) -> String {
    certificate(folder);
    format!("{LOCAL}{more}\n[https]\nlisten = [\"127.0.0.1:0\"]\ncertificate = \"chain.pem\"\nkey = \"key.pem\"\n")
}

/// A player's reserve is what the stream holds since its newest keyframe: next to nothing if it joins just after one. So it may wait
/// once for the next picture, but stands still no longer than a few pictures take.
fn is_smooth(told: &Value) -> bool {
    told["waits"].as_u64().is_some_and(|waits| waits <= 1)
        && told["stalled"].as_f64().is_some_and(|seconds| seconds <= 0.3)
}

fn must_play(told: &Value, url: &str, seconds: f64) {
    assert!(told["advanced"].as_f64() >= Some(seconds), "{url}: {told}");
    assert_eq!(told["errors"], serde_json::json!([]), "{url}: {told}");
    assert!(is_smooth(told), "{url}: {told}");
    assert!(told["pictures"].as_u64() >= Some(200), "{url}: {told}");
}

#[test]
fn hls_js_and_mpegts_js_play_the_built_in_stream_without_a_stall() {
    if !installed("chromium") {
        return;
    }
    let _alone = alone();
    let Some(players) = players() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let edge = Edge::start(folder.path(), &with_https(folder.path(), "[hls]\ntarget = \"2s\""), &["--demo"]);
    for (scheme, end) in [("http", ".flv"), ("http", ".m3u8"), ("https", ".m3u8"), ("https", ".flv")] {
        let url = edge.url_of("play", scheme, end);
        let mut told = watch(folder.path(), &players, &url, 10);
        if !is_smooth(&told) {
            // A player this near to live waits when something else has the processor. A server that makes it wait does so the next
            // time as well.
            told = watch(folder.path(), &players, &url, 10);
        }
        must_play(&told, &url, 10.0);
    }
}

/// A test picture with a tone, at its pace.
fn publisher(to: &str) -> Tied {
    let words = format!(
        "-re -f lavfi -i testsrc=size=320x180:rate=25 -f lavfi -i sine=frequency=440 -t 120 -c:v libx264 -preset ultrafast \
         -tune zerolatency -g 25 -pix_fmt yuv420p -c:a aac -f flv {to}"
    );
    Tied(ffmpeg(&words).stderr(Stdio::null()).spawn().expect("ffmpeg"))
}

#[test]
fn players_survive_a_publisher_that_is_killed_and_comes_back() {
    if !installed("chromium") || !installed("ffmpeg") {
        return;
    }
    let _alone = alone();
    let Some(players) = players() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let edge = Edge::start(folder.path(), &format!("{LOCAL}[hls]\ntarget = \"1s\"\n"), &[]);
    let rtmp = edge.url("publish", "rtmp").replace("NAME", "cam");
    let urls = [".flv", ".m3u8"].map(|end| edge.url_of("play", "http", end).replace("NAME", "cam"));
    let begun = Instant::now();
    let told = std::thread::scope(|scope| {
        let first = publisher(&rtmp);
        let watched = urls.each_ref().map(|url| scope.spawn(|| watch(folder.path(), &players, url, 20)));
        std::thread::sleep(Duration::from_secs(12));
        drop(first);
        std::thread::sleep(Duration::from_secs(2));
        let _second = publisher(&rtmp);
        watched.map(|watched| watched.join().expect("watched"))
    });
    for (url, told) in urls.iter().zip(told) {
        // They wait for what is not there, and then go on by themselves.
        assert!(told["advanced"].as_f64() >= Some(20.0), "{url} after {:?}: {told}", begun.elapsed());
        let errors = told["errors"].as_array().expect("errors");
        assert!(errors.iter().all(|error| !error.to_string().contains("fatal")), "{url}: {told}");
    }
}

#[test]
fn ffplay_ffprobe_and_curl_take_the_built_in_stream() {
    if !installed("ffplay") {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let edge = Edge::start(folder.path(), &with_https(folder.path(), "[hls]\ntarget = \"1s\""), &["--demo"]);
    let all = [("http", ".flv"), ("http", ".m3u8"), ("https", ".m3u8"), ("https", ".flv")];
    common::two_at_a_time(all.to_vec(), |(scheme, end)| {
        let url = edge.url_of("play", scheme, end);
        let probe = Command::new("ffprobe")
            .args(["-v", "error", "-read_intervals", "%+2", "-show_entries"])
            .args(["stream=codec_name,width,height,sample_rate", "-of", "json", &url])
            .output()
            .expect("ffprobe");
        let (out, err) = common::texts(&probe);
        let found: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{url}: {out}{err}"));
        let streams = found["streams"].as_array().expect("streams").clone();
        let by = |codec: &str| streams.iter().find(|one| one["codec_name"] == codec).cloned().unwrap_or_default();
        assert_eq!(
            (by("h264")["width"].as_u64(), by("h264")["height"].as_u64()),
            (Some(320), Some(192)),
            "{url}: {out}"
        );
        assert_eq!(by("aac")["sample_rate"], "48000", "{url}: {out}");
        // A live stream has no end: it plays until it is ended from outside.
        let play = Command::new("timeout")
            .args(["6", "ffplay", "-v", "error", "-nostats", &url])
            .env("SDL_VIDEODRIVER", "dummy")
            .env("SDL_AUDIODRIVER", "dummy")
            .stdin(Stdio::null())
            .output()
            .expect("ffplay");
        let (_, err) = common::texts(&play);
        assert!(play.status.code() == Some(124) && err.is_empty(), "{url}: {err}");
    });
    // By curl, as a script looks whether all is well.
    let curl = |args: &[&str]| {
        let output = Command::new("curl").args(["-sS", "-k"]).args(args).output().expect("curl");
        let (out, err) = (String::from_utf8_lossy(&output.stdout).into_owned(), common::texts(&output).1);
        assert!(output.status.success(), "{args:?}: {err}");
        out
    };
    for scheme in ["http", "https"] {
        let url = edge.url_of("play", scheme, ".m3u8");
        let base = url.rsplit_once('/').expect("a folder").0;
        let first = curl(&["-L", &url]);
        let media = format!("{base}/{}", first.lines().last().expect("a URI"));
        let list = curl(&[&media]);
        let segment = list.lines().rfind(|line| line.ends_with(".ts")).expect("a segment").to_owned();
        let segment = format!("{}/{segment}", media.rsplit_once('/').expect("a folder").0);
        let told = curl(&[
            "-o",
            "segment.ts",
            "--output-dir",
            &folder.path().display().to_string(),
            "-w",
            "%{http_code} %{content_type}",
            &segment,
        ]);
        assert_eq!(told, "200 video/mp2t", "{segment}");
        let bytes = fs::read(folder.path().join("segment.ts")).expect("the segment");
        assert!(bytes.len().is_multiple_of(188) && bytes.len() > 100_000, "{}", bytes.len());
    }
}

#[test]
fn players_go_on_while_sound_pauses_and_join_then() {
    if !installed("chromium") || !installed("ffmpeg") {
        return;
    }
    let _alone = alone();
    let Some(scripts) = players() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let edge = Edge::start(folder.path(), LOCAL, &[]);
    let _publisher = publish_paused(folder.path(), &edge.url("publish", "rtmp").replace("NAME", "paused"));
    let begun = Instant::now();
    let [hls, flv] = [".m3u8", ".flv"].map(|end| edge.url_of("play", "http", end).replace("NAME", "paused"));
    // One plays when the pause begins; the others join in it, and play when it ends.
    let play = |url: &str, after_s: u64, seconds: u32| {
        std::thread::sleep(Duration::from_secs(after_s).saturating_sub(begun.elapsed()));
        must_play(&watch(folder.path(), &scripts, url, seconds), url, f64::from(seconds));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(&hls, 3, 14));
        scope.spawn(|| play(&hls, 12, 14));
        scope.spawn(|| play(&flv, 12, 9));
    });
}
