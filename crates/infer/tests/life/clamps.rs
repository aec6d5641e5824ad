//! Congestion windows of a fixed size, whose data keeps going round in one row and leaves the path empty for the rest of the round trip.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, judged};
use std::collections::VecDeque;
use thalweg_model::Code;

/// Microseconds of a segment at 115 Mb/s.
const SLOT: u64 = 100;
/// Segments of the window: it takes half of the round trip to send, and of two acknowledgements each the last is left over.
const WINDOW: u32 = 302;

/// A transfer whose window doubles up to its bound. What two acknowledgements make room for is sent in one burst.
fn clamped(setup: Setup) -> Wire {
    let segment = if setup.timestamps { 1_448 } else { 1_460 };
    let (mut wire, mut at) = Wire::asked(setup, Some(8));
    // When each acknowledgement of two segments comes, up to where it goes.
    let mut heard: VecDeque<(u64, u32)> = VecDeque::new();
    let (mut window, mut sent, mut acked, mut free) = (10, 0, 0, 0);
    while at < 4_000_000 {
        let room = window - (sent - acked);
        if room >= 4 {
            for _ in 0..room {
                wire.send(at, SERVER, ACK, segment);
                sent += 1;
                free = at.max(free) + SLOT;
                if sent % 2 == 0 {
                    let ack = Sent { ack: 1 + sent * segment as u32, ..wire.now(CLIENT, ACK, 0) };
                    wire.put(free + setup.rtt / 2, CLIENT, false, ack);
                    heard.push_back((free + setup.rtt, sent));
                }
            }
        }
        let (next, to) = heard.pop_front().expect("something is in flight");
        window = (window + to - acked).min(WINDOW);
        (at, acked) = (next, to);
    }
    wire
}

#[test]
fn room_that_is_left_until_the_next_row_of_acknowledgements_is_no_programs() {
    for setup in Setup::all(60).filter(|setup| setup.tap == SERVER) {
        let (flow, _) = judged(clamped(setup));
        assert_eq!(flow.verdict.code(), Code::CongestionWindowClamp, "{setup:?}: {:#?}", flow.verdict);
        assert!(flow.limits.application < 0.02, "{setup:?}: {:?}", flow.limits);
    }
}
