//! What middleboxes break: window scaling, selective acknowledgements, and errors that a sender does not heed.

use super::capture::{CLIENT, SERVER, Setup, Wire};
use super::{ACK, MS, SECOND, judged};
use thalweg_model::{Cause, Code, Flow, LargePackets};

const SEGMENT: u32 = 1_400;

fn code_of(setup: Setup, wire: Wire) -> Flow {
    let (flow, slowed) = judged(wire);
    assert!(slowed, "{setup:?}: {:#?}", flow.verdict);
    flow
}

/// Taps beside the server, which sends the data.
fn at_server(rtt_ms: u64) -> impl Iterator<Item = Setup> {
    Setup::all(rtt_ms).filter(|setup| setup.tap == SERVER)
}

/// A download of rounds: the client's window field lets so many segments through, and eight are sent. A timer sends again what was dropped.
fn behind_an_unscaled_window(setup: Setup, passes: u32) -> Wire {
    let mut wire = Wire::new(setup);
    wire.scale = Some(3);
    wire.window[CLIENT] = (4 * SEGMENT) as u16;
    let mut now = wire.open(0) + MS;
    wire.send(now, CLIENT, ACK, 200);
    now += setup.rtt / 2;
    let mut una = wire.next[SERVER];
    for round in 0..8 {
        for n in 0..8 {
            let seq = una + n * SEGMENT;
            // Beside the client the identifications alone tell what did not come.
            let id = Some((round * 8 + n) as u16 + 100);
            let data = super::Sent { seq, id, len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
            wire.put(now + u64::from(n) * 10, SERVER, n >= passes, data);
            wire.next[SERVER] = wire.next[SERVER].max(seq + SEGMENT);
        }
        una += passes * SEGMENT;
        wire.heard[CLIENT] = una;
        let acknowledgement = wire.now(CLIENT, ACK, 0);
        wire.put(now + setup.rtt / 2 + 100, CLIENT, false, acknowledgement);
        now += setup.rtt + 300 * MS;
    }
    wire
}

#[test]
fn a_middlebox_that_ignores_window_scaling_is_named() {
    // IPv6 has no identification.
    for setup in Setup::all(24).filter(|setup| setup.tap == SERVER || !setup.v6) {
        let flow = code_of(setup, behind_an_unscaled_window(setup, 4));
        assert_eq!(flow.verdict.code(), Code::WindowScaleIgnored, "{setup:?}: {:#?}", flow.verdict);
        let of_path = flow.findings.iter().find(|finding| finding.code() == Code::PathRate);
        assert!(of_path.is_none_or(|finding| finding.depends_on.is_some()), "{setup:?}: {of_path:?}");
        // Where more arrives than the field lets through, or data ends before that, its losses have another cause.
        for passes in [2, 6] {
            let (flow, _) = judged(behind_an_unscaled_window(setup, passes));
            let is_told = flow.verdict.code() == Code::WindowScaleIgnored;
            assert!(!is_told || setup.tap == SERVER && passes == 2, "{setup:?}, {passes}");
        }
    }
}

/// Of every third flight of ten a segment arrives and is not taken; it is sent again after a round trip. Or it is lost `on_path`.
fn all_taken_but_some(setup: Setup, on_path: bool) -> Wire {
    let mut wire = Wire::new(setup);
    let mut now = wire.open(0) + MS;
    wire.send(now, CLIENT, ACK, 200);
    now += setup.rtt / 2;
    for flight in 0..60 {
        let base = wire.next[SERVER];
        let bad = (flight % 3 == 1).then_some(flight / 3 % 6);
        for n in 0..10 {
            let (sent_at, seq) = (now + u64::from(n) * 12, base + n * SEGMENT);
            let data = super::Sent { seq, len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
            wire.put(sent_at, SERVER, on_path && bad == Some(n), data);
            let until = bad.filter(|bad| n >= *bad).unwrap_or(n + 1);
            let block = |bad: u32| (base + (bad + 1) * SEGMENT, base + (n + 1) * SEGMENT);
            let sack = bad.filter(|bad| n > *bad).map(block);
            let sack = sack.map(|(left, right)| (wire.number(SERVER, left), wire.number(SERVER, right)));
            if bad != Some(n) {
                let ack = super::Sent { ack: base + until * SEGMENT, sack, ..wire.now(CLIENT, ACK, 0) };
                wire.put(sent_at + setup.rtt / 2 + 5, CLIENT, false, ack);
            }
        }
        wire.next[SERVER] = base + 10 * SEGMENT;
        if let Some(bad) = bad {
            now += setup.rtt + 200;
            let again = super::Sent { seq: base + bad * SEGMENT, len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
            wire.put(now, SERVER, false, again);
        }
        wire.heard[CLIENT] = wire.next[SERVER];
        if bad.is_some() {
            let all = wire.now(CLIENT, ACK, 0);
            wire.put(now + setup.rtt / 2 + 5, CLIENT, false, all);
        }
        now += setup.rtt + 200;
    }
    wire
}

#[test]
fn what_the_receiving_host_drops_is_not_the_paths() {
    for setup in Setup::all(30) {
        let judge = |on_path| {
            let (flow, _) = judged(all_taken_but_some(setup, on_path));
            let findings = flow.findings.iter().map(|finding| &finding.verdict.cause);
            let found = std::iter::once(&flow.verdict.cause).chain(findings);
            let mut losses = found.filter_map(|cause| match cause {
                Cause::RandomLoss(losses) => Some((Code::RandomLoss, losses.repairs.packets_again.count)),
                Cause::ReceiverDrops(drops) => Some((Code::ReceiverDrops, drops.arrived)),
                _ => None,
            });
            let first = losses.next().unwrap_or_else(|| panic!("{setup:?}: {:#?}", flow.verdict));
            assert_eq!(losses.next(), None, "{setup:?}");
            first
        };
        // Beside the sender the two look the same.
        let behind = if setup.tap == CLIENT { Code::ReceiverDrops } else { Code::RandomLoss };
        assert_eq!((judge(false), judge(true)), ((behind, 20), (Code::RandomLoss, 20)), "{setup:?}");
    }
}

/// Of each flight the first segment is lost; the blocks of the client's acknowledgements are off by so much. A timer repairs it.
fn with_blocks_off_by(setup: Setup, offset: u32) -> Wire {
    let mut wire = Wire::new(setup);
    let mut now = wire.open(0) + MS;
    wire.send(now, CLIENT, ACK, 200);
    now += setup.rtt / 2;
    for _ in 0..6 {
        let first = wire.next[SERVER];
        let lost = super::Sent { len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
        wire.put(now, SERVER, true, lost);
        wire.next[SERVER] += SEGMENT;
        for n in 1..6u64 {
            wire.send(now + n * 10, SERVER, ACK, SEGMENT as usize);
            let [left, right] =
                [first + SEGMENT, wire.next[SERVER]].map(|seq| wire.number(SERVER, seq).wrapping_add(offset));
            wire.heard[CLIENT] = first;
            let told = super::Sent { sack: Some((left, right)), ..wire.now(CLIENT, ACK, 0) };
            wire.put(now + setup.rtt / 2 + n * 10, CLIENT, false, told);
        }
        let again = super::Sent { seq: first, len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
        now += setup.rtt + 250 * MS;
        wire.put(now, SERVER, false, again);
        wire.heard[CLIENT] = wire.next[SERVER];
        let whole = wire.now(CLIENT, ACK, 0);
        wire.put(now + setup.rtt / 2, CLIENT, false, whole);
        now += setup.rtt;
    }
    wire
}

#[test]
fn a_firewall_that_leaves_blocks_as_they_are_is_named() {
    for setup in at_server(24) {
        let flow = code_of(setup, with_blocks_off_by(setup, 1_234_567_890));
        assert_eq!(flow.verdict.code(), Code::SackNotTranslated, "{setup:?}: {:#?}", flow.verdict);
        let (flow, _) = judged(with_blocks_off_by(setup, 0));
        let codes = [flow.verdict.code()].into_iter().chain(flow.findings.iter().map(|finding| finding.code()));
        assert!(!codes.into_iter().any(|code| code == Code::SackNotTranslated), "{setup:?}");
    }
}

#[test]
fn an_error_that_names_the_mtu_is_quoted() {
    for setup in Setup::all(24).filter(|setup| setup.tap == CLIENT) {
        let mut wire = Wire::new(setup);
        let open = wire.open(0) + MS;
        let long = super::Sent { len: 1_448, ..wire.now(CLIENT, ACK, 0) };
        wire.put(open, CLIENT, true, long);
        for (n, at) in [0, 300 * MS, SECOND, 2_500 * MS, 6 * SECOND].into_iter().enumerate() {
            if n > 0 {
                wire.put(open + at, CLIENT, true, long);
            }
            wire.too_big(open + at + MS, CLIENT, 1_420);
        }
        wire.next[CLIENT] += 1_448;
        wire.send(open + 10 * SECOND, SERVER, super::FIN, 0);
        let (flow, slowed) = judged(wire);
        let Cause::PathMtuBlackHole(LargePackets::Retransmissions { errors: Some(told), .. }) = &flow.verdict.cause
        else {
            panic!("{setup:?}: {:#?}", flow.verdict);
        };
        assert_eq!((told.errors.count, told.mtu_bytes, slowed), (5, Some(1_420), true));
        assert_eq!(told.errors.sights.packets.len(), 3);
        assert_eq!(flow.measured.link_mtu_bytes, Some(1_420));
    }
}

/// The server's first flight is too long for a link; it sends the same in shorter segments, as soon as a router says so or by a timer.
fn too_long_at_first(setup: Setup, is_told: bool) -> Wire {
    let mut wire = Wire::new(setup);
    let open = wire.open(0) + MS;
    wire.send(open, CLIENT, ACK, 200);
    let mut now = open + setup.rtt / 2;
    let long = super::Sent { len: 1_448, ..wire.now(SERVER, ACK, 0) };
    for n in 0..10 {
        wire.put(now, SERVER, true, super::Sent { seq: long.seq + n * 1_448, ..long });
    }
    if is_told {
        (0..3).for_each(|n| wire.too_big(now + MS + n, SERVER, 1_400));
        now += 2 * MS;
    } else {
        now += 300 * MS;
    }
    wire.respond(now, 60_000);
    wire
}

#[test]
fn what_a_router_called_too_long_and_the_sender_heeded_is_no_loss() {
    for setup in at_server(24) {
        let losses = |is_told: bool| {
            let (flow, _) = judged(too_long_at_first(setup, is_told));
            let codes = [flow.verdict.code()].into_iter().chain(flow.findings.iter().map(|finding| finding.code()));
            codes.filter(|code| matches!(code, Code::RandomLoss | Code::RetransmissionTimeout)).count()
        };
        assert_eq!((losses(true), losses(false)), (0, 1), "{setup:?}");
    }
}

/// A response of which two full segments are dropped, however often they are sent, while the short one behind them arrives. The client gives up
/// after 30 s, by these flags, and the server's program closes as well or does not.
fn with_a_hole(setup: Setup, full: usize, (ends_by, both): (u8, bool)) -> Wire {
    let mut wire = Wire::new(setup);
    let open = wire.open(0);
    wire.send(open, CLIENT, ACK, 200);
    let sent = open + setup.rtt / 2;
    wire.send(sent, SERVER, ACK, 0);
    let first = super::Sent { len: full, ..wire.now(SERVER, ACK, 0) };
    let second = super::Sent { seq: first.seq + full as u32, ..first };
    let last = super::Sent { seq: second.seq + full as u32, len: 900, ..first };
    wire.put(sent + MS, SERVER, true, first);
    wire.put(sent + MS, SERVER, true, second);
    wire.put(sent + MS, SERVER, false, last);
    let told = [second.seq + full as u32, last.seq + 900].map(|seq| wire.number(SERVER, seq));
    let answer = super::Sent { sack: Some((told[0], told[1])), ..wire.now(CLIENT, ACK, 0) };
    wire.put(sent + setup.rtt / 2 + MS, CLIENT, false, answer);
    for n in 0..6 {
        wire.put(sent + 300 * MS * (1 << n), SERVER, true, first);
    }
    wire.send(sent + 30 * SECOND, CLIENT, ends_by, 0);
    if both {
        let fin = super::Sent { seq: last.seq + 900, ..wire.now(SERVER, super::FIN, 0) };
        wire.put(sent + 30 * SECOND + setup.rtt, SERVER, false, fin);
    }
    wire
}

#[test]
fn long_packets_that_never_come_are_told_at_either_end() {
    let ends = [(super::FIN, false), (super::FIN, true), (super::RST | ACK, false)];
    for (setup, ends_by) in Setup::all(24).flat_map(|setup| ends.map(|by| (setup, by))) {
        let full = if setup.timestamps { 1_448 } else { 1_460 };
        let flow = code_of(setup, with_a_hole(setup, full, ends_by));
        let Cause::PathMtuBlackHole(seen) = &flow.verdict.cause else { panic!("{setup:?}: {:#?}", flow.verdict) };
        match (setup.tap, seen) {
            (CLIENT, LargePackets::Missing { missing_bytes, longest_bytes: 900, .. }) => {
                assert_eq!(*missing_bytes, 2 * full as u64);
            }
            (_, LargePackets::Retransmissions { arrived_bytes: 900, timeouts, .. }) => {
                assert_eq!(timeouts.count, 6);
            }
            (_, other) => panic!("{setup:?}: {other:?}"),
        }
    }
}
