//! Requests, TLS, name lookups and QUIC, through whole captures, seen from both ends, over IPv4 and IPv6.

use crate::capture::{CLIENT, SERVER, Setup, Wire};
use crate::{MS, judged};
use thalweg_model::{Application, Code, Flow};

const GET: &[u8] = b"GET /video/7?token=secret HTTP/1.1\r\nHost: example.org\r\nCookie: secret\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n";

fn application(flow: &Flow) -> Application {
    *flow.application.clone().expect("requests")
}

/// Milliseconds to a tenth.
fn tenths(millis: Option<f64>) -> Option<u64> {
    millis.map(|millis| (millis * 10.0).round() as u64)
}

/// Two requests over a round trip of 24 ms, answered after 100 and 300 ms.
fn two_requests(setup: Setup, snaplen: usize) -> Wire {
    let mut wire = Wire::new(setup);
    wire.snaplen = snaplen;
    let mut now = wire.open(0);
    for wait in [100 * MS, 300 * MS] {
        wire.say(now, CLIENT, GET, 120);
        wire.say(now + setup.rtt / 2 + wait, SERVER, OK, 1_400);
        now = wire.respond(now + setup.rtt / 2 + wait + MS, 3_600);
    }
    wire
}

#[test]
fn requests_are_timed_at_either_end_and_hold_no_secret() {
    for setup in Setup::all(24) {
        let (flow, _) = judged(two_requests(setup, usize::MAX));
        let told = application(&flow);
        let names: Vec<_> = told.requests.iter().map(|one| (one.name(), one.host.as_deref(), one.status)).collect();
        assert_eq!(names, vec![("GET /video/7".to_owned(), Some("example.org"), Some(200)); 2], "{setup:?}");
        // At the server the round trip is not seen.
        let round_trip = if setup.tap == CLIENT { 240 } else { 0 };
        let waits: Vec<_> = told.requests.iter().map(|one| tenths(one.wait_ms)).collect();
        assert_eq!(waits, [Some(1_000 + round_trip), Some(3_000 + round_trip)], "{setup:?}");
        let bytes: Vec<_> = told.requests.iter().map(|one| (one.bytes_up, one.bytes_down)).collect();
        assert_eq!(bytes, [(120, 5_000); 2]);
        assert!(!format!("{flow:?}").contains("secret"));
    }
}

/// A program writes its request in two pieces, and the server's host delays the acknowledgement that the second waits for.
#[test]
fn the_wait_for_a_delayed_acknowledgement_is_not_the_servers() {
    for setup in Setup::all(20) {
        let mut wire = Wire::new(setup);
        let mut now = wire.open(0);
        for _ in 0..50 {
            wire.say(now, CLIENT, b"", 52);
            let delayed = now + setup.rtt / 2 + 40 * MS;
            wire.send(delayed, SERVER, crate::ACK, 0);
            let second = delayed + setup.rtt / 2 + 5;
            wire.say(second, CLIENT, b"", 384);
            wire.say(second + setup.rtt / 2 + 10, SERVER, b"", 694);
            now = second + setup.rtt + 20;
        }
        let (flow, _) = judged(wire);
        assert_eq!(flow.verdict.code(), Code::DelayedAck, "{setup:?}: {:?}", flow.verdict);
        let others: Vec<Code> = flow.findings.iter().map(|finding| finding.code()).collect();
        assert!(!others.contains(&Code::WaitingForServer), "{setup:?}: {others:?}");
    }
}

#[test]
fn a_capture_that_is_cut_behind_its_headers_has_turns() {
    for setup in Setup::all(24) {
        let whole = application(&judged(two_requests(setup, usize::MAX)).0);
        // The longest headers are those of IPv6 with timestamps, 72 bytes; those of the SYN are not cut.
        let cut = application(&judged(two_requests(setup, 72)).0);
        assert_eq!(cut.requests.len(), 2);
        for (cut, whole) in cut.requests.iter().zip(&whole.requests) {
            assert_eq!(
                (cut.wait_ms, cut.transfer_ms, cut.bytes_down),
                (whole.wait_ms, whole.transfer_ms, whole.bytes_down)
            );
            assert!(cut.name() == "(turn)" || !(setup.v6 && setup.timestamps));
        }
    }
}

/// A record of TLS with this body.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

fn extension(kind: u16, value: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
}

