//! Plays a stream by hls.js or mpegts.js in Chromium.

use super::edge::Tied;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The players, and where each has its script.
const PLAYERS: [(&str, &str); 2] =
    [("hls.js@1.6", "hls.js/dist/hls.min.js"), ("mpegts.js@1.8", "mpegts.js/dist/mpegts.js")];
/// How long a page may take: Chromium's start, and 10 s of play.
const PATIENCE: Duration = Duration::from_secs(90);

/// The folder of the players, installed once; `None`, said aloud, where they cannot be had outside CI.
pub fn players() -> Option<PathBuf> {
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
let first = null, begun = 0, waits = 0, over = false;
const wanted = Number(new URLSearchParams(location.search).get("seconds")), url = new URLSearchParams(location.search).get("url");
const tell = () => {
  if (over) return;
  over = true;
  const quality = video.getVideoPlaybackQuality();
  const advanced = first === null ? 0 : video.currentTime - first;
  const stalled = first === null ? 0 : (performance.now() - begun) / 1000 - advanced;
  const told = { advanced, stalled, waits, errors, pictures: quality.totalVideoFrames };
  fetch("/told", { method: "POST", body: JSON.stringify(told) });
};
video.addEventListener("playing", () => { if (first === null) { first = video.currentTime; begun = performance.now(); } });
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
pub fn watch(folder: &Path, players: &Path, url: &str, seconds: u32) -> Value {
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
