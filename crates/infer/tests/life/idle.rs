//! What comes after a silence: resets, packets that nothing answers, requests on a closed connection, and the alerts by which TLS closes.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, FIN, MS, RST, SECOND, close, expect, judged, percent};
use thalweg_model::{Cause, Code, Failure, Flow};
use thalweg_wire::Flags;

const IDLE: u64 = 900 * SECOND;

/// A connection with one answered request, and when that was over.
fn answered(setup: Setup) -> (Wire, u64) {
    let mut wire = Wire::new(setup);
    let open = wire.open(0);
    let end = wire.exchange(open + MS, MS, 9_000);
    (wire, end)
}

#[test]
fn a_keep_alive_that_a_middlebox_resets_is_an_idle_time_out() {
    for setup in Setup::all(20) {
        let (mut wire, end) = answered(setup);
        let next = wire.now(CLIENT, ACK, 0);
        wire.put(end + IDLE, CLIENT, false, Sent { seq: next.seq - 1, ..next });
        let forged = Sent { ttl: Some(113), ..wire.now(SERVER, RST, 0) };
        wire.put(end + IDLE + setup.rtt / 2, SERVER, false, forged);
        let (flow, _) = judged(wire);
        let Cause::Reset(reset) = &flow.verdict.cause else { panic!("{setup:?}: {:#?}", flow.verdict) };
        assert!(reset.foreign && (reset.idle_s - 900.0).abs() < 1.0, "{reset:?}");
        assert!(flow.verdict.claim().contains("idle time-out"), "{}", flow.verdict.claim());
    }
}

#[test]
fn a_middlebox_that_resets_by_itself_or_answers_a_close_is_an_idle_time_out() {
    for setup in Setup::all(20) {
        for (closes, side) in [(false, SERVER), (false, CLIENT), (true, SERVER)] {
            let (mut wire, end) = answered(setup);
            if closes {
                wire.send(end + IDLE, CLIENT, FIN, 0);
            }
            let forged = Sent { ttl: Some(113), ..wire.now(side, RST, 0) };
            wire.put(end + IDLE + setup.rtt / 2, side, false, forged);
            let (flow, _) = judged(wire);
            let Cause::Reset(reset) = &flow.verdict.cause else { panic!("{setup:?}: {:#?}", flow.verdict) };
            assert!(reset.foreign && (reset.idle_s - 900.0).abs() < 1.0, "{setup:?}: {reset:?}");
            assert!(flow.verdict.claim().contains("idle time-out"), "{}", flow.verdict.claim());
        }
    }
}

#[test]
fn one_hop_more_may_be_a_new_route_and_one_less_is_another_host() {
    for setup in Setup::all(20).filter(|setup| setup.tap == CLIENT) {
        for (ttl, foreign) in [(50, false), (49, true), (52, true)] {
            let (mut wire, end) = answered(setup);
            wire.send(end + IDLE, CLIENT, ACK, 200);
            let reset = Sent { ttl: Some(ttl), ..wire.now(SERVER, RST, 0) };
            wire.put(end + IDLE + setup.rtt / 2, SERVER, false, reset);
            let (flow, _) = judged(wire);
            let Cause::Reset(reset) = &flow.verdict.cause else { panic!("{setup:?}: {:#?}", flow.verdict) };
            assert_eq!(reset.foreign, foreign, "{setup:?}, {ttl}");
        }
    }
}

#[test]
fn an_acknowledgement_long_after_the_data_changes_no_rate_and_is_no_transfer() {
    for setup in Setup::all(24) {
        for side in [CLIENT, SERVER] {
            let made = |late: bool| {
                let (mut wire, end) = answered(setup);
                if late {
                    let again = wire.now(side, ACK, 0);
                    wire.put(end + 45 * SECOND, side, false, again);
                }
                judged(wire).0
            };
            let (with, without) = (made(true), made(false));
            assert!((with.goodput_bps / without.goodput_bps - 1.0).abs() < 0.01, "{setup:?}: {}", with.goodput_bps);
            assert_eq!(with.verdict.code(), without.verdict.code(), "{setup:?}");
            let phases = with.life.expect("a capture").phases;
            assert!(phases.transfer_s < 0.1 && phases.waiting_client_s > 44.9, "{setup:?}: {phases:?}");
        }
    }
}

