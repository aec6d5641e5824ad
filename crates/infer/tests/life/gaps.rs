//! Captures that lack packets which arrived: those were not lost, and where many lack silence tells nothing.

use crate::capture::{CLIENT, SERVER, Setup, Wire};
use crate::{ACK, judged};
use thalweg_model::{Cause, Code, Flow, UndecidedBy};

const SEGMENT: usize = 1_448;
const SEGMENTS: usize = 3_000;

/// A download in flights of 10 to 40 segments, each a round trip after the one before, of which the capture lacks every `nth`.
fn download(setup: Setup, nth: usize) -> Flow {
    let mut wire = Wire::new(setup);
    let open = wire.open(0);
    wire.send(open, CLIENT, ACK, 200);
    let (mut flight, mut place) = (0, 0);
    for n in 0..SEGMENTS {
        if place == 10 + flight * 7 % 31 {
            (flight, place) = (flight + 1, 0);
        }
        let at = open + setup.rtt / 2 + flight * setup.rtt + place * 100;
        place += 1;
        wire.only = (n % nth == nth - 1).then_some(CLIENT);
        wire.send(at, SERVER, ACK, SEGMENT);
        wire.only = None;
        wire.send(at + setup.rtt / 2, CLIENT, ACK, 0);
    }
    judged(wire).0
}

#[test]
fn what_the_capture_lacks_was_not_lost() {
    for setup in Setup::all(40) {
        let flow = download(setup, 20);
        assert_eq!(flow.facts.missed_bytes, (SEGMENTS / 20 * SEGMENT) as u64, "{setup:?}");
        assert!(flow.policer.is_none() && flow.facts.losses.is_none(), "{setup:?}: {:#?}", flow.verdict);
    }
}

#[test]
fn where_many_packets_lack_nothing_is_said_of_pauses() {
    for setup in Setup::all(40) {
        let flow = download(setup, 3);
        let Cause::Unknown(UndecidedBy::MissingPackets { missing_bytes, bytes }) = &flow.verdict.cause else {
            panic!("{setup:?}: {:#?}", flow.verdict)
        };
        assert_eq!((*missing_bytes, *bytes), ((SEGMENTS / 3 * SEGMENT) as u64, (SEGMENTS * SEGMENT) as u64));
        assert!(flow.findings.iter().all(|finding| finding.code() != Code::Application));
    }
}

#[test]
fn what_the_capture_lacks_takes_no_loss_away() {
    for setup in Setup::all(40).filter(|setup| setup.tap == SERVER) {
        let lost = |nth: usize| {
            let mut wire = Wire::new(setup);
            let mut at = wire.open(0);
            wire.send(at, CLIENT, ACK, 200);
            for n in 0..400 {
                at += setup.rtt;
                // One segment of ten is sent again after half a second, and the one behind it is not captured.
                let again = n % 10 == 0;
                let sent = wire.now(SERVER, ACK, SEGMENT);
                wire.put(at, SERVER, true, sent);
                at += if again { 500_000 } else { 0 };
                if again {
                    wire.put(at, SERVER, false, sent);
                }
                wire.next[SERVER] += SEGMENT as u32;
                wire.only = (n % nth == 1).then_some(CLIENT);
                wire.send(at + 50, SERVER, ACK, SEGMENT);
                wire.only = None;
                wire.send(at + setup.rtt, CLIENT, ACK, 0);
            }
            judged(wire).0.facts.losses.as_deref().map(|losses| losses.packets)
        };
        assert_eq!(lost(10), lost(usize::MAX), "{setup:?}");
    }
}
