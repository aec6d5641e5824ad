//! Packets that overtake others without being told of by loss.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, MS, judged};
use thalweg_model::Code;

/// Segments smaller than the SYNs let them be, as where a tunnel is on the way.
const SEGMENT: u32 = 1_206;
const SHORT: u32 = 4;

/// Flights, each within a millisecond, of eight segments and a short one, a round trip apart; of `early` of them, after a pause, the short one arrives first. Nothing is lost, or once a segment.
fn flights(setup: Setup, early: u32, lost: bool) -> Wire {
    let mut wire = Wire::new(setup);
    let mut now = wire.open(0) + MS;
    wire.send(now, CLIENT, ACK, 200);
    now += setup.rtt / 2;
    for flight in 0..12 {
        if flight == 4 {
            now += 100 * MS;
        }
        let base = wire.next[SERVER];
        let numbers = |n: u32| (base + n * SEGMENT, if n == 8 { SHORT } else { SEGMENT });
        let first_id = 1_000 + flight as u16 * 9 + u16::from(lost && flight > 8);
        let (is_early, is_lost) = ((4..4 + early).contains(&flight), lost && flight == 8);
        let order: Vec<u32> = if is_early { [8].into_iter().chain(0..8).collect() } else { (0..9).collect() };
        for (place, n) in order.into_iter().enumerate() {
            let (seq, len) = numbers(n);
            let sent = Sent { seq, len: len as usize, id: Some(first_id + n as u16), ..wire.now(SERVER, ACK, 0) };
            let at = now + place as u64 * 40;
            wire.put(at, SERVER, is_lost && n == 3, sent);
            wire.heard[CLIENT] = match (is_early, is_lost) {
                (true, _) if n == 8 => base,
                (true, _) if n == 7 => base + 8 * SEGMENT + SHORT,
                (_, true) if n >= 3 => base + 3 * SEGMENT,
                _ => seq + len,
            };
            let early_one = (is_early && n < 7).then(|| numbers(8));
            let behind = base + 4 * SEGMENT;
            let held = early_one.or_else(|| (is_lost && n > 3).then(|| (behind, seq + len - behind)));
            let sack = held.map(|(left, length)| (wire.number(SERVER, left), wire.number(SERVER, left + length)));
            let ack = Sent { sack, ..wire.now(CLIENT, ACK, 0) };
            if !(is_lost && n == 3) {
                wire.put(at + setup.rtt / 2 + 5, CLIENT, false, ack);
            }
        }
        wire.next[SERVER] = base + 8 * SEGMENT + SHORT;
        if is_lost {
            now += setup.rtt + 2_000;
            let (seq, len) = numbers(3);
            let again = Sent { seq, len: len as usize, id: Some(first_id + 9), ..wire.now(SERVER, ACK, 0) };
            wire.put(now, SERVER, false, again);
            wire.heard[CLIENT] = wire.next[SERVER];
            let ack = wire.now(CLIENT, ACK, 0);
            wire.put(now + setup.rtt / 2 + 5, CLIENT, false, ack);
        }
        now += setup.rtt + 2_000;
    }
    wire
}

#[test]
fn one_packet_before_a_burst_is_no_reordering() {
    for setup in Setup::all(24).filter(|setup| setup.tap == CLIENT) {
        for (early, lost) in [(1, false), (2, false), (1, true)] {
            let (flow, _) = judged(flights(setup, early, lost));
            assert_eq!(flow.retransmits.total, u64::from(lost), "{setup:?}, {early}, {lost}: {:#?}", flow.verdict);
            assert_eq!(flow.out_of_order, u64::from(early * 8));
            let codes = flow.findings.iter().map(|finding| finding.code()).chain([flow.verdict.code()]);
            assert!(codes.into_iter().all(|code| code != Code::Reordering), "{setup:?}: {:#?}", flow.verdict);
        }
    }
}

/// A response of 30 segments in one flight; the acknowledgements are held for 400 ms on their way, so a timer of 240 ms runs out and the server repeats
/// the whole flight, which is reported to have come twice. Nothing overtakes.
fn held_acknowledgements(setup: Setup) -> Wire {
    let (mut wire, now) = Wire::asked(setup, None);
    wire.send(now, SERVER, ACK, 0);
    let (first, segments) = (wire.next[SERVER], 30u32);
    let number = |n: u32| first + n * SEGMENT;
    for n in 0..segments {
        wire.send(now + u64::from(n) * 20, SERVER, ACK, SEGMENT as usize);
    }
    let freed = now + setup.rtt / 2 + 400 * MS;
    // What the first flight's copies echo is what the server had heard before.
    wire.heard_at = Some(now);
    let again = |wire: &Wire, n: u32| Sent { seq: number(n), len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
    let first_again = again(&wire, 0);
    wire.put(now + 240 * MS, SERVER, false, first_again);
    for n in 0..segments {
        wire.heard[CLIENT] = number(n + 1);
        wire.heard_at = Some(now + setup.rtt / 2);
        let ack = wire.now(CLIENT, ACK, 0);
        wire.put(freed + u64::from(n) * 20, CLIENT, false, ack);
        if n > 0 {
            let copy = again(&wire, n);
            wire.put(freed + setup.rtt / 2 + u64::from(n) * 20 + 5, SERVER, false, copy);
        }
    }
    for n in 0..segments {
        let twice = Some((wire.number(SERVER, number(n)), wire.number(SERVER, number(n + 1))));
        let arrived = if n == 0 { freed + 700 } else { freed + setup.rtt + u64::from(n) * 20 + 10 };
        wire.heard_at = None;
        let ack = Sent { sack: twice, ..wire.now(CLIENT, ACK, 0) };
        wire.put(arrived, CLIENT, false, ack);
    }
    wire
}

#[test]
fn what_a_timer_repeats_too_early_was_neither_overtaken_nor_lost() {
    for setup in Setup::all(40).filter(|setup| setup.tap == SERVER) {
        let (flow, _) = judged(held_acknowledgements(setup));
        let codes: Vec<Code> =
            flow.findings.iter().map(|finding| finding.code()).chain([flow.verdict.code()]).collect();
        assert_eq!((flow.retransmits.total, flow.retransmits.fast), (30, 0), "{setup:?}: {:?}", flow.retransmits);
        let wrong = [Code::Reordering, Code::RandomLoss, Code::CongestionLoss];
        assert!(!codes.iter().any(|code| wrong.contains(code)), "{setup:?}: {codes:?} {:#?}", flow.verdict);
    }
}