#[test]
fn numbers_that_other_connections_used_while_it_was_idle_are_no_losses() {
    for setup in Setup::all(24).filter(|setup| !setup.v6) {
        let (mut wire, mut end) = answered(setup);
        // The server numbers the packets of all its connections together: each of its answers is 1,500 further on.
        let mut id = 9_000u16;
        for n in 0..9 {
            end += 10 * SECOND;
            id = id.wrapping_add(1_500);
            if n % 3 == 2 {
                wire.send(end, CLIENT, ACK | Flags::PSH, 200);
                let response = Sent { id: Some(id), ..wire.now(SERVER, ACK, 800) };
                wire.put(end + setup.rtt / 2, SERVER, false, response);
                wire.next[SERVER] += 800;
                wire.heard[CLIENT] = wire.next[SERVER];
                wire.send(end + setup.rtt, CLIENT, ACK, 0);
                continue;
            }
            let next = wire.now(CLIENT, ACK, 0);
            wire.put(end, CLIENT, false, Sent { seq: next.seq - 1, ..next });
            let answer = Sent { id: Some(id), ..wire.now(SERVER, ACK, 0) };
            wire.put(end + setup.rtt / 2, SERVER, false, answer);
        }
        let (flow, _) = judged(wire);
        assert_eq!(flow.retransmits.total, 0, "{setup:?}: {:#?}", flow.verdict);
        assert_eq!(flow.verdict.code(), Code::WaitingForClient, "{setup:?}: {:#?}", flow.verdict);
    }
}

#[test]
fn a_peer_that_is_silent_after_a_pause_is_charged_from_the_first_packet_it_leaves_unanswered() {
    for setup in Setup::all(20).filter(|setup| setup.tap == CLIENT) {
        for pause in [0, IDLE] {
            let (mut wire, end) = answered(setup);
            let request = wire.now(CLIENT, ACK | Flags::PSH, 300);
            let asked = end + pause + MS;
            (0..7).for_each(|n| wire.put(asked + 220 * MS * ((1 << n) - 1), CLIENT, true, request));
            let last = asked + 220 * MS * 63;
            let flow = expect(setup, wire, (Code::VanishedPeer, percent(last - asked, last), true));
            assert_eq!(flow.verdict.claim().contains("idle time-out"), pause > 0, "{}", flow.verdict.claim());
            let findings: Vec<Code> = flow.findings.iter().map(|finding| finding.code()).collect();
            assert!(!findings.contains(&Code::RequestLost), "{findings:?}");
        }
    }
}

#[test]
fn a_request_on_a_connection_that_the_server_has_closed_failed() {
    for setup in Setup::all(20) {
        for asks in [true, false] {
            let (mut wire, end) = answered(setup);
            wire.send(end + 60 * SECOND, SERVER, FIN, 0);
            wire.send(end + 60 * SECOND + setup.rtt / 2, CLIENT, ACK, 0);
            let at = end + 100 * SECOND;
            if asks {
                wire.send(at, CLIENT, ACK | Flags::PSH, 300);
            } else {
                wire.send(at, CLIENT, FIN, 0);
            }
            let reset = Sent { id: Some(0), ..wire.now(SERVER, RST, 0) };
            wire.put(at + setup.rtt / 2, SERVER, false, reset);
            let (flow, slowed) = judged(wire);
            let failure = flow.life.and_then(|life| life.failure);
            assert_eq!((failure, slowed), (asks.then_some(Failure::Reset), asks), "{setup:?}: {:?}", flow.verdict);
            if let Cause::Reset(reset) = &flow.verdict.cause {
                assert!(reset.closed && flow.verdict.claim().contains("had closed"), "{}", flow.verdict.claim());
            }
        }
    }
}

