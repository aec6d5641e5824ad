//! What goes wrong around a live edge: crowds, clients that mean harm, publishers and a server that are killed. Nothing is left behind.

#![allow(clippy::print_stderr)]

mod common;

use common::edge::{Edge, LOCAL, Tied, address, ffmpeg, installed, within};
use common::thalweg;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Descriptors of all threads, but for segments, which come and go with their streams; tables that threads share count for each.
    descriptors: usize,
    threads: usize,
    resident_kb: u64,
}

fn held(pid: u32) -> Held {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the server lives");
    let counts = tasks.flatten().map(|task| {
        let links = fs::read_dir(task.path().join("fd")).into_iter().flatten().flatten();
        links
            .filter_map(|fd| fs::read_link(fd.path()).ok())
            .filter(|link| !link.to_string_lossy().starts_with("/memfd:"))
            .count()
    });
    let counts: Vec<usize> = counts.collect();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the server lives");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let resident_kb = resident.trim().trim_end_matches(" kB").parse().expect("a number");
    Held { descriptors: counts.iter().sum(), threads: counts.len(), resident_kb }
}

/// Waits until no more is held than before, but for this much memory, which an allocator keeps.
fn must_be_as_before(pid: u32, before: Held, most_kb: u64) {
    let begun = Instant::now();
    loop {
        let now = held(pid);
        let is_back = now.descriptors <= before.descriptors && now.threads <= before.threads;
        if is_back && now.resident_kb <= before.resident_kb + most_kb {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{before:?}, and now {now:?}");
        sleep(Duration::from_millis(200));
    }
}

fn connect(to: &str) -> TcpStream {
    let stream = TcpStream::connect(to).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    stream.set_write_timeout(Some(Duration::from_secs(10))).expect("set");
    stream
}

/// The status of an answer to these bytes; `None` where the connection is closed without one.
fn asked(to: &str, request: &[u8]) -> Option<u16> {
    let mut stream = connect(to);
    let _ = stream.write_all(request);
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    String::from_utf8_lossy(&head[9..]).parse().ok()
}

fn get(to: &str, path: &str) -> Option<u16> {
    asked(to, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes())
}

/// How long the built-in stream may take to come.
const COMING: Duration = Duration::from_secs(20);

fn wait_for_stream(http: &str) {
    within(COMING, "the built-in stream", || (get(http, "/live/demo.m3u8") == Some(200)).then_some(()));
}

/// Writes until the other end closes; returns how many bytes it took.
fn write_on(mut stream: TcpStream, piece: &[u8], most: usize) -> usize {
    let mut written = 0;
    while written < most && stream.write_all(piece).is_ok() {
        written += piece.len();
    }
    // What it said before it closed may come first.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    written
}

/// A message in a chunk stream of its own, in chunks of 128 bytes, behind a handshake; its length may be a lie.
fn rtmp(kind: u8, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[3][..], &[0; 2 * 1536]].concat();
    for (at, chunk) in payload.chunks(128).enumerate() {
        if at == 0 {
            bytes.extend([3, 0, 0, 0]);
            bytes.extend(&length.to_be_bytes()[1..]);
            bytes.extend([kind, 0, 0, 0, 0]);
        } else {
            bytes.push(0xc3);
        }
        bytes.extend(chunk);
    }
    bytes
}

/// One of each that means harm; each must be cut off, or answered with a refusal.
fn harm(http: &str, publish: &str) {
    // A head that never ends, as fast as it goes, and one line as slow as can be.
    assert!(write_on(connect(http), b"X-More: and more\r\n", 1 << 24) < 1 << 24, "endless headers are taken");
    assert!(write_on(connect(http), b"GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 1 << 24) < 1 << 24);
    let begun = Instant::now();
    let mut slow = connect(http);
    while slow.write_all(b"G").is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "a slowloris is waited for");
        sleep(Duration::from_millis(100));
    }
    // A message that says it has 16 MB, objects in objects, arrays of four billion, and no handshake.
    let nested = [b"\x02\0\x07connect\0\x3f\xf0\0\0\0\0\0\0".to_vec(), b"\x03\0\x01a".repeat(20_000)].concat();
    let array = b"\x02\0\x07connect\0\x3f\xf0\0\0\0\0\0\0\x0a\xff\xff\xff\xff".to_vec();
    for bytes in [
        rtmp(9, 0xff_ffff, &[0; 4096]),
        rtmp(20, nested.len() as u32, &nested),
        rtmp(20, array.len() as u32, &array),
        rtmp(1, 4, &[0x7f, 0xff, 0xff, 0xff]),
        b"GET / HTTP/1.1\r\n\r\n".repeat(200),
    ] {
        let mut stream = connect(publish);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 16_384, "{} bytes of answers", rest.len());
    }
}

