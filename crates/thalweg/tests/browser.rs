//! What people watch with: hls.js and mpegts.js in Chromium, FFmpeg's programs, curl.
//!
//! Needs the Debian packages `chromium`, `npm`, `ffmpeg`, `openssl` and `curl`, and the two players from npm, which are installed once.

#![allow(clippy::print_stderr)]

mod common;

use common::edge::{Edge, LOCAL, Tied, ffmpeg, installed};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The players, and where each has its script.
const PLAYERS: [(&str, &str); 2] =
    [("hls.js@1.6", "hls.js/dist/hls.min.js"), ("mpegts.js@1.8", "mpegts.js/dist/mpegts.js")];
/// How long a page may take: Chromium's start, and 10 s of play.
const PATIENCE: Duration = Duration::from_secs(90);

/// Players are given the machine one test after another: each decodes in software, and takes a core.
fn alone() -> MutexGuard<'static, ()> {
    static PLAYING: Mutex<()> = Mutex::new(());
    PLAYING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The folder of the players, installed once; `None`, said aloud, where they cannot be had outside CI.
fn players() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("players");
    let modules = folder.join("node_modules");
    let is_there = || PLAYERS.iter().all(|(_, file)| modules.join(file).is_file());
    if !is_there() {
        fs::create_dir_all(&folder).expect("a folder");
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&folder);
        let _ = npm.args(PLAYERS.map(|(package, _)| package)).stdout(Stdio::null()).status();
    }
    let found = is_there();
    assert!(found || std::env::var("CI").is_err(), "npm cannot install the players, and in CI nothing is skipped");
    if !found {
        eprintln!("SKIPPED: npm cannot install hls.js and mpegts.js, so nothing was played by them");
    }
    found.then_some(modules)
}

/// Plays until 10 s of media have gone by, and tells what happened.
const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><video muted playsinline></video><script src="/player.js"></script><script>
const video = document.querySelector("video"), errors = [];
let first = null, waits = 0, over = false;
const wanted = Number(new URLSearchParams(location.search).get("seconds")), url = new URLSearchParams(location.search).get("url");
const tell = () => {
  if (over) return;
  over = true;
  const quality = video.getVideoPlaybackQuality();
  const told = { advanced: first === null ? 0 : video.currentTime - first, waits, errors, pictures: quality.totalVideoFrames };
  fetch("/told", { method: "POST", body: JSON.stringify(told) });
};
video.addEventListener("playing", () => { if (first === null) first = video.currentTime; });
video.addEventListener("waiting", () => { if (first !== null) waits += 1; });
video.addEventListener("error", () => { errors.push(`video: ${video.error.message}`); tell(); });
setInterval(() => { if (first !== null && video.currentTime - first >= wanted) tell(); }, 100);
setTimeout(tell, 70000);
if (url.endsWith(".flv")) {
  const player = mpegts.createPlayer({ type: "flv", isLive: true, url }, { lazyLoad: false });
  player.on(mpegts.Events.ERROR, (kind, detail) => { errors.push(`${kind}: ${detail}`); });
  player.attachMediaElement(video);
  player.load();
  player.play();
} else {
  const player = new Hls();
  player.on(Hls.Events.ERROR, (_, data) => {
    if (data.details !== Hls.ErrorDetails.BUFFER_STALLED_ERROR || data.fatal) errors.push(`${data.details}${data.fatal ? ", fatal" : ""}: ${data.error}`);
    // Before anything has played it says so of itself: it looked between the first bytes it put in and its own seek to them.
    else if (first !== null) waits += 1;
  });
  player.loadSource(url);
  player.attachMedia(video);
  player.on(Hls.Events.MANIFEST_PARSED, () => video.play());
}
</script>"#;

/// Opens the page in Chromium with a player of `url`, and returns what it told.
fn watch(folder: &Path, players: &Path, url: &str, seconds: u32) -> Value {
    let script = fs::read(players.join(PLAYERS[usize::from(url.ends_with(".flv"))].1)).expect("the player");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let page = format!("http://{}/?seconds={seconds}&url={url}", listener.local_addr().expect("an address"));
    let (sender, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            let (mut line, mut path, mut length) = (String::new(), String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
                if path.is_empty() {
                    line.split(' ').nth(1).unwrap_or_default().clone_into(&mut path);
                }
                if let Some((_, value)) =
                    line.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case("content-length"))
                {
                    length = value.trim().parse().unwrap_or(0);
                }
                line.clear();
            }
            let (kind, body) = match path.as_str() {
                "/player.js" => ("text/javascript", &script[..]),
                path if path.starts_with("/?") => ("text/html", PAGE.as_bytes()),
                _ => ("text/plain", &b""[..]),
            };
            if path == "/told" {
                let mut body = vec![0; length];
                if reader.read_exact(&mut body).is_ok() {
                    let _ = sender.send(body);
                }
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = reader.get_mut().write_all(&[head.as_bytes(), body].concat());
        }
    });
    let profile = tempfile::tempdir_in(folder).expect("a folder");
    // It leaves its socket's folder behind when it is killed; a short path, as sockets' are.
    let sockets = tempfile::tempdir().expect("a folder");
    let _browser = Tied(
        Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--mute-audio", "--ignore-certificate-errors"])
            .args(["--autoplay-policy=no-user-gesture-required", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(page)
            .env("TMPDIR", sockets.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium starts"),
    );
    let told = told.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the page tells nothing of {url}"));
    serde_json::from_slice(&told).expect("JSON")
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

fn must_play(told: &Value, url: &str, seconds: f64) {
    assert!(told["advanced"].as_f64() >= Some(seconds), "{url}: {told}");
    assert_eq!(told["errors"], serde_json::json!([]), "{url}: {told}");
    assert_eq!(told["waits"], 0, "{url}: {told}");
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
        if told["waits"] != 0 {
            // A player this near to live waits once when something else has the processor for a tenth of a second. A server that
            // makes it wait does so the next time as well.
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
    for end in [".flv", ".m3u8"] {
        let first = publisher(&rtmp);
        let url = edge.url_of("play", "http", end).replace("NAME", "cam");
        let begun = Instant::now();
        let told = std::thread::scope(|scope| {
            let watched = scope.spawn(|| watch(folder.path(), &players, &url, 20));
            std::thread::sleep(Duration::from_secs(12));
            drop(first);
            std::thread::sleep(Duration::from_secs(2));
            let _second = publisher(&rtmp);
            watched.join().expect("watched")
        });
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
    for (scheme, end) in [("http", ".flv"), ("http", ".m3u8"), ("https", ".m3u8"), ("https", ".flv")] {
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
    }
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
