//! Connections whose time goes elsewhere than into their data: lost SYNs and requests, full queues, waiting programs, resets, silence.
//!
//! Each capture is written by hand, so what took the time is known by arithmetic.

mod capture;
mod clamps;
mod clocks;
mod dead_paths;
mod flow_control;
mod gaps;
mod idle;
mod late_hosts;
mod middleboxes;
mod one_direction;
mod overtaken;
mod protocols;
mod segment_sizes;
mod small_buffers;

mod without_timestamps;

use capture::{CLIENT, SERVER, Sent, Setup, Wire};
use thalweg_model::{CaptureReport, Cause, Code, Failure, Flow, Opening, SynRequest};
use thalweg_wire::Flags;

const ACK: u8 = Flags::ACK;
const SYN: u8 = Flags::SYN;
const RST: u8 = Flags::RST;
const FIN: u8 = Flags::FIN | ACK;
const MS: u64 = 1_000;
const SECOND: u64 = 1_000_000;

/// The only connection, and whether it is a problem.
fn judged(wire: Wire) -> (Flow, bool) {
    let bytes = wire.capture();
    let found = thalweg_infer::diagnose_reader(bytes.as_slice(), "written").expect("a capture");
    assert_eq!(found.report.flows.len(), 1, "{:#?}", found.report);
    (*found.report.flows[0].clone(), found.slowed)
}

/// The report on a capture whose packets, each with its seconds and microseconds, were changed so.
fn report(wire: Wire, change: impl Fn(&mut Vec<Vec<u8>>)) -> CaptureReport {
    let bytes = wire.capture();
    let (head, mut rest) = bytes.split_at(24);
    let mut packets = Vec::new();
    while rest.len() > 16 {
        let length = 16 + u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        packets.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    change(&mut packets);
    let file = [head, &packets.concat()].concat();
    thalweg_infer::diagnose_reader(file.as_slice(), "changed").expect("a capture").report
}

/// Asserts the verdict, its share of the life in percent to within one, and whether that is a problem.
fn expect(setup: Setup, wire: Wire, wanted: (Code, f64, bool)) -> Flow {
    let (flow, slowed) = judged(wire);
    let life = flow.life.expect("a capture");
    let share = life.verdict_share * 100.0;
    let told = (flow.verdict.code(), share, slowed);
    let fits = told.0 == wanted.0 && (share - wanted.1).abs() < 1.0 && slowed == wanted.2;
    assert!(fits, "{setup:?}: {told:?}, not {wanted:?}: {:#?}\n{:?} {:#?}", flow.verdict, flow.findings, flow.life);
    let phases = life.phases.total_s();
    assert!((phases - flow.duration_s).abs() < 1e-6, "{phases} of {}", flow.duration_s);
    flow
}

/// Closes the connection in order.
fn close(wire: &mut Wire, at: u64, rtt: u64) {
    wire.send(at, CLIENT, FIN, 0);
    wire.send(at + rtt / 2, SERVER, FIN, 0);
    wire.send(at + rtt, CLIENT, ACK, 0);
}

/// Of a part in a whole, in percent.
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64 * 100.0
}

#[test]
fn lost_syns_are_time_of_connecting() {
    for setup in Setup::all(24).filter(|setup| setup.tap == CLIENT) {
        for (lost, renumbers) in (1..=4u32).flat_map(|lost| [(lost, false), (lost, true)]) {
            let mut wire = Wire::new(setup);
            let sent = wire.now(CLIENT, SYN, 0);
            let waited = ((1 << lost) - 1) * SECOND;
            for n in 0..lost {
                wire.put(((1u64 << n) - 1) * SECOND, CLIENT, true, sent);
                if renumbers {
                    wire.renumber(CLIENT);
                }
            }
            let open = wire.open(waited);
            let end = wire.exchange(open + MS, 0, 9_000);
            let flow = expect(setup, wire, (Code::Connecting, percent(open, end), true));
            assert_eq!(flow.life.map(|life| life.resent.syn), Some(lost));
            assert!(flow.verdict.gain.is_none() && flow.life.is_some_and(|life| life.failure.is_none()));
        }
    }
}

