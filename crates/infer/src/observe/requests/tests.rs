//! Requests of HTTP, of pipelines, of TLS, and turns, packet by packet.

use crate::flow::application::application;
use crate::observe::connection_phases::Phase;
use crate::tcp::connection::Connection;
use crate::testing::{connection_with, packet};
use thalweg_model::{Application, RequestTiming};
use thalweg_wire::{Flags, Segment};

const ACK: u8 = Flags::ACK;

/// A conversation, a packet after the other.
struct Talk {
    packets: Vec<(u64, Segment, Vec<u8>)>,
    /// Next number of each side, and what it acknowledges of the other.
    next: [u32; 2],
    acked: [u32; 2],
}

impl Talk {
    /// A handshake of 20 ms.
    fn new() -> Self {
        let opening = [
            (0, packet(true, Flags::SYN, 100, 0, 0)),
            (20, packet(false, Flags::SYN | ACK, 500, 101, 0)),
            (20, packet(true, ACK, 101, 501, 0)),
        ];
        Self {
            packets: opening.map(|(at, segment)| (at, segment, Vec::new())).to_vec(),
            next: [101, 501],
            acked: [501, 101],
        }
    }

    /// A packet with these first bytes and this many in all, which acknowledges what came so far.
    fn send(&mut self, at: u64, side: usize, front: &[u8], len: u32) {
        self.acked[side] = self.next[1 - side];
        self.send_old(at, side, front, len);
    }

    /// The same, which acknowledges no more than the packet before it.
    fn send_old(&mut self, at: u64, side: usize, front: &[u8], len: u32) {
        let segment = packet(side == 0, ACK, self.next[side], self.acked[side], len);
        self.packets.push((at, segment, front.to_vec()));
        self.next[side] += len;
    }

    fn connection(&self) -> Connection {
        let packets: Vec<_> = self.packets.iter().map(|(at, segment, front)| (*at, *segment, &front[..])).collect();
        connection_with(&packets)
    }

    fn told(&self) -> Application {
        application(&self.connection()).map(|found| *found).unwrap_or_default()
    }
}

/// Each request with its status, wait, transfer and bytes both ways.
fn rows(told: &Application) -> Vec<String> {
    let row = |one: &RequestTiming| {
        let text = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let status = one.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        let (wait, transfer) = (text(one.wait_ms), text(one.transfer_ms));
        format!("{} {status} {wait} {transfer} {}/{}", one.name(), one.bytes_up, one.bytes_down)
    };
    told.requests.iter().map(row).collect()
}

const GET: &[u8] = b"GET /a?key=1 HTTP/1.1\r\nHost: example.org\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

#[test]
fn requests_of_a_connection_that_is_kept_alive() {
    let mut talk = Talk::new();
    talk.send(20, 0, GET, 100);
    talk.send(120, 1, OK, 1_000);
    talk.send(150, 1, b"", 500);
    // A body in two segments, with an interim response; the second answer takes 300 ms.
    talk.send(200, 0, b"POST /b HTTP/1.1\r\nExpect: 100-continue\r\n\r\n", 200);
    talk.send(220, 1, b"HTTP/1.1 100 Continue\r\n\r\n", 25);
    talk.send(230, 0, b"", 800);
    talk.send(530, 1, b"HTTP/1.1 503 Service Unavailable\r\n", 300);
    let last = talk.packets.last().expect("a packet").clone();
    talk.packets.push((560, last.1, last.2));
    talk.send(600, 0, GET, 100);
    let told = talk.told();
    assert_eq!(rows(&told), ["GET /a 200 100 30 100/1500", "POST /b 503 300 0 1000/300", "GET /a - - - 100/0"]);
    assert_eq!(told.requests[0].host.as_deref(), Some("example.org"));
    assert_eq!((told.requests[1].start_s, told.requests[1].request_ms), (0.2, 30.0));
    let waits = told.waits.expect("requests");
    assert_eq!((waits.count, waits.unanswered, waits.unlisted), (3, 1, 0));
    assert_eq!((waits.p50_ms, waits.p90_ms, waits.max_ms), (Some(100.0), Some(300.0), Some(300.0)));
}