fn hello(kind: u8, ciphers: &[u8], extensions: &[u8]) -> Vec<u8> {
    let length = (extensions.len() as u16).to_be_bytes();
    let body = [&[3, 3][..], &[7; 32], &[0], ciphers, &length, extensions].concat();
    record(22, &[&[kind, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat())
}

#[test]
fn a_client_hello_of_two_segments_is_put_together() {
    for setup in Setup::all(40) {
        let mut wire = Wire::new(setup);
        let open = wire.open(0);
        // A key share of 1,500 bytes before the name.
        let name = b"\0\x0e\0\0\x0bexample.org";
        let extensions = [extension(51, &[5; 1_500]), extension(0, name), extension(16, b"\0\x03\x02h2")].concat();
        let client = hello(1, &[0, 2, 0x13, 1, 1, 0], &extensions);
        let server =
            [hello(2, &[0x13, 1, 0], &extension(43, &[3, 4])), record(20, &[1]), record(23, &[9; 900])].concat();
        let finished = [record(20, &[1]), record(23, &[9; 53])].concat();
        wire.say(open, CLIENT, &client[..1_400], 1_400);
        wire.say(open, CLIENT, &client[1_400..], client.len() - 1_400);
        let (half, begun) = (setup.rtt / 2, open);
        wire.say(begun + half + 30 * MS, SERVER, &server, server.len());
        let end = begun + setup.rtt + 30 * MS;
        wire.say(end, CLIENT, &finished, finished.len());
        wire.say(end, CLIENT, &record(23, &[9; 200]), 205);
        wire.say(end + half + 50 * MS, SERVER, &record(23, &[9; 1_200]), 1_205);
        let (flow, _) = judged(wire);
        let told = application(&flow);
        let tls = told.tls.clone().expect("a handshake");
        assert_eq!(
            (tls.server_name.as_deref(), tls.version.as_deref()),
            (Some("example.org"), Some("1.3")),
            "{setup:?}"
        );
        assert_eq!(tls.offered, ["h2"]);
        assert_eq!(tenths(tls.handshake_ms), Some(700), "the round trip, and 30 ms of the server");
        let round_trip = if setup.tap == CLIENT { 400 } else { 0 };
        assert_eq!(told.requests.len(), 1);
        assert_eq!(tenths(told.requests[0].wait_ms), Some(500 + round_trip));
        let phases = flow.life.expect("a capture").phases;
        assert_eq!((phases.tls_s * 1e3).round(), 70.0);
        assert!((phases.total_s() - flow.duration_s).abs() < 1e-6);
    }
}

#[test]
fn a_server_that_takes_long_over_its_handshake_is_waited_for() {
    for setup in Setup::all(40) {
        for answers in [true, false] {
            let mut wire = Wire::new(setup);
            let open = wire.open(0);
            let client = hello(1, &[0, 2, 0x13, 1, 1, 0], &extension(16, b"\0\x03\x02h2"));
            wire.say(open, CLIENT, &client, client.len());
            wire.send(open + setup.rtt / 2, SERVER, crate::ACK, 0);
            let at = open + setup.rtt / 2 + 3_000 * MS;
            if answers {
                let server = [hello(2, &[0x13, 1, 0], &extension(43, &[3, 4])), record(23, &[9; 900])].concat();
                wire.say(at, SERVER, &server, server.len());
                wire.say(at + setup.rtt / 2, CLIENT, &record(23, &[9; 53]), 58);
            } else {
                crate::close(&mut wire, at, setup.rtt);
            }
            let end = at + if answers { setup.rtt / 2 } else { setup.rtt };
            let flow = crate::expect(setup, wire, (Code::WaitingForServer, crate::percent(3_000 * MS, end), true));
            assert!(flow.verdict.claim().contains("TLS handshake"), "{}", flow.verdict.claim());
        }
    }
}

/// A query of the address of example.org, or the answer with the server's.
/// A connection of TLS 1.2 with one request, whose client takes so long over its part of the handshake.
fn one_request_over_tls(setup: Setup, client_takes: u64, response: usize) -> (Wire, u64) {
    let mut wire = Wire::new(setup);
    wire.scale = Some(7);
    let open = wire.open(0);
    let half = setup.rtt / 2;
    let client = hello(1, &[0, 2, 0xc0, 0x2f, 1, 0], &extension(16, b"\0\x03\x02h2"));
    wire.say(open, CLIENT, &client, client.len());
    let server = [hello(2, &[0xc0, 0x2f, 0], &extension(65_281, &[0])), record(22, &[9; 3_000])].concat();
    for part in server.chunks(1_400) {
        wire.say(open + half, SERVER, part, part.len());
    }
    let arrived = open + setup.rtt;
    wire.send(arrived, CLIENT, crate::ACK, 0);
    let finished = [record(22, &[9; 66]), record(20, &[1]), record(22, &[9; 40])].concat();
    let at = arrived + client_takes;
    wire.say(at, CLIENT, &finished, finished.len());
    let finished = [record(20, &[1]), record(22, &[9; 40])].concat();
    wire.say(at + half + MS, SERVER, &finished, finished.len());
    wire.say(at + setup.rtt + 2 * MS, CLIENT, &record(23, &[9; 200]), 205);
    let end = wire.respond(at + setup.rtt + half + 3 * MS, response);
    (wire, end)
}

#[test]
fn a_client_that_takes_long_over_its_handshake_is_waited_for() {
    for setup in Setup::all(40) {
        for response in [900, 100_000] {
            let (wire, end) = one_request_over_tls(setup, 900 * MS, response);
            let share = crate::percent(900 * MS, end);
            let flow = crate::expect(setup, wire, (Code::WaitingForClient, share, false));
            assert!(flow.verdict.claim().contains("TLS handshake"), "{}", flow.verdict.claim());
        }
    }
}

/// Between the turns of a handshake and of one request a server has nothing to send, and no program is to blame.
#[test]
fn a_handshake_and_one_request_are_no_programs_pauses() {
    for setup in Setup::all(40) {
        let (flow, slowed) = judged(one_request_over_tls(setup, MS, 900).0);
        assert_eq!((flow.verdict.code(), slowed), (Code::NothingToGain, false), "{setup:?}: {:?}", flow.verdict);
        assert!(flow.verdict.claim().contains("round trips of the handshake"), "{}", flow.verdict.claim());
    }
}

fn name_message(v6: bool, is_answer: bool) -> Vec<u8> {
    let kind = if v6 { 28 } else { 1 };
    let mut bytes = vec![0, 7, if is_answer { 0x81 } else { 1 }, if is_answer { 0x80 } else { 0 }];
    bytes.extend([0, 1, 0, u8::from(is_answer), 0, 0, 0, 0]);
    bytes.extend(b"\x07example\x03org\0");
    bytes.extend([0, kind, 0, 1]);
    if is_answer {
        bytes.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0]);
        if v6 {
            bytes.extend([16, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        } else {
            bytes.extend([4, 10, 9, 0, 2]);
        }
    }
    bytes
}

#[test]
fn a_name_lookup_is_the_first_phase_of_the_connection_after_it() {
    for setup in Setup::all(24).filter(|setup| setup.tap == CLIENT) {
        let mut wire = Wire::new(setup);
        wire.datagram(0, CLIENT, [5_353, 53], &name_message(setup.v6, false));
        wire.datagram(5_000 * MS, CLIENT, [5_353, 53], &name_message(setup.v6, false));
        // Its server is asked in place of a name server: the round trip is the same.
        wire.datagram(5_012 * MS, SERVER, [53, 5_353], &name_message(setup.v6, true));
        let open = wire.open(5_030 * MS);
        wire.exchange(open + MS, 0, 9_000);
        let bytes = wire.capture();
        let found = thalweg_infer::diagnose_reader(bytes.as_slice(), "written").expect("a capture");
        let flow = &found.report.flows[0];
        let lookup = application(flow).lookup.expect("a lookup");
        assert_eq!(
            (lookup.name.as_str(), tenths(Some(lookup.took_ms)), lookup.again),
            ("example.org", Some(50_240), 1)
        );
        assert!((lookup.start_s + 5.03).abs() < 1e-6, "{lookup:?}");
        let life = flow.life.expect("a capture");
        assert!((life.phases.total_s() - flow.duration_s - 5.024).abs() < 1e-6, "{:?}", life.phases);
        assert!(life.shares.lookup > 0.98);
        assert_eq!(flow.verdict.code(), Code::Connecting, "{:#?}", flow.verdict);
        assert!((life.verdict_share - life.shares.lookup).abs() < 1e-9);
        let claim = flow.verdict.claim();
        assert!(claim.contains("name took 5.02 s") && claim.contains("sent again once"), "{claim}");
        let note = found.report.notes.iter().find(|note| note.contains("name lookup")).expect("a note");
        assert_eq!(note, "1 name lookup: 1 answered after 5.02 s (median), 5.02 s (longest); 1 query sent again");
    }
}

#[test]
fn a_lookup_that_goes_on_over_tcp_counts_to_its_last_answer() {
    for setup in Setup::all(24).filter(|setup| setup.tap == CLIENT) {
        let mut wire = Wire::new(setup);
        wire.ports = [50_053, 53];
        let framed = |message: Vec<u8>| [&(message.len() as u16).to_be_bytes()[..], &message].concat();
        wire.datagram(0, CLIENT, [5_353, 53], &name_message(setup.v6, false));
        let mut truncated = name_message(setup.v6, true);
        (truncated[2], truncated[7]) = (0x83, 0);
        wire.datagram(30 * MS, SERVER, [53, 5_353], &truncated);
        let open = wire.open(200 * MS);
        let query = framed(name_message(setup.v6, false));
        wire.say(open, CLIENT, &query, query.len());
        let answer = framed(name_message(setup.v6, true));
        let at = open + setup.rtt / 2 + 50 * MS;
        // A length that comes alone.
        wire.say(at, SERVER, &answer[..2], 2);
        wire.say(at + MS, SERVER, &answer[2..], answer.len() - 2);
        let ended = at + MS + setup.rtt / 2;
        let mut web = Wire::new(setup);
        let open = web.open(ended + 2 * MS);
        web.exchange(open + MS, 0, 9_000);
        web.join(wire);
        let bytes = web.capture();
        let found = thalweg_infer::diagnose_reader(bytes.as_slice(), "written").expect("a capture");
        let flow = found.report.flows.iter().find(|flow| flow.server.ends_with(":80")).expect("the connection");
        let lookup = application(flow).lookup.expect("a lookup");
        assert_eq!((lookup.name.as_str(), tenths(Some(lookup.took_ms)), lookup.again), ("example.org", Some(2_990), 0));
        let note = found.report.notes.iter().find(|note| note.contains("name lookup")).expect("a note");
        assert_eq!(note, "1 name lookup: 1 answered after 298 ms (median), 299 ms (longest); 1 over TCP");
    }
}

#[test]
fn quic_is_counted_and_its_handshake_is_timed() {
    for setup in Setup::all(24) {
        let mut wire = Wire::new(setup);
        let long = |kind: u8| {
            let mut bytes = vec![0xc0 | kind << 4, 0, 0, 0, 1, 1, 9, 1, 8];
            bytes.extend(if kind == 0 { &[0][..] } else { &[] });
            bytes.extend([0x44, 0xb0]);
            bytes.resize(bytes.len() + 0x4b0, 7);
            bytes
        };
        wire.datagram(0, CLIENT, [50_000, 443], &long(0));
        wire.datagram(12 * MS, SERVER, [443, 50_000], &long(0));
        wire.datagram(40 * MS, SERVER, [443, 50_000], &long(2));
        let bytes = wire.capture();
        let found = thalweg_infer::diagnose_reader(bytes.as_slice(), "written").expect("a capture");
        let took = if setup.tap == CLIENT { "52.0 ms" } else { "28.0 ms" };
        let expected = format!("1 QUIC connection: handshake {took}; QUIC's transfer is encrypted and not judged");
        assert!(found.report.notes.contains(&expected), "{:?}", found.report.notes);
        assert!(found.report.notes.contains(&"3 packets are IP but not TCP".to_owned()));
    }
}

#[test]
fn responses_of_a_pipeline_are_waited_for_one_by_one() {
    for setup in Setup::all(24) {
        let mut wire = Wire::new(setup);
        let mut now = wire.open(0);
        (0..4).for_each(|_| wire.say(now, CLIENT, GET, 120));
        now += setup.rtt / 2;
        for _ in 0..4 {
            now += 400 * MS;
            wire.say(now, SERVER, OK, 1_400);
            wire.send(now + setup.rtt / 2, CLIENT, crate::ACK, 0);
        }
        let end = now + setup.rtt / 2;
        // Each wait but the first begins when the response before it is acknowledged.
        let waited = if setup.tap == CLIENT { 1_600 * MS } else { 1_600 * MS - 3 * setup.rtt };
        let flow = crate::expect(setup, wire, (Code::WaitingForServer, crate::percent(waited, end), true));
        let thalweg_model::Cause::WaitingForServer(wait) = flow.verdict.cause else { panic!("{:?}", flow.verdict) };
        assert_eq!(wait.answered, 4);
    }
}
