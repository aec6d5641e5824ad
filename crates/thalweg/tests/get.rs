//! `thalweg get` against a server of many faults: the file is whole in the end, byte for byte, or there is none.

#![allow(clippy::print_stderr)]

mod common;

use common::{run, thalweg};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What a server does wrong, or differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Good,
    /// Ignores Range.
    NoRange,
    /// The body has no length.
    Chunked,
    /// Each connection breaks after 300 kB.
    Resets,
    /// 2 MB a second for each connection.
    Slow,
    /// Every second answer is another version.
    ChangesOnce,
    /// Content-Range names other bytes than were asked for, after the first answer.
    Lies,
    /// Redirects to itself.
    Loop,
    /// Two answers with 503 before it works.
    Busy,
    /// The body is 100 bytes short.
    Short,
    Missing,
    Empty,
    /// A name that leads elsewhere.
    BadName,
    /// A digest that does not hold.
    BadDigest,
}

/// Bytes that differ from place to place.
fn content(len: usize, version: u8) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ u64::from(version);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state >> 16).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

struct Server {
    address: SocketAddr,
    requests: Arc<AtomicU32>,
}

impl Server {
    fn start(way: Way, len: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, requests) = (listener.local_addr().expect("an address"), Arc::new(AtomicU32::new(0)));
        let counted = Arc::clone(&requests);
        let bytes = Arc::new([content(len, 0), content(len, 1)]);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (bytes, counted) = (Arc::clone(&bytes), Arc::clone(&counted));
                // A client that goes away is what these tests are about.
                std::thread::spawn(move || drop(serve(&stream, way, &bytes, &counted)));
            }
        });
        Self { address, requests }
    }

    fn url(&self) -> String {
        format!("http://{}/dir/object.bin", self.address)
    }
}