#[test]
fn requests_of_a_pipeline_get_their_responses_in_order() {
    let mut talk = Talk::new();
    talk.send(20, 0, b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n", 38);
    talk.send_old(25, 0, b"GET /c HTTP/1.1\r\n\r\n", 19);
    talk.send(120, 1, OK, 1_000);
    talk.send(130, 1, b"", 1_000);
    talk.send(140, 1, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 72);
    assert_eq!(rows(&talk.told()), ["GET /a 200 100 10 38/2000", "GET /b 404 120 0 0/0", "GET /c 204 115 0 19/72"]);
}

#[test]
fn without_first_lines_turns_are_told() {
    let mut talk = Talk::new();
    // The server speaks first: that answers nothing.
    talk.send(30, 1, b"220 ready", 50);
    talk.send(40, 0, b"", 100);
    talk.send(50, 0, b"", 100);
    talk.send(150, 1, b"", 1_000);
    talk.send(160, 1, b"", 1_000);
    // Sent while the response is on its way: what comes next does not acknowledge it.
    talk.send(170, 0, b"", 13);
    talk.send_old(180, 1, b"", 1_000);
    talk.send(300, 0, b"", 100);
    talk.send(310, 1, b"", 10);
    talk.send(400, 0, b"", 5_000);
    assert_eq!(rows(&talk.told()), ["(turn) - 100 30 213/3000", "(turn) - 10 0 100/10"]);
    // A stream up that the server's data does not acknowledge.
    let mut talk = Talk::new();
    for n in 0..50 {
        talk.send_old(20 + n, 0, b"", 1_000);
        talk.send_old(20 + n, 1, b"", 10);
    }
    assert_eq!(talk.told(), Application::default());
}

/// A record of this kind with a body of zeros behind these bytes.
fn record(kind: u8, front: &[u8], len: u16) -> Vec<u8> {
    let mut record = vec![kind, 3, 3];
    record.extend(len.to_be_bytes());
    record.extend(front);
    record.resize(5 + usize::from(len), 0);
    record
}

#[test]
fn the_handshake_of_tls_is_timed_and_no_request() {
    let hello = |kind| record(22, &[kind, 0, 0, 200, 3, 3], 204);
    let change = record(20, &[1], 1);
    for is_1_3 in [false, true] {
        let mut talk = Talk::new();
        let send = |talk: &mut Talk, at, side, parts: &[Vec<u8>]| {
            let front = parts.concat();
            talk.send(at, side, &front, front.len() as u32);
        };
        send(&mut talk, 25, 0, &[hello(1)]);
        if is_1_3 {
            let mut server = hello(2);
            // Behind a cipher suite: one extension, the version.
            server[47..53].copy_from_slice(&[0, 156, 0, 43, 0, 2]);
            server[53..55].copy_from_slice(&[3, 4]);
            send(&mut talk, 55, 1, &[server, change.clone(), record(23, &[], 900)]);
            send(&mut talk, 60, 0, &[change.clone(), record(23, &[], 69)]);
        } else {
            send(&mut talk, 55, 1, &[hello(2), record(22, &[11], 900)]);
            send(&mut talk, 57, 0, &[record(22, &[16], 70), change.clone(), record(22, &[9], 40)]);
            send(&mut talk, 60, 1, &[change.clone(), record(22, &[9], 40)]);
        }
        send(&mut talk, 61, 0, &[record(23, &[], 300)]);
        if is_1_3 {
            // Session tickets.
            send(&mut talk, 80, 1, &[record(23, &[], 250), record(23, &[], 250)]);
        }
        send(&mut talk, 161, 1, &[record(23, &[], 1_200)]);
        send(&mut talk, 300, 0, &[record(21, &[], 26)]);
        send(&mut talk, 320, 1, &[record(21, &[], 26)]);
        let told = talk.told();
        let tls = told.tls.clone().expect("a handshake");
        assert_eq!((tls.start_s, tls.handshake_ms), (0.025, Some(35.0)), "{is_1_3}");
        assert_eq!(tls.version.as_deref(), Some(if is_1_3 { "1.3" } else { "1.2" }));
        let down = if is_1_3 { 1_715 } else { 1_205 };
        assert_eq!(rows(&told), [format!("(turn) - 100 0 305/{down}")]);
        let made =
            connection_with(&talk.packets.iter().map(|(at, s, front)| (*at, *s, &front[..])).collect::<Vec<_>>());
        assert!((made.observers.phases.seconds(Phase::Tls) - 0.035).abs() < 1e-9);
    }
}

#[test]
fn of_many_requests_the_slowest_are_kept_and_all_are_counted() {
    let mut talk = Talk::new();
    let mut now = 20;
    for n in 1..=5_000 {
        talk.send(now, 0, b"", 10);
        now += n % 100 + 1;
        talk.send(now, 1, b"", 10);
    }
    let told = talk.told();
    let waits = told.waits.expect("requests");
    assert_eq!((waits.count, waits.unlisted, told.requests.len()), (5_000, 4_000, 1_000));
    assert!((waits.p50_ms.unwrap_or_default() - 50.0).abs() < 1.0, "{waits:?}");
    assert_eq!((waits.p90_ms, waits.max_ms), (Some(90.0), Some(100.0)));
    assert!(told.requests.iter().all(|one| one.wait_ms >= Some(81.0)), "the slowest fifth");
    assert!(told.requests.is_sorted_by_key(|one| one.number));
}

#[test]
fn what_follows_a_switch_of_protocols_is_no_request() {
    let mut talk = Talk::new();
    talk.send(20, 0, b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", 60);
    talk.send(40, 1, b"HTTP/1.1 101 Switching Protocols\r\n\r\n", 36);
    talk.send(41, 0, b"", 0);
    for at in (100..1_000).step_by(100) {
        // The server acknowledges at once, and has something to say 70 ms later.
        talk.send(at, 0, b"", 50);
        talk.send(at + 20, 1, b"", 0);
        talk.send(at + 90, 1, b"", 50);
        talk.send(at + 91, 0, b"", 0);
    }
    assert_eq!(rows(&talk.told()), ["GET /chat 101 20 950 510/486"]);
    assert!(talk.connection().observers.phases.seconds(Phase::Server) < 0.001);
}