#[test]
fn what_only_the_syn_without_an_answer_asked_for_is_named() {
    const ECN: u8 = Flags::ECE | Flags::CWR;
    let judge = |setup: Setup, first: u8, second: u8, answer: u8| {
        let mut wire = Wire::new(setup);
        let syn = wire.now(CLIENT, SYN | first, 0);
        wire.put(0, CLIENT, true, syn);
        wire.syn_flags = [second, answer];
        let open = wire.open(SECOND);
        let end = wire.exchange(open + MS, 0, 9_000);
        let flow = expect(setup, wire, (Code::Connecting, percent(open, end), true));
        match flow.verdict.cause {
            Cause::Connecting(Opening::Late { left_out, .. }) => left_out,
            _ => None,
        }
    };
    for setup in Setup::all(24).filter(|setup| setup.tap == CLIENT) {
        assert_eq!(judge(setup, ECN, 0, 0), Some(SynRequest::Ecn));
        // Linux agrees to what the first SYN asked for, if that one came.
        assert_eq!(judge(setup, ECN, 0, Flags::ECE), None);
        assert_eq!(judge(setup, ECN, ECN, 0), None);
        assert_eq!(judge(setup, 0, 0, 0), None);
    }
}

#[test]
fn lost_syn_acks_are_time_of_connecting_at_either_end() {
    for setup in Setup::all(24) {
        let mut wire = Wire::new(setup);
        let (syn, half) = (wire.now(CLIENT, SYN, 0), setup.rtt / 2);
        wire.put(0, CLIENT, false, syn);
        let answer = Sent { flags: SYN | ACK, ack: 1, ..wire.now(SERVER, SYN, 0) };
        wire.put(half, SERVER, true, answer);
        let open = wire.open(SECOND);
        let end = wire.exchange(open + MS, 0, 9_000);
        expect(setup, wire, (Code::Connecting, percent(open, end), true));
    }
}

#[test]
fn what_never_opened_failed() {
    for setup in Setup::all(24) {
        for reset in [true, false] {
            let mut wire = Wire::new(setup);
            let syn = wire.now(CLIENT, SYN, 0);
            for n in 0..4 {
                wire.put(((1u64 << n) - 1) * SECOND, CLIENT, !reset && setup.tap == CLIENT, syn);
                if reset {
                    let answer = Sent { flags: RST | ACK, ack: 1, ..wire.now(SERVER, RST, 0) };
                    wire.put(((1u64 << n) - 1) * SECOND + setup.rtt / 2, SERVER, false, answer);
                }
            }
            let flow = expect(setup, wire, (Code::Connecting, 100.0, true));
            let wanted = if reset { Failure::Refused } else { Failure::NoAnswer };
            assert_eq!(flow.life.and_then(|life| life.failure), Some(wanted), "{setup:?}");
        }
    }
}

#[test]
fn a_lost_request_is_what_its_timer_takes() {
    for setup in Setup::all(40).filter(|setup| setup.tap == CLIENT) {
        for lost in 1..=4u32 {
            let mut wire = Wire::new(setup);
            let open = wire.open(0);
            let request = wire.now(CLIENT, ACK | Flags::PSH, 200);
            let waited = 240 * MS * ((1 << lost) - 1);
            (0..lost).for_each(|n| wire.put(open + 240 * MS * ((1 << n) - 1), CLIENT, true, request));
            let end = wire.exchange(open + waited, 0, 60_000);
            let flow = expect(setup, wire, (Code::RequestLost, percent(waited + setup.rtt, end), true));
            assert_eq!(flow.life.map(|life| life.resent.data_up), Some(lost.into()));
        }
    }
}

#[test]
fn a_full_accept_queue_is_told_with_and_without_a_request() {
    for setup in Setup::all(20) {
        for asks in [true, false] {
            let mut wire = Wire::new(setup);
            let open = wire.open(0);
            let request = wire.now(CLIENT, ACK | Flags::PSH, 200);
            let syn_ack = Sent { flags: SYN | ACK, seq: 0, ack: 1, ..wire.now(SERVER, SYN, 0) };
            for n in 0..if asks { 3 } else { 0 } {
                wire.put(open + MS + 240 * MS * ((1 << n) - 1), CLIENT, false, request);
            }
            for at in [SECOND, 3 * SECOND] {
                wire.put(at + setup.rtt / 2, SERVER, false, syn_ack);
                let again = Sent { seq: 1 + if asks { 200 } else { 0 }, ..wire.now(CLIENT, ACK, 0) };
                wire.put(at + setup.rtt, CLIENT, false, again);
            }
            let end = wire.exchange(4 * SECOND, 2 * MS, 8_000);
            let full = 4 * SECOND - open;
            let (flow, slowed) = judged(wire);
            let share = flow.life.map_or(0.0, |life| life.verdict_share) * 100.0;
            assert!(
                flow.verdict.code() == Code::AcceptQueue && slowed,
                "{setup:?} {asks}: {:?} {:?}",
                flow.verdict,
                flow.life
            );
            assert!((share - percent(full, end)).abs() < 2.0, "{share}");
        }
    }
}