#[test]
fn a_client_that_is_refused_and_tries_again_is_connecting() {
    for setup in Setup::all(20) {
        let mut wire = Wire::new(setup);
        let syn = wire.now(CLIENT, Flags::SYN, 0);
        for at in [0, 500 * MS, SECOND] {
            wire.put(at, CLIENT, false, syn);
            let answer = Sent { flags: RST | ACK, ack: 1, ..wire.now(SERVER, RST, 0) };
            wire.put(at + setup.rtt / 2, SERVER, false, answer);
        }
        let flow = expect(setup, wire, (Code::Connecting, 100.0, true));
        assert!(flow.life.is_some_and(|life| life.shares.connecting > 0.99), "{:?}", flow.life);
    }
}

#[test]
fn a_server_that_speaks_first_waits_for_the_last_packet_of_the_handshake() {
    for setup in Setup::all(20) {
        let mut wire = Wire::new(setup);
        wire.send(0, CLIENT, Flags::SYN, 0);
        wire.send(setup.rtt / 2, SERVER, Flags::SYN | ACK, 0);
        let third = wire.now(CLIENT, ACK, 0);
        wire.put(setup.rtt, CLIENT, true, third);
        let again = Sent { seq: 0, ..wire.now(SERVER, Flags::SYN | ACK, 0) };
        wire.put(SECOND, SERVER, false, again);
        wire.send(SECOND + setup.rtt / 2, CLIENT, ACK, 0);
        wire.send(SECOND + setup.rtt + MS, SERVER, ACK | Flags::PSH, 80);
        let end = SECOND + setup.rtt + MS + setup.rtt / 2;
        wire.send(end, CLIENT, ACK, 0);
        expect(setup, wire, (Code::Connecting, percent(SECOND, end), true));
    }
}

#[test]
fn a_window_that_is_closed_until_the_sender_gives_up_is_the_readers() {
    for (setup, probe) in Setup::all(10).flat_map(|setup| [0, 1].map(|probe| (setup, probe))) {
        let mut wire = Wire::new(setup);
        let open = wire.open(0);
        let end = wire.exchange(open, MS, 56_000);
        wire.window[CLIENT] = 0;
        wire.send(end + MS, CLIENT, ACK, 0);
        let mut at = end + MS;
        for n in 0..4u64 {
            at += (240 * MS) << n;
            // Its last byte again, as Linux asks for room, or the next one, as others do.
            let next = wire.now(SERVER, ACK, probe);
            wire.put(at, SERVER, false, Sent { seq: next.seq + probe as u32 - 1, ..next });
            let answer = wire.now(CLIENT, ACK, 0);
            wire.put(at + setup.rtt / 2, CLIENT, false, answer);
        }
        let reset = wire.now(SERVER, RST | ACK, 0);
        wire.put(at + 60 * SECOND, SERVER, false, reset);
        let (flow, _) = judged(wire);
        let (share, of_life) = (flow.limits.reader, flow.life.map_or(0.0, |life| life.verdict_share));
        assert!(
            flow.verdict.code() == Code::Reader && share > 0.98 && of_life > 0.98,
            "{setup:?} {probe}: {:?} {:?} {of_life}",
            flow.verdict,
            flow.limits
        );
        let phases = flow.life.expect("a capture").phases;
        assert!(phases.transfer_s > 60.0, "{setup:?} {probe}: {phases:?}");
    }
}

fn record(kind: u8, length: u8) -> Vec<u8> {
    [&[kind, 3, 3, 0, length][..], &vec![7; length.into()]].concat()
}

/// A response of HTTPS, and after a minute the alert and the FIN of a side, if it closes.
fn https(setup: Setup, closes: Option<usize>, alert: &[u8]) -> Flow {
    let (mut wire, end) = answered(setup);
    if let Some(side) = closes {
        let at = end + 60 * SECOND;
        wire.say(at, side, alert, alert.len());
        wire.send(at, side, FIN, 0);
        wire.send(at + setup.rtt / 2, 1 - side, FIN, 0);
        wire.send(at + setup.rtt, side, ACK, 0);
    }
    judged(wire).0
}

