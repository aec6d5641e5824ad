//! Segments that are full ones, though one of the SYNs or both let them be longer: beside a host with jumbo frames, or before a router that rewrites the MSS.

use crate::capture::{CLIENT, SERVER, Setup, Wire};
use crate::{MS, judged, report};
use thalweg_model::{Code, Flow, Limits};
use thalweg_wire::Flags;

/// What [`Wire::respond`] sends.
const SEGMENT: u16 = 1_400;
const JUMBO: u16 = 8_960;
/// Packets of the handshake.
const HANDSHAKE: usize = 3;

/// The verdict on a response in flights that double, and what its time is charged to.
fn verdict(setup: Setup, mss: [u16; 2]) -> (Code, Limits) {
    let mut wire = Wire::new(setup);
    wire.mss = mss;
    wire.scale = Some(7);
    let open = wire.open(0);
    wire.exchange(open + MS, 0, 200_000);
    let (flow, _) = judged(wire);
    (flow.verdict.code(), flow.limits)
}

#[test]
fn segments_shorter_than_agreed_are_full_ones_where_more_follows() {
    for setup in Setup::all(40) {
        let fits = SEGMENT + if setup.timestamps { 12 } else { 0 };
        let told = verdict(setup, [fits; 2]);
        assert_eq!(told.0, Code::InitialWindow, "{setup:?}: {:?}", told.1);
        for mss in [[JUMBO, fits], [fits, JUMBO], [JUMBO; 2]] {
            assert_eq!(verdict(setup, mss), told, "{setup:?}, {mss:?}");
        }
    }
}

#[test]
fn pieces_of_a_program_are_no_full_segments() {
    for (setup, first) in Setup::all(40).flat_map(|setup| [(setup, 0), (setup, HANDSHAKE)]) {
        let mut wire = Wire::new(setup);
        let mut now = wire.open(0) + MS;
        for _ in 0..100 {
            wire.say(now, SERVER, b"piece", 1_000);
            wire.send(now + setup.rtt / 2 + 5, CLIENT, crate::ACK, 0);
            now += 20 * MS;
        }
        let found = report(wire, |packets| drop(packets.drain(..first)));
        let verdict = &found.flows[0].verdict;
        assert_eq!(verdict.code(), Code::Application, "{setup:?}, from packet {first} on: {verdict:#?}");
    }
}

/// Responses of a few segments each, handed down whole as a NIC that segments by itself takes them: the last segment is a short one.
#[test]
fn a_merged_packet_that_ends_short_ends_what_the_program_wrote() {
    for setup in Setup::all(110).filter(|setup| setup.tap == SERVER) {
        let mut wire = Wire::new(setup);
        let mut at = wire.open(0) + MS;
        for _ in 0..31 {
            wire.send(at, CLIENT, crate::ACK | Flags::PSH, 361);
            wire.send(at + setup.rtt / 2, SERVER, crate::ACK | Flags::PSH, 8_189);
            at += setup.rtt + 3 * MS;
        }
        wire.send(at, CLIENT, crate::ACK, 0);
        let (Flow { verdict, limits, .. }, _) = judged(wire);
        assert_eq!(verdict.code(), Code::Application, "{setup:?}: {limits:?}");
        assert!(limits.slow_start < 0.1, "{setup:?}: {limits:?}");
    }
}