#[test]
fn the_program_that_is_waited_for_is_named() {
    for setup in Setup::all(20) {
        let mut wire = Wire::new(setup);
        let mut now = wire.open(0) + MS;
        for n in 0..5 {
            now = wire.exchange(now, if n == 3 { 900 * MS } else { MS }, 8_000) + 3 * MS;
        }
        let flow = expect(setup, wire, (Code::WaitingForServer, percent(904 * MS, now - 3 * MS), true));
        assert!(flow.verdict.gain.is_none() && flow.findings.iter().all(|finding| finding.code() != Code::Application));
        let mut wire = Wire::new(setup);
        let mut now = wire.open(0);
        for _ in 0..6 {
            now = wire.exchange(now + 700 * MS, MS, 8_000);
        }
        let flow = expect(setup, wire, (Code::WaitingForClient, percent(4_200 * MS, now), false));
        assert!(flow.verdict.gain.is_none());
    }
}

#[test]
fn a_reset_of_another_host_is_told_by_its_ttl_or_its_count() {
    for setup in Setup::all(30) {
        for (side, by_ttl) in [(CLIENT, true), (SERVER, true), (CLIENT, false), (SERVER, false)] {
            if setup.v6 && !by_ttl {
                continue;
            }
            let mut wire = Wire::new(setup);
            let open = wire.open(0);
            let end = wire.exchange(open, MS, 30_000);
            wire.send(end + 40 * MS, CLIENT, ACK | Flags::PSH, 200);
            let forged = Sent {
                ttl: by_ttl.then_some(113),
                id: Some(if by_ttl { 0 } else { 23_456 }),
                ..wire.now(side, RST | ACK, 0)
            };
            wire.put(end + 75 * MS, side, false, forged);
            let flow = expect(setup, wire, (Code::Reset, 0.0, true));
            assert_eq!(
                flow.life.and_then(|life| life.failure),
                Some(Failure::ForeignReset),
                "{setup:?} {side} {by_ttl}"
            );
        }
    }
}

#[test]
fn the_servers_own_reset_of_a_request_is_told_and_one_after_the_exchange_is_a_close() {
    for setup in Setup::all(30) {
        for asks in [true, false] {
            let mut wire = Wire::new(setup);
            let open = wire.open(0);
            let end = wire.exchange(open, MS, 9_000);
            if asks {
                wire.send(end + MS, CLIENT, ACK | Flags::PSH, 200);
            }
            let reset = Sent { id: Some(0), ..wire.now(SERVER, RST, 0) };
            wire.put(end + 90 * MS, SERVER, false, reset);
            let (flow, slowed) = judged(wire);
            let failure = flow.life.and_then(|life| life.failure);
            assert_eq!((failure, slowed), (asks.then_some(Failure::Reset), asks), "{setup:?}: {:?}", flow.verdict);
        }
    }
}

/// The server answers before it has the whole request, and resets what goes on coming.
#[test]
fn a_reset_that_cuts_an_upload_off_is_a_failure_at_both_taps() {
    for setup in Setup::all(60) {
        let mut wire = Wire::new(setup);
        let open = wire.open(0) + MS;
        for n in 0..8 {
            wire.send(open + n * 12, CLIENT, ACK, 1_400);
        }
        let arrived = open + setup.rtt / 2 + MS;
        wire.send(arrived, SERVER, ACK | Flags::PSH, 300);
        let reset = wire.now(SERVER, RST | ACK, 0);
        wire.put(arrived + 50, SERVER, false, reset);
        // What the client sent before it heard of that.
        for n in 0..4 {
            wire.send(arrived + setup.rtt / 2 - 5 * MS + n * 12, CLIENT, ACK, 1_400);
        }
        let flow = expect(setup, wire, (Code::Reset, 0.0, true));
        assert_eq!(flow.life.and_then(|life| life.failure), Some(Failure::Reset), "{setup:?}");
    }
}

#[test]
fn a_peer_that_vanished_is_told_by_what_is_sent_again() {
    for setup in Setup::all(30).filter(|setup| setup.tap == SERVER) {
        let mut wire = Wire::new(setup);
        let open = wire.open(0);
        let end = wire.exchange(open, MS, 200_000);
        wire.send(end + 20 * MS, CLIENT, ACK | Flags::PSH, 200);
        let heard = end + 20 * MS + setup.rtt / 2;
        let response = wire.now(SERVER, ACK, 1_400);
        let mut at = heard + MS;
        for n in 0..6 {
            at = heard + MS + 230 * MS * ((1 << n) - 1);
            wire.put(at, SERVER, true, response);
        }
        let flow = expect(setup, wire, (Code::VanishedPeer, percent(at - heard, at), true));
        let silence = flow.life.and_then(|life| life.silence).expect("a silence");
        assert_eq!((silence.side, silence.unanswered), (thalweg_model::Side::Client, 5));
    }
}

