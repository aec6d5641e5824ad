//! Hosts and links that hold what they have and let go of it at once: busy machines, Wi-Fi, coalesced interrupts.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, MS, judged};
use std::collections::VecDeque;
use thalweg_model::{Cause, Code, Flow};

/// The window after `acked` segments, in segments.
type Window = fn(u32) -> f64;

/// Three seconds of a transfer with this window, the client's acknowledgements of two segments each sent when `hold` says so: after so many microseconds.
fn held(setup: Setup, window: Window, hold: impl Fn(u64) -> u64) -> Flow {
    let segment = if setup.timestamps { 1_448 } else { 1_460 };
    let (mut wire, mut at) = Wire::asked(setup, Some(10));
    let mut heard: VecDeque<(u64, u32)> = VecDeque::new();
    let (mut sent, mut acked, mut leaves, mut last_ack) = (0, 0, 0, 0);
    while at < 3_000_000 {
        leaves = at.max(leaves);
        while sent < acked + window(acked) as u32 {
            wire.send(leaves, SERVER, ACK, segment);
            sent += 1;
            leaves += 1;
            if sent % 2 == 0 {
                let arrives = leaves + setup.rtt / 2;
                // One after the other, a microsecond apart.
                last_ack = (arrives + hold(arrives)).max(last_ack + 1);
                let ack = Sent { ack: 1 + sent * segment as u32, ..wire.now(CLIENT, ACK, 0) };
                wire.put(last_ack, CLIENT, false, ack);
                heard.push_back((last_ack + setup.rtt / 2, sent));
            }
        }
        (at, acked) = heard.pop_front().expect("something is in flight");
    }
    judged(wire).0
}

/// A number as good as drawn, of each place in turn.
const fn chance(place: u64) -> u64 {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

/// Doubles up to so many segments, and grows by a twentieth in each round trip from there, as CUBIC does that left slow start without a loss.
fn crept(acked: u32) -> f64 {
    let begun = 300.0;
    (10.0 + f64::from(acked)).min(begun + 0.05 * (f64::from(acked) - begun).max(0.0))
}

#[test]
fn acknowledgements_that_a_link_lets_go_at_once_tell_no_rate() {
    for setup in Setup::all(100).filter(|setup| setup.tap == SERVER) {
        let flow = held(setup, crept, |arrives| chance(arrives / (7 * MS)) % (12 * MS));
        let told = format!("{setup:?}: {:?} {:?}", flow.verdict, flow.measured.capacity_bps);
        assert!(
            matches!(&flow.verdict.cause, Cause::InitialWindow(growth) if growth.slow_start.as_ref().is_some_and(|seen| seen.crept)),
            "{told}"
        );
        assert!(flow.measured.capacity_bps.is_some_and(|rate| rate < 200e6), "{told}");
        assert!(flow.verdict.gain.is_some_and(|gain| gain < 4.0), "{told}");
    }
}

#[test]
fn a_full_buffer_of_a_busy_host_is_no_growth() {
    for setup in Setup::all(100).filter(|setup| setup.tap == CLIENT && setup.timestamps) {
        // What a buffer holds depends on how full its packets are.
        let buffer = |acked: u32| f64::from(10 + acked).min(400.0 - (chance(u64::from(acked / 150)) % 40) as f64);
        let flow = held(setup, buffer, |arrives| chance(arrives / (7 * MS)) % (12 * MS));
        let told = format!("{setup:?}: {:?} {:?}", flow.verdict, flow.limits);
        assert_eq!(flow.verdict.code(), Code::SendBuffer, "{told}");
    }
}
