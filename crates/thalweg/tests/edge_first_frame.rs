//! The edge's first keyframe over a long path, in the lab, against the least that arithmetic allows.
//!
//! Needs the lab kernel 6.12, which `./x test` builds first.

mod common;

use common::edge::{Edge, LOCAL};
use common::{figure, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The scenario's path.
const RTT_MS: f64 = 100.0;
const RATE_BPS: f64 = 100e6;
/// Payload of a packet with timestamps over an MTU of 1500, and its frame.
const SEGMENT: u64 = 1448;
const FRAME_BITS: f64 = 1514.0 * 8.0;
/// More of HTTP's and FLV's headers than there ever is, and less than a keyframe that would come late.
const HEAD_MOST: usize = 4096;

/// What the server sends until its first keyframe is whole, HTTP's head included.
fn bytes_to_first_keyframe(address: &str) -> u64 {
    loop {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET /live/demo.flv HTTP/1.0\r\nHost: {address}\r\n\r\n").expect("sent");
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).expect("a head") > 0 {}
        if !head.starts_with("HTTP/1.1 200 ") {
            // The built-in publisher has only just been started.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        }
        let mut take = |count: usize| {
            let mut bytes = vec![0; count];
            reader.read_exact(&mut bytes).expect("the stream goes on");
            bytes
        };
        // FLV's own header and the length of no tag; then tags, each with its length behind it.
        let mut total = head.len() + take(9 + 4).len();
        loop {
            let header = take(11);
            let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            let body = take(length + 4);
            // Without the length behind it: the keyframe is whole before that.
            total += header.len() + length;
            if header[0] == 9 && body[..2] == [0x17, 1] {
                assert!((0..HEAD_MOST).contains(&(total - length)), "{total} bytes, the keyframe is {length}");
                return total as u64;
            }
            total += 4;
        }
    }
}

/// The least time, in milliseconds, until so many bytes have come: the handshake, the request's way and the first window's, a round trip
/// for each further window, each twice as large, and the bottleneck's time for the last one.
fn least_ms(bytes: u64, initcwnd: u64, handshakes: f64) -> f64 {
    let (mut left, mut window, mut round_trips) = (bytes.div_ceil(SEGMENT), initcwnd, handshakes + 1.0);
    while left > window {
        left -= window;
        window *= 2;
        round_trips += 1.0;
    }
    round_trips * RTT_MS + left as f64 * FRAME_BITS / RATE_BPS * 1e3
}

#[test]
fn the_first_keyframe_is_within_a_round_trip_of_the_least() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = {
        let edge = Edge::start(folder.path(), LOCAL, &["--demo"]);
        let url = edge.url_of("play", "http", ".flv");
        bytes_to_first_keyframe(url.split('/').nth(2).expect("an address"))
    };
    let args = ["lab", "run", "edge-first-frame", "--samples", "off", "--capture", "off", "--out", "out"];
    let report = json(folder.path(), &args);
    let mut wrong = Vec::new();
    for control in ["cubic", "bbr"] {
        for (suffix, handshakes) in [("", 1.0), (", Fast Open", 0.0)] {
            for initcwnd in [10, 20, 30, 40] {
                for loss in ["0%", "0.5%"] {
                    let arm = format!("{control}{suffix}, loss {loss}, initcwnd {initcwnd}");
                    let found = |path: &str| figure(&report, &arm, path);
                    let at = |part: &str| found(&format!("first_frame_ms.{part}"));
                    let least = least_ms(bytes, initcwnd, handshakes);
                    let mut must = |holds: bool, what: &str| {
                        if !holds {
                            let (least_of_all, median, most) = (at("min"), at("p50"), at("max"));
                            wrong.push(format!("{arm}: {what}: {least:.1}; {least_of_all}, {median}, {most}"));
                        }
                    };
                    must(found("failed_runs") == 0.0, "a player had no picture");
                    must(at("min") >= least, "less than arithmetic allows");
                    must(at("p50") <= least + RTT_MS, "the median is more than a round trip late");
                    // What comes as acknowledgements clock it is not late at all.
                    must(control == "bbr" || at("p50") <= least + 0.05 * RTT_MS, "the median is late");
                    if loss == "0%" {
                        // A client's first connection gets the cookie, and has a handshake.
                        must(at("max") <= least_ms(bytes, initcwnd, 1.0) + RTT_MS, "somebody is late");
                    } else {
                        must(found("retransmits") > 0.0, "nothing was lost");
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{bytes} bytes; least; measured least, median, greatest:\n{}", wrong.join("\n"));
    let logs = common::files(&folder.path().join("out"));
    let logs: Vec<_> = logs.iter().filter(|path| path.to_string_lossy().ends_with(".server.log")).collect();
    assert_eq!(logs.len(), 32);
    for log in logs {
        let text = fs::read_to_string(folder.path().join("out").join(log)).expect("a log");
        assert!(!text.contains("refuses"), "{}: {text}", log.display());
    }
}

#[test]
fn the_same_seed_gives_the_same_first_frames() {
    let folder = tempfile::tempdir().expect("a folder");
    let arm = "bbr, Fast Open, loss 0.5%, initcwnd 10";
    let run = |seed: &str| {
        let args = ["lab", "run", "edge-first-frame", "--arm", arm, "--set", "workload.times=12", "--seed", seed];
        let off = ["--capture", "off", "--samples", "off", "--out", seed];
        let report = json(folder.path(), &[&args[..], &off].concat());
        fs::remove_dir_all(folder.path().join(seed)).expect("the run's folder");
        report["arms"].to_string()
    };
    let (one, again, other) = (run("7"), run("7"), run("8"));
    assert_eq!(one, again);
    assert_ne!(one, other);
}