/// A response into a window that closes; the server probes without a byte, with an old one, or with a new one.
fn closed_window(setup: Setup, probe: (i32, usize), reopens: bool) -> Wire {
    let mut wire = Wire::new(setup);
    let open = wire.open(0);
    wire.exchange(open, MS, 56_000);
    let mut at = open + 400 * MS;
    wire.window[CLIENT] = 0;
    wire.send(at, CLIENT, ACK, 0);
    let mut wait = 240 * MS;
    for _ in 0..8 {
        at += wait;
        wait *= 2;
        let next = wire.now(SERVER, ACK, probe.1);
        wire.put(at, SERVER, false, Sent { seq: next.seq.wrapping_add_signed(probe.0), ..next });
        let answer = wire.now(CLIENT, ACK, 0);
        wire.put(at + setup.rtt / 2, CLIENT, false, answer);
    }
    if reopens {
        wire.window[CLIENT] = 60_000;
        wire.send(at + 3 * SECOND, CLIENT, ACK, 0);
        wire.respond(at + 3 * SECOND + setup.rtt / 2, 56_000);
    }
    wire
}

#[test]
fn a_window_that_is_closed_to_the_end_or_reopens_late_is_the_readers() {
    for setup in Setup::all(10) {
        for probe in [(-1, 0), (-1, 1), (0, 1)] {
            for reopens in [true, false] {
                let (flow, slowed) = judged(closed_window(setup, probe, reopens));
                let (share, of_life) = (flow.limits.reader, flow.life.map_or(0.0, |life| life.verdict_share));
                assert!(
                    flow.verdict.code() == Code::Reader && share > 0.98 && of_life > 0.98 && slowed,
                    "{setup:?} {probe:?} {reopens}: {:?} {:?} {of_life}",
                    flow.verdict,
                    flow.limits
                );
            }
        }
    }
}

#[test]
fn keep_alives_before_between_and_after_data_change_no_rate() {
    for setup in Setup::all(30) {
        let goodput = |bytes: Option<usize>, before: bool| {
            let mut wire = Wire::new(setup);
            let open = wire.open(0);
            let probe = |wire: &mut Wire, at: u64, side: usize| {
                if let Some(bytes) = bytes {
                    let next = wire.now(side, ACK, bytes);
                    wire.put(at, side, false, Sent { seq: next.seq.wrapping_sub(1), ..next });
                    let answer = wire.now(1 - side, ACK, 0);
                    wire.put(at + setup.rtt / 2, 1 - side, false, answer);
                }
            };
            if before {
                probe(&mut wire, open + 20 * SECOND, CLIENT);
            }
            let end = wire.exchange(open + 40 * SECOND, MS, 400_000);
            for (n, side) in [SERVER, CLIENT, SERVER].into_iter().enumerate() {
                probe(&mut wire, end + 45 * SECOND * (n as u64 + 1), side);
            }
            let (flow, _) = judged(wire);
            (flow.goodput_bps, flow.verdict.code())
        };
        let (without, code) = goodput(None, false);
        for (bytes, before) in [(0, false), (1, false), (0, true), (1, true)] {
            let (with, same) = goodput(Some(bytes), before);
            assert!(
                (with / without - 1.0).abs() < 0.01 && same == code,
                "{setup:?} {bytes} {before}: {with} {without}, {same} {code}"
            );
        }
    }
}

#[test]
fn a_late_third_packet_is_no_round_trip() {
    for setup in Setup::all(2).filter(|setup| setup.tap == SERVER && !setup.timestamps) {
        let mut wire = Wire::new(setup);
        wire.window[SERVER] = 8_192;
        wire.send(0, CLIENT, SYN, 0);
        wire.send(MS, SERVER, SYN | ACK, 0);
        wire.send(70 * MS, CLIENT, ACK, 0);
        let mut now = 80 * MS;
        for _ in 0..200 {
            (0..5).for_each(|n| wire.send(now + n * 100, CLIENT, ACK, 1_460));
            wire.send(now + 400 + setup.rtt / 2 + 20, SERVER, ACK, 0);
            now += 400 + setup.rtt + 20;
        }
        close(&mut wire, now, setup.rtt);
        let (flow, _) = judged(wire);
        let rtt = flow.rtt_min_ms.expect("a round trip");
        assert!((1.9..2.2).contains(&rtt) && flow.facts.flight_max_bytes <= 8_192, "{rtt} {:?}", flow.facts);
        assert_eq!(flow.verdict.code(), Code::ReceiveWindow, "{:?}", flow.verdict);
    }
}