/// Players that are killed while they play.
fn players(folder: &Path, kind: &str, url: &str) -> Tied {
    let args = ["load", kind, url, "-n", "20", "--duration", "60s", "--json"];
    Tied(thalweg(folder, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
}

fn churn(lasts: Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!(
        "workers = 2\n{LOCAL}[hls]\ntarget = \"1s\"\nexpiry = \"2s\"\n[limits]\nhead_time = \"1s\"\nkeep_alive = \"2s\"\n"
    );
    let edge = Edge::start(folder.path(), &config, &["--demo"]);
    let (flv, hls) = (edge.url_of("play", "http", ".flv"), edge.url_of("play", "http", ".m3u8"));
    let (http, rtmp) = (address(&flv).to_owned(), edge.url("publish", "rtmp"));
    wait_for_stream(&http);
    let has_ffmpeg = installed("ffmpeg");
    let round = |number: u32| {
        let watching = [players(folder.path(), "flv", &flv), players(folder.path(), "hls", &hls)];
        let words = "-re -f lavfi -i testsrc=size=160x90:rate=25 -t 60 -c:v libx264 -preset ultrafast -g 50 -an -f flv";
        let to = rtmp.replace("NAME", &format!("cam{}", number % 3));
        let publisher =
            has_ffmpeg.then(|| Tied(ffmpeg(&format!("{words} {to}")).stderr(Stdio::null()).spawn().expect("ffmpeg")));
        // Half open, and left in the middle of an answer.
        let half: Vec<_> = (0..100).map(|_| connect(&http)).collect();
        for _ in 0..100 {
            let mut stream = connect(&http);
            let _ = stream.write_all(b"GET /live/demo.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        }
        harm(&http, address(&rtmp));
        sleep(Duration::from_secs(2));
        drop((half, publisher, watching));
    };
    // What the first one leaves is what any server holds that has been used.
    round(0);
    sleep(Duration::from_secs(5));
    let before = held(edge.pid());
    let begun = Instant::now();
    let (mut rounds, mut lows) = (0, [u64::MAX; 2]);
    while rounds == 0 || begun.elapsed() < lasts {
        rounds += 1;
        round(rounds);
        // The streams' windows fill for a minute or two, and what an allocator keeps.
        if begun.elapsed() >= lasts / 4 {
            let low = &mut lows[usize::from(begun.elapsed() > lasts * 5 / 8)];
            *low = held(edge.pid()).resident_kb.min(*low);
        }
    }
    must_be_as_before(edge.pid(), before, 32 << 10);
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!(
        "{rounds} rounds in {seconds:.0} s: {before:?}, least of each half since the first quarter {lows:?}, then {:?}",
        held(edge.pid())
    );
    // What an allocator keeps comes and goes; what leaks raises the least there is.
    assert!(lows[1] <= lows[0].saturating_add(4 << 10), "{lows:?}");
    assert_eq!(get(&http, "/live/demo.m3u8"), Some(200));
}

#[test]
fn those_who_come_and_go_and_those_who_mean_harm_leave_nothing_behind() {
    churn(Duration::ZERO);
}

/// `cargo test --release -p thalweg --test faults -- --ignored --nocapture`
#[test]
#[ignore = "ten minutes"]
fn ten_minutes_of_those_who_come_and_go_leave_nothing_behind() {
    churn(Duration::from_secs(600));
}

#[test]
fn ten_thousand_connects_at_once_are_taken_and_forgotten() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!("workers = 2\n{LOCAL}[limits]\nper_address = 20000\n");
    let edge = Edge::start(folder.path(), &config, &["--demo"]);
    let http = &edge.http();
    wait_for_stream(http);
    let before = held(edge.pid());
    let begun = Instant::now();
    let crowd: Vec<_> = (0..10_000).map(|_| TcpStream::connect(http).expect("connected")).collect();
    let took = begun.elapsed();
    // Whoever comes now is served as well.
    let begun = Instant::now();
    assert_eq!(get(http, "/live/demo.m3u8"), Some(200));
    let late = begun.elapsed();
    let full = held(edge.pid());
    eprintln!("10,000 connects in {took:?}, the next answer in {late:?}; {before:?}, {full:?}");
    assert!(late < Duration::from_secs(5), "{late:?}");
    assert!(full.descriptors >= before.descriptors + 9_900, "{full:?}");
    drop(crowd);
    must_be_as_before(edge.pid(), before, 16 << 10);
}

#[test]
fn players_recover_when_the_server_is_killed_and_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut edge = Edge::start(folder.path(), &format!("{LOCAL}[hls]\ntarget = \"1s\"\n"), &["--demo"]);
    let urls = [edge.url_of("play", "http", ".flv"), edge.url_of("play", "http", ".m3u8")];
    let (api, rtmp) = (edge.url("api", "http"), edge.url("publish", "rtmp"));
    wait_for_stream(address(&urls[0]));
    let loads = ["flv", "hls"].into_iter().zip(&urls).map(|(kind, url)| {
        let args = ["load", kind, url, "-n", "20", "--ramp", "1s", "--duration", "24s", "--json"];
        thalweg(folder.path(), &args).stdout(Stdio::piped()).spawn().expect("it starts")
    });
    let loads: Vec<_> = loads.collect();
    sleep(Duration::from_secs(6));
    edge.kill();
    sleep(Duration::from_secs(1));
    let at = |url: &str| address(url).to_owned();
    let config = format!(
        "[rtmp]\nlisten = [\"{}\"]\n[http]\nlisten = [\"{}\"]\n[api]\nlisten = [\"{}\"]\n[hls]\ntarget = \"1s\"\n",
        at(&rtmp),
        at(&urls[0]),
        at(&api)
    );
    let edge = Edge::start(folder.path(), &config, &["--demo"]);
    sleep(Duration::from_secs(12));
    // All of them watch again.
    let mut api = connect(address(&edge.url("api", "http")));
    api.write_all(b"GET /api/viewers HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("asked");
    let mut answer = String::new();
    api.read_to_string(&mut answer).expect("an answer");
    let viewers: Value = serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON");
    let viewers = viewers["viewers"].as_array().expect("a list").clone();
    let count = |kind: &str| viewers.iter().filter(|viewer| viewer.to_string().contains(kind)).count();
    assert!(count("\"flv\"") >= 20 && count("\"hls\"") >= 20, "{} viewers: {:?}", viewers.len(), viewers.first());
    for load in loads {
        let (out, err) = common::texts(&load.wait_with_output().expect("it ends"));
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        assert_eq!(report["players"], serde_json::json!({"started": 20, "playing": 20}));
        assert!(report["failures"].as_object().is_some_and(|kinds| !kinds.is_empty()), "nobody noticed: {report}");
        // The server was away for a second or two, and then a picture had to come.
        let stalled = report["stalls"]["part"].as_f64().expect("a part");
        assert!(stalled < 0.6, "{report}");
    }
}

#[test]
fn no_path_escapes_and_nothing_is_had_without_its_token() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("secret.m3u8"), "secret").expect("written");
    let config = format!("{LOCAL}[auth]\nplay_key = \"a-long-key\"\n[hls]\ntarget = \"1s\"\n");
    let edge = Edge::start(folder.path(), &config, &["--demo"]);
    let http = &edge.http();
    within(COMING, "the built-in stream", || (get(http, "/live/demo.flv") == Some(401)).then_some(()));
    sleep(Duration::from_secs(3));
    let long = format!("/live/{}.m3u8", "a".repeat(200_000));
    let deep = "/a".repeat(4_000);
    let session = format!("/live/demo/{}/", "A".repeat(40));
    let (list, segment) = (format!("{session}index.m3u8"), format!("{session}0.ts"));
    let paths = [
        "/../secret.m3u8",
        "/live/../secret.m3u8",
        "/live/..%2fsecret.m3u8",
        "/live/%2e%2e/secret.m3u8",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%5c..%5csecret.m3u8",
        "/live/....//secret.m3u8",
        "/live/demo%00.m3u8",
        "/live/demo.flv%00?token=x",
        "/live/demo%252eflv",
        "/live//demo.flv",
        "//etc/passwd",
        "/live/demo.flv/",
        "/live/demo.flv/..",
        "/live/%ff%fe.flv",
        "/live/demo.m3u8?token=",
        "/live/demo.flv?token=1.a.b&token=2",
        "/live/DEMO.flv",
        "/live/demo.m3u8",
        "/live/demo/index.m3u8",
        "/live/demo/0.ts",
        &list,
        &segment,
        &long,
        &deep,
    ];
    for path in paths {
        let status = get(http, path);
        let short = &path[..path.len().min(60)];
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{short}: {status:?}");
    }
    // Nor by names that are no request of a path.
    for request in
        ["GET http://a/../secret.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n", "GET ../secret.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n"]
    {
        let status = asked(http, request.as_bytes());
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{request}: {status:?}");
    }
}
