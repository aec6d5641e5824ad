//! Seen from the receiver, and without timestamps, no round trip of data is known.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, judged};
use std::collections::{BTreeSet, VecDeque};
use thalweg_model::Code;

const SEGMENT: u32 = 1_460;
/// Microseconds of a segment at 10 Mb/s.
const SLOT: u64 = 1_211;
/// Segments that the queue before it holds.
const QUEUE: u64 = 30;

/// A download whose window grows by a segment each round trip, until it overruns the queue and is halved.
fn behind_a_queue(setup: Setup, segments: u32) -> Wire {
    let mut wire = Wire::new(setup);
    wire.scale = Some(7);
    let (half, mut next, mut window) = (setup.rtt / 2, 0u32, 10.0f64);
    let (mut acks, mut held): (VecDeque<(u64, u32, u32)>, BTreeSet<u32>) = (VecDeque::new(), BTreeSet::new());
    let (mut now, mut leaves, mut out, mut expected, mut lost) = (wire.open(0) + 5_000, 0u64, 0u32, 0u32, None);
    while expected < segments {
        let mut send = |wire: &mut Wire, n: u32, at: u64| {
            let sent = Sent { seq: 1 + n * SEGMENT, len: SEGMENT as usize, ..wire.now(SERVER, ACK, 0) };
            if leaves > at + half + QUEUE * SLOT {
                wire.put(at, SERVER, true, sent);
                return None;
            }
            leaves = leaves.max(at + half) + SLOT;
            wire.put(leaves - half, SERVER, false, sent);
            held.insert(n);
            while held.remove(&expected) {
                expected += 1;
            }
            let block = held.iter().next_back().map(|last| (1 + last * SEGMENT, 1 + (last + 1) * SEGMENT));
            let sack = block.map(|(left, right)| (wire.number(SERVER, left), wire.number(SERVER, right)));
            let ack = Sent { ack: 1 + expected * SEGMENT, sack, ..wire.now(CLIENT, ACK, 0) };
            wire.put(leaves, CLIENT, false, ack);
            Some((leaves + half, expected, n))
        };
        while out < window as u32 {
            acks.extend(send(&mut wire, next, now));
            (next, out) = (next + 1, out + 1);
        }
        let Some((at, acked, of)) = acks.pop_front() else { break };
        (now, out) = (at, out - 1);
        if lost.is_some_and(|lost| acked > lost) {
            lost = None;
        } else if lost.is_none() && of > acked + 3 {
            // The one that is missing is out no more.
            (lost, window) = (Some(acked), window / 2.0);
            acks.extend(send(&mut wire, acked, now));
        } else if lost.is_none() {
            window += 1.0 / window;
        }
    }
    wire
}

#[test]
fn what_is_sent_again_while_other_gaps_show_comes_late_of_none() {
    for setup in Setup::all(40).filter(|setup| setup.tap == CLIENT && !setup.timestamps) {
        let (flow, _) = judged(behind_a_queue(setup, 50_000));
        assert!(flow.retransmits.total >= 12, "{:?}", flow.retransmits);
        assert_eq!((flow.verdict.code(), flow.out_of_order), (Code::PathRate, 0), "{setup:?}: {:#?}", flow.verdict);
    }
}
