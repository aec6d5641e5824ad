//! `thalweg load` against a server of a few lines that knows what players should ask for.

mod common;

use common::{run, thalweg};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// What was asked for, by session: the numbers of its segments, and how often its playlist.
#[derive(Default)]
struct Asked {
    segments: BTreeMap<String, Vec<u64>>,
    playlists: BTreeMap<String, usize>,
    sessions: u32,
}

/// A live stream of segments of half a second; the entry is answered late.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Asked>>,
}

/// How long the entry takes.
const LATE: Duration = Duration::from_millis(150);

fn packet(start: bool, pid: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x47, u8::from(start) << 6 | (pid >> 8) as u8, pid as u8, 0x10];
    packet.extend(payload);
    packet.resize(188, 0xff);
    packet
}

/// A transport stream with two pictures. The checks of its tables are left out: a load does not look at them.
fn segment() -> Vec<u8> {
    let pat = [0, 0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xe1, 0, 0, 0, 0, 0];
    let pmt = [0, 2, 0xb0, 18, 0, 1, 0xc1, 0, 0, 0xe1, 1, 0xf0, 0, 0x1b, 0xe1, 1, 0xf0, 0, 0, 0, 0, 0];
    let picture = [0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0];
    [packet(true, 0, &pat), packet(true, 0x100, &pmt), packet(true, 0x101, &picture), packet(true, 0x101, &picture)]
        .concat()
}

fn answer(stream: &mut TcpStream, status: &str, more: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{more}\r\n", body.len());
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

fn serve(mut stream: TcpStream, begun: Instant, asked: &Mutex<Asked>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a copy")).lines();
    loop {
        let Some(Ok(request)) = lines.next() else { return };
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let path = request.split([' ', '?']).nth(1).expect("a path").to_owned();
        let now = (begun.elapsed().as_millis() / 500) as u64;
        match path.trim_start_matches('/').split('/').collect::<Vec<_>>()[..] {
            ["live.m3u8"] => {
                let mut asked = asked.lock().expect("asked");
                asked.sessions += 1;
                let to = format!("Location: /s{}/index.m3u8\r\n", asked.sessions);
                drop(asked);
                sleep(LATE);
                answer(&mut stream, "302 Found", &to, b"");
            }
            [session, "index.m3u8"] => {
                *asked.lock().expect("asked").playlists.entry(session.to_owned()).or_default() += 1;
                let mut text =
                    format!("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{now}\n");
                (now..now + 6).for_each(|n| text += &format!("#EXTINF:0.5,\n{n}.ts\n"));
                answer(&mut stream, "200 OK", "", text.as_bytes());
            }
            [session, file] if file.ends_with(".ts") => {
                let number = file.trim_end_matches(".ts").parse().expect("a number");
                asked.lock().expect("asked").segments.entry(session.to_owned()).or_default().push(number);
                answer(&mut stream, "200 OK", "", &segment());
            }
            _ => answer(&mut stream, "404 Not Found", "", b"no"),
        }
    }
}

fn server() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, asked) = (listener.local_addr().expect("an address"), Arc::<Mutex<Asked>>::default());
    let (begun, shared) = (Instant::now(), Arc::clone(&asked));
    spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            spawn(move || serve(stream, begun, &shared));
        }
    });
    Server { address, asked }
}

#[test]
fn each_player_has_a_session_and_takes_each_segment_once_in_order() {
    let server = server();
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("http://{}/live.m3u8?token=secret", server.address);
    let args = ["load", "hls", &url, "-n", "6", "--duration", "4s", "--ramp", "1s", "--processes", "2", "--json"];
    let (out, _) =
        run(folder.path(), &[&args[..], &["--expect", "failures <= 0", "--expect", "playing >= 6"]].concat(), 0);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert!(!out.contains("secret"), "a token is shown: {out}");
    assert_eq!(report["players"], serde_json::json!({"started": 6, "playing": 6}));
    // From when it was due, the answer that was late included.
    assert!(report["first_frame_ms"]["p50"].as_f64() >= Some(LATE.as_secs_f64() * 1e3), "{report}");
    let asked = server.asked.lock().expect("asked");
    assert_eq!((asked.sessions, asked.segments.len()), (6, 6));
    let mut all = 0;
    for (session, numbers) in &asked.segments {
        all += numbers.len();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1), "{session} asked for {numbers:?}");
        // Three seconds of media are there at once, and then two segments a second of the 3 or 4 that it plays.
        assert!((9..=15).contains(&numbers.len()), "{session} asked for {numbers:?}");
        // Once a target duration, that is a second, at most, and half of that when nothing is new.
        assert!(asked.playlists[session] <= 9, "{session} asked {} times for the playlist", asked.playlists[session]);
    }
    assert_eq!(report["segment_ms"]["count"], all);
    assert_eq!(report["bytes"].as_u64().map(|bytes| bytes > 752 * all as u64), Some(true));
    assert_eq!(report["stalls"]["count"], 0, "{report}");
}

#[test]
fn failures_and_what_is_not_as_expected_end_with_1() {
    let server = server();
    let folder = tempfile::tempdir().expect("a folder");
    let url = |path: &str| format!("http://{}/{path}", server.address);
    let (out, _) = run(folder.path(), &["load", "hls", &url("none"), "-n", "2", "--duration", "500ms"], 1);
    assert!(out.contains("0 of 2 players") && out.contains("failed    2 times: HTTP 404"), "{out}");
    let late =
        ["load", "hls", &url("live.m3u8"), "-n", "1", "--duration", "1s", "--expect", "first_frame_max <= 100ms"];
    let (out, _) = run(folder.path(), &late, 1);
    assert!(out.contains("fails     first_frame_max <= 100ms"), "{out}");
    let (out, _) = run(folder.path(), &["load", "flv", &url("live.m3u8"), "-n", "1", "--duration", "600ms"], 1);
    assert!(out.contains("failed"), "{out}");
}

#[test]
fn what_cannot_be_loaded_is_one_sentence_and_2() {
    let folder = tempfile::tempdir().expect("a folder");
    for (args, says) in [
        (&["load", "hls", "ftp://127.0.0.1/x"][..], "only http:// and https://"),
        (&["load", "hls", "http://127.0.0.1:1/x", "--slow", "60%", "--stalled", "50%"], "more than all players"),
        (&["load", "flv", "http://127.0.0.1:1/x", "--source", "::1"], "another family"),
        (&["load", "flv", "http://127.0.0.1:1/x", "--expect", "speed <= 1"], "there is no figure 'speed'"),
        (&["load", "flv", "nonsense"], "it has no scheme"),
        (&["load", "hls", "127.0.0.1:1/x.m3u8"], "it has no scheme"),
        (&["load", "hls", "http://127.0.0.1:1/x", "--duration", "0s"], "--duration is 0"),
    ] {
        let output = thalweg(folder.path(), args).output().expect("the program starts");
        let (_, err) = common::texts(&output);
        assert!(output.status.code() == Some(2) && err.contains(says), "{args:?}: {err}");
    }
    // Nobody listens: counted, not a failure of the command.
    let (out, _) = run(folder.path(), &["load", "flv", "http://127.0.0.1:1/x", "-n", "1", "--duration", "200ms"], 1);
    assert!(out.contains("Connection refused"), "{out}");
}