fn serve(stream: &TcpStream, way: Way, versions: &[Vec<u8>; 2], requests: &AtomicU32) -> std::io::Result<()> {
    let mut input = BufReader::new(stream);
    loop {
        let (mut range, mut condition, mut line) = (None, None, String::new());
        while input.read_line(&mut line)? > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("range: bytes=") {
                let (first, last) = value.trim().split_once('-').expect("a range");
                range = Some((first.parse::<usize>().expect("a number"), last.parse::<usize>().ok()));
            }
            if let Some(value) = lower.strip_prefix("if-range: ") {
                condition = Some(value.trim().to_owned());
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let count = requests.fetch_add(1, Ordering::Relaxed);
        answer(stream, way, versions, count, range, condition.as_deref())?;
    }
}

fn answer(
    mut stream: &TcpStream,
    way: Way,
    versions: &[Vec<u8>; 2],
    count: u32,
    range: Option<(usize, Option<usize>)>,
    condition: Option<&str>,
) -> std::io::Result<()> {
    let plain = match way {
        Way::Loop => "HTTP/1.1 302 Found\r\nLocation: /dir/object.bin\r\nContent-Length: 0\r\n\r\n",
        Way::Missing => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        Way::Busy if count < 2 => "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        Way::Empty if range.is_some() => "HTTP/1.1 416 No\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n",
        _ => "",
    };
    if !plain.is_empty() {
        return stream.write_all(plain.as_bytes());
    }
    let version = usize::from(way == Way::ChangesOnce && count > 0);
    let (bytes, tag) = (&versions[version], format!("\"v{version}\""));
    let asked = range.filter(|_| !matches!(way, Way::NoRange | Way::Chunked | Way::Short));
    let asked = asked.filter(|_| condition.is_none_or(|condition| condition == tag));
    let (start, end) =
        asked.map_or((0, bytes.len()), |(start, last)| (start, last.map_or(bytes.len(), |last| last + 1)));
    let shift = usize::from(way == Way::Lies && start > 0);
    let mut head = match asked {
        Some(_) => format!(
            "HTTP/1.1 206 Part\r\nContent-Range: bytes {}-{}/{}\r\n",
            start - shift,
            end - 1 - shift,
            bytes.len()
        ),
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    head += &match way {
        Way::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
        _ => format!("Content-Length: {}\r\nETag: {tag}\r\n", end - start),
    };
    head += match way {
        Way::BadName => "Content-Disposition: attachment; filename=\"../../evil\"\r\n",
        Way::BadDigest => "Repr-Digest: sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:\r\n",
        _ => "",
    };
    stream.write_all((head + "\r\n").as_bytes())?;
    let body = &bytes[start..end];
    match way {
        Way::Chunked => {
            for piece in body.chunks(40_000) {
                write!(stream, "{:x}\r\n", piece.len())?;
                stream.write_all(piece)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Way::Resets | Way::ChangesOnce if body.len() > 300_000 && (way == Way::Resets || count == 0) => {
            stream.write_all(&body[..300_000])?;
            std::thread::sleep(Duration::from_millis(20));
            Err(std::io::Error::other("reset"))
        }
        Way::Lies if start == 0 && body.len() > 300_000 => {
            stream.write_all(&body[..300_000])?;
            Err(std::io::Error::other("reset"))
        }
        Way::Short => {
            stream.write_all(&body[..body.len() - 100])?;
            Err(std::io::Error::other("short"))
        }
        Way::Slow => body.chunks(20_000).try_for_each(|piece| {
            std::thread::sleep(Duration::from_millis(10));
            stream.write_all(piece)
        }),
        _ => stream.write_all(body),
    }
}

fn get(folder: &Path, url: &str, args: &[&str]) -> Output {
    let args = [&["get", url], args].concat();
    thalweg(folder, &args).env("no_proxy", "*").output().expect("the program starts")
}

/// Fetches, expects the code, and returns the report and stderr.
fn fetch(way: Way, len: usize, args: &[&str], code: i32) -> (tempfile::TempDir, Value, String) {
    let (server, folder) = (Server::start(way, len), tempfile::tempdir().expect("a folder"));
    let output = get(folder.path(), &server.url(), &[&["--json"], args].concat());
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{way:?}: {err}");
    (folder, serde_json::from_slice(&output.stdout).unwrap_or(Value::Null), err)
}

/// Names in the folder, without the one for temporary files.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name != "tmp");
    names.sort();
    names
}

#[test]
fn whatever_the_server_does_the_file_is_whole() {
    const LEN: usize = 2_000_000;
    for (way, version) in [
        (Way::Good, 0),
        (Way::NoRange, 0),
        (Way::Chunked, 0),
        (Way::Resets, 0),
        (Way::Slow, 0),
        (Way::ChangesOnce, 1),
        (Way::Busy, 0),
    ] {
        let (folder, report, err) = fetch(way, LEN, &[], 0);
        assert_eq!(names(folder.path()), ["object.bin"], "{way:?}: {err}");
        let found = fs::read(folder.path().join("object.bin")).expect("a file");
        assert!(found == content(LEN, version), "{way:?}: the bytes differ; {err}");
        assert_eq!(report["bytes"], LEN, "{way:?}");
        assert_eq!(report["ranges"]["most"], 1, "{way:?}: loopback is not limited by the window");
    }
}

#[test]
fn what_cannot_be_fetched_leaves_no_file() {
    for (way, code, says) in [
        (Way::Loop, 2, "there are more than 20"),
        (Way::Missing, 2, "status 404"),
        (Way::Short, 3, "tries"),
        (Way::BadDigest, 1, "the checksum is"),
    ] {
        let (folder, _, err) = fetch(way, 500_000, &["--retries", "1"], code);
        assert!(err.contains(says) && err.contains("\n\nhint: "), "{way:?}: {err}");
        assert!(!folder.path().join("object.bin").exists(), "{way:?}");
    }
    // A server that names other bytes than it was asked for is not believed.
    let (folder, _, err) = fetch(Way::Lies, 1_000_000, &["--retries", "1"], 1);
    assert!(err.contains("does not keep to ranges"), "{err}");
    assert!(!folder.path().join("object.bin").exists());
}

#[test]
fn empty_objects_names_and_existing_files() {
    let (folder, report, _) = fetch(Way::Empty, 0, &[], 0);
    assert_eq!(
        (fs::read(folder.path().join("object.bin")).expect("a file").len(), report["bytes"].as_u64()),
        (0, Some(0))
    );

    let (folder, _, _) = fetch(Way::BadName, 1_000, &[], 0);
    assert_eq!(names(folder.path()), ["evil"]);
    assert!(!folder.path().join("../../evil").exists());

    let (server, folder) = (Server::start(Way::Good, 1_000), tempfile::tempdir().expect("a folder"));
    fs::write(folder.path().join("mine"), "mine").expect("written");
    let refused = get(folder.path(), &server.url(), &["-o", "mine"]);
    assert_eq!((refused.status.code(), server.requests.load(Ordering::Relaxed)), (Some(2), 0), "nothing is sent");
    assert_eq!(fs::read(folder.path().join("mine")).expect("a file"), b"mine");
    assert!(get(folder.path(), &server.url(), &["-o", "mine", "--force"]).status.success());
    assert_eq!(fs::read(folder.path().join("mine")).expect("a file"), content(1_000, 0));
    let stream = get(folder.path(), &server.url(), &["-O", "-"]);
    assert!(stream.stdout == content(1_000, 0));
}

#[test]
fn credentials_and_queries_appear_nowhere() {
    let (server, folder) = (Server::start(Way::Missing, 0), tempfile::tempdir().expect("a folder"));
    let url = format!("http://user:secret1@{}/x?token=secret2", server.address);
    let (out, err) = run(folder.path(), &["get", &url, "--header", "X-Key: secret3", "--json"], 2);
    assert!(err.contains("status 404") && !format!("{out}{err}").contains("secret"), "{out}{err}");
    let (_, err) = run(folder.path(), &["get", &url, "--header", "secret3", "--json"], 2);
    assert!(!err.contains("secret"), "{err}");
}

#[test]
fn a_rate_limit_holds() {
    let (_, report, _) = fetch(Way::Good, 1_500_000, &["--limit-rate", "1MB/s"], 0);
    let seconds = report["wall_s"].as_f64().expect("a time");
    assert!((1.3..3.0).contains(&seconds), "{seconds} s");
    assert_eq!(report["limits"][0]["limit"], "rate-limit", "{report}");
}

/// Kills downloads at moments that differ, each time a little later, until one ends; returns how many were killed.
fn kill(rounds: u64) -> u64 {
    const LEN: usize = 6_000_000;
    let (server, folder) = (Server::start(Way::Slow, LEN), tempfile::tempdir().expect("a folder"));
    let (target, mut killed, mut resumed) = (folder.path().join("object.bin"), 0, 0);
    for round in 0..rounds {
        let args = ["get", &server.url(), "--quiet"];
        let mut command = thalweg(folder.path(), &args);
        let mut child =
            command.env("no_proxy", "*").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(150 + round * 337 % 700));
        child.kill().expect("killed");
        killed += u64::from(!child.wait().expect("ended").success());
        if target.exists() {
            assert!(fs::read(&target).expect("a file") == content(LEN, 0), "a file with its name is whole");
            fs::remove_file(&target).expect("removed");
        }
        resumed += u64::from(folder.path().join("object.bin.part.json").exists());
    }
    assert!(resumed > 0, "no killed download left anything to go on with");
    let output = get(folder.path(), &server.url(), &["--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read(&target).expect("a file") == content(LEN, 0), "the bytes differ");
    assert_eq!(names(folder.path()), ["object.bin"], "nothing else is left");
    killed
}

#[test]
fn ten_kills_and_the_file_is_whole() {
    assert!(kill(10) >= 5);
}

#[test]
#[ignore = "a minute; its result is in docs/get.md"]
fn fifty_kills_and_the_file_is_whole() {
    let killed = kill(50);
    eprintln!("{killed} of 50 downloads were killed on their way");
    assert!(killed >= 25);
}
