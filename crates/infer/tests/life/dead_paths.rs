//! Paths that carry nothing for a while, at the receiver: what was in flight does not come, and is sent again once a timer fires.

use crate::capture::{CLIENT, SERVER, Sent, Setup, Wire};
use crate::{ACK, MS, judged};
use thalweg_model::{Code, Flow};

const SEGMENT: usize = 1_448;
/// Segments of a flight.
const FLIGHT: u32 = 20;
/// What the timer waits, in microseconds.
const TIMEOUT: u64 = 260 * MS;

/// A side that sends flights of segments.
struct Sender {
    setup: Setup,
    wire: Wire,
    at: u64,
}

impl Sender {
    /// Sends segment `n` and, if it comes, the receiver's acknowledgement of all before `acked`.
    fn segment(&mut self, n: u32, lost: bool, acked: u32) {
        let sent = Sent { seq: 1 + n * SEGMENT as u32, id: Some(0), ..self.wire.now(SERVER, ACK, SEGMENT) };
        self.wire.put(self.at, SERVER, lost, sent);
        if !lost {
            let ack = Sent { ack: 1 + acked * SEGMENT as u32, ..self.wire.now(CLIENT, ACK, 0) };
            let heard_at = self.wire.heard_at.take();
            self.wire.put(self.at + self.setup.rtt / 2 + 5, CLIENT, false, ack);
            self.wire.heard_at = heard_at;
        }
        self.at += 100;
    }

    fn round_trip(&mut self, begun: u64) {
        self.at = begun + self.setup.rtt + 10;
    }
}

/// Of every twenty flights one does not come, and is sent again as RFC 5682 has it: the first segment, then two that are new, then the rest.
fn dead_path(setup: Setup) -> Flow {
    let (wire, at) = Wire::asked(setup, Some(10));
    let mut sender = Sender { setup, wire, at };
    let mut next = 0;
    for flight in 0..100 {
        let begun = sender.at;
        let is_lost = flight % 20 == 19;
        for n in next..next + FLIGHT {
            sender.segment(n, is_lost, n + 1);
        }
        if is_lost {
            sender.wire.heard_at = Some(begun);
            sender.at = begun + TIMEOUT;
            sender.segment(next, false, next + 1);
            sender.wire.heard_at = None;
            sender.round_trip(begun + TIMEOUT);
            let new = next + FLIGHT;
            (new..new + 2).for_each(|n| sender.segment(n, false, next + 1));
            sender.round_trip(begun + TIMEOUT + setup.rtt);
            (next + 1..new).for_each(|n| sender.segment(n, false, if n + 1 == new { new + 2 } else { n + 1 }));
            next = new + 2;
            sender.round_trip(begun + TIMEOUT + 2 * setup.rtt);
        } else {
            next += FLIGHT;
            sender.round_trip(begun);
        }
    }
    judged(sender.wire).0
}

#[test]
fn new_data_a_round_trip_after_a_silence_shows_a_timeout_without_identification() {
    for setup in Setup::all(30).filter(|setup| setup.tap == CLIENT && setup.timestamps) {
        let flow = dead_path(setup);
        let told = format!("{setup:?}: {:?} {:?} {:?}", flow.verdict, flow.limits, flow.retransmits);
        assert_eq!(flow.verdict.code(), Code::RetransmissionTimeout, "{told}");
        assert!((0.2..0.4).contains(&flow.limits.timeout) && flow.limits.application < 0.05, "{told}");
        assert!(flow.policer.is_none(), "{told}");
    }
}
