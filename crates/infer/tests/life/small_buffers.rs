//! Senders whose buffer holds a few segments and is written again once it is empty: small devices, and Windows where a program sets its size.

use crate::capture::{CLIENT, SERVER, Setup, Wire};
use crate::{ACK, MS, judged};
use thalweg_model::{Cause, Code, FullSendBuffer, SendBufferSeen};

/// Eighty writes of so many full segments, each as soon as all before is acknowledged. The receiver acknowledges every second segment, and an
/// odd one after `delay`.
fn emptied(setup: Setup, segments: u32, delay: u64) -> (Wire, u64) {
    let segment = if setup.timestamps { 1_448 } else { 1_460 };
    let (mut wire, mut at) = Wire::asked(setup, None);
    for _ in 0..80 {
        let mut heard_at = at;
        for n in 1..=segments {
            wire.send(at, SERVER, ACK, segment as usize);
            heard_at = at + setup.rtt / 2 + 5;
            if n % 2 == 0 {
                wire.send(heard_at, CLIENT, ACK, 0);
            }
            at += 12;
        }
        if segments % 2 == 1 {
            heard_at += delay;
            wire.send(heard_at, CLIENT, ACK, 0);
        }
        at = heard_at + setup.rtt / 2 + 60;
    }
    (wire, u64::from(segments * segment))
}

#[test]
fn a_flight_of_few_segments_that_never_grows_is_a_buffers() {
    for setup in Setup::all(30) {
        for (segments, delay) in [(1, 0), (1, 200 * MS), (2, 0), (3, 0), (3, 200 * MS), (4, 0), (11, 0), (11, 40 * MS)]
        {
            let (wire, written) = emptied(setup, segments, delay);
            let (flow, _) = judged(wire);
            let told = format!("{setup:?}, {segments} segments, {delay} µs: {:?}", flow.verdict);
            // Elsewhere than at the sender a clamp of the congestion window looks the same, unless acknowledgements come late.
            let is_told = setup.tap == SERVER || delay > 0;
            assert!(
                flow.verdict.code() == Code::SendBuffer
                    || !is_told && flow.verdict.code() == Code::CongestionWindowClamp,
                "{told}"
            );
            assert!(flow.limits.slow_start < 0.1, "{told}: {:?}", flow.limits);
            if is_told {
                let Cause::SendBuffer(FullSendBuffer {
                    seen: SendBufferSeen::Emptied { write_bytes, writes, rtt_min_s, ack_delay_s },
                    ..
                }) = flow.verdict.cause
                else {
                    panic!("{told}");
                };
                assert_eq!((write_bytes, writes), (written, 80), "{told}");
                assert!((rtt_min_s - 0.03).abs() < 1e-3 && ack_delay_s.is_some() == (delay > 0), "{told}");
                assert!((ack_delay_s.unwrap_or(0.0) - delay as f64 / 1e6).abs() < 1e-3, "{told}");
            }
        }
    }
}

/// A buffer of 4,096 bytes at the sender: two segments and a part of one, which leave together as nothing is in flight. The part is acknowledged
/// after `delay`.
#[test]
fn a_buffer_of_two_segments_and_a_part_is_told_beside_the_sender() {
    const BUFFER: usize = 4_096;
    for (setup, delay) in Setup::all(50).flat_map(|setup| [(setup, 0), (setup, 40 * MS)]) {
        let segment = if setup.timestamps { 1_448 } else { 1_460 };
        let (mut wire, mut at) = Wire::asked(setup, None);
        for _ in 0..80 {
            for len in [segment, segment, BUFFER - 2 * segment] {
                wire.send(at, SERVER, ACK, len);
                if len != segment {
                    wire.send(at + setup.rtt / 2 + 5 + delay, CLIENT, ACK, 0);
                }
                at += 1;
            }
            at += setup.rtt + delay + 60;
        }
        let (flow, _) = judged(wire);
        let is_told = setup.tap == SERVER || delay > 0;
        let wanted = if is_told { Code::SendBuffer } else { Code::Application };
        assert_eq!(flow.verdict.code(), wanted, "{setup:?}, {delay}: {:?}", flow.verdict);
    }
}

/// What is written by a timer is the program's, whatever its size: nothing sets it off.
#[test]
fn segments_that_a_timer_writes_are_the_programs() {
    for setup in Setup::all(30) {
        let segment = if setup.timestamps { 1_448 } else { 1_460 };
        let mut wire = Wire::new(setup);
        let open = wire.open(0) + MS;
        wire.send(open, CLIENT, ACK, 100);
        for n in 1..80 {
            let at = open + n * 230 * MS;
            wire.send(at, SERVER, ACK, segment);
            wire.send(at + setup.rtt / 2 + 5, CLIENT, ACK, 0);
        }
        let (flow, _) = judged(wire);
        assert_eq!(flow.verdict.code(), Code::Application, "{setup:?}: {:?}", flow.verdict);
    }
}

/// One request lets the ten segments of an initial window go, and acknowledgements the two behind them. Later writes leave at once.
#[test]
fn what_a_request_lets_go_is_one_message_and_a_handshake_none() {
    for (setup, side) in Setup::all(50).flat_map(|setup| [(setup, CLIENT), (setup, SERVER)]) {
        let segment = if setup.timestamps { 1_448 } else { 1_460 };
        let mut wire = Wire::new(setup);
        let mut at = wire.open(0);
        if side == SERVER {
            wire.send(at, CLIENT, ACK, 100);
            at += setup.rtt / 2;
        }
        for write in 0..40 {
            for n in 0..12 {
                let is_held = write == 0 && n >= 10;
                let sent_at = at + n * 12 + if is_held { setup.rtt } else { 0 };
                wire.send(sent_at, side, ACK, segment);
                wire.send(sent_at + setup.rtt / 2 + 5, 1 - side, ACK, 0);
            }
            at += 150 * MS;
        }
        let (flow, _) = judged(wire);
        let codes: Vec<Code> = flow.findings.iter().map(|finding| finding.code()).collect();
        assert_eq!(flow.verdict.code(), Code::Application, "{setup:?}, {side}: {:?}", flow.verdict);
        assert!(!codes.contains(&Code::ApplicationWindow), "{setup:?}, {side}: {codes:?}");
    }
}