#[test]
fn an_alert_that_closes_an_idle_connection_changes_no_rate_and_asks_nothing() {
    for setup in Setup::all(20) {
        let without = https(setup, None, &[]);
        for side in [CLIENT, SERVER] {
            // Of TLS 1.3, encrypted, and of TLS 1.2.
            for alert in [record(23, 19), record(21, 26)] {
                let with = https(setup, Some(side), &alert);
                assert_eq!(with.verdict.code(), without.verdict.code(), "{setup:?} {side}: {:#?}", with.verdict);
                let rates = [with.goodput_bps, without.goodput_bps];
                assert!((rates[0] / rates[1] - 1.0).abs() < 0.01, "{setup:?} {side}: {rates:?}");
                let life = with.life.expect("a capture");
                assert!(life.shares.waiting_client > 0.98 && life.failure.is_none(), "{setup:?} {side}: {life:?}");
                assert_eq!(with.bytes_down, without.bytes_down + if side == SERVER { alert.len() as u64 } else { 0 });
            }
        }
    }
}

#[test]
fn a_response_that_is_missing_in_part_to_the_end_is_no_wait_for_the_client() {
    for setup in Setup::all(20).filter(|setup| setup.tap == CLIENT) {
        let (mut wire, end) = answered(setup);
        wire.send(end + MS, CLIENT, ACK | Flags::PSH, 200);
        let sent = end + MS + setup.rtt / 2;
        let lost = wire.now(SERVER, ACK, 1_400);
        wire.put(sent, SERVER, true, lost);
        wire.put(sent, SERVER, false, Sent { seq: lost.seq + 1_400, len: 600, ..lost });
        let asked = wire.now(CLIENT, ACK, 0);
        wire.put(sent + setup.rtt / 2, CLIENT, false, asked);
        close(&mut wire, end + 30 * SECOND, setup.rtt);
        let (flow, _) = judged(wire);
        let life = flow.life.expect("a capture");
        assert!(life.shares.transfer > 0.95 && life.shares.waiting_client < 0.02, "{setup:?}: {life:?}");
    }
}

/// A request that is acknowledged and never answered, beside a connection that goes on for two minutes; `spoke`: the server sent something before.
fn unanswered(setup: Setup, spoke: bool) -> (Wire, u64) {
    let mut wire = Wire::new(setup);
    let open = wire.open(0);
    if spoke {
        wire.send(open + MS, SERVER, ACK, 50);
        wire.send(open + MS + setup.rtt / 2, CLIENT, ACK, 0);
    }
    let asked = open + setup.rtt * 2;
    wire.send(asked, CLIENT, ACK | Flags::PSH, 200);
    wire.send(asked + setup.rtt / 2, SERVER, ACK, 0);
    let mut other = Wire::new(setup);
    other.ports = [40_002, 80];
    let opened = other.open(MS);
    let end = other.exchange(opened + 120 * SECOND, MS, 9_000);
    wire.join(other);
    (wire, end)
}

#[test]
fn a_request_without_an_answer_is_waited_for_to_the_end_of_the_capture() {
    for setup in Setup::all(20) {
        for spoke in [false, true] {
            let (wire, end) = unanswered(setup, spoke);
            let bytes = wire.capture();
            let report = thalweg_infer::diagnose_reader(bytes.as_slice(), "two").expect("a capture").report;
            let flow = report.flows.iter().find(|flow| flow.client.ends_with("40001")).expect("both");
            let waits = matches!(&flow.verdict.cause, Cause::WaitingForServer(wait) if wait.to_end);
            // What a client says later may need no answer.
            assert_eq!(waits, !spoke, "{setup:?}: {:#?}", flow.verdict);
            let seconds = if spoke { 0.2 } else { end as f64 / SECOND as f64 };
            assert!((flow.duration_s - seconds).abs() < 0.2, "{setup:?}: {}", flow.duration_s);
            assert!(spoke || flow.verdict.claim().contains("to the end of the capture"), "{}", flow.verdict.claim());
        }
    }
}
