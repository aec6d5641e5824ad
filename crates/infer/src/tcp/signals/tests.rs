//! Signals of connections made by hand.

use crate::diagnosis::facts::Facts as Judged;
use crate::flow::facts;
use crate::tcp::connection::Connection;
use crate::testing::{connection, packet};
use thalweg_model::{Ecn, Facts, FastOpen, KeepAlives, Multipath, MultipathKind, Vantage};
use thalweg_wire::{Flags, Options, Segment};

const ACK: u8 = Flags::ACK;

fn facts_of(connection: &Connection, main: usize) -> Facts {
    let judged = Judged::new(connection, main, Vantage::Unknown, &connection.sides[main].sender.observers.nagle);
    facts::facts(connection, main, &judged, false)
}

fn options(mut segment: Segment, options: Options) -> Segment {
    segment.tcp.options = options;
    segment
}

#[test]
fn ecn_is_negotiated_by_both_and_counted_by_direction() {
    const SYN_ECN: u8 = Flags::SYN | Flags::ECE | Flags::CWR;
    let mark = |mut segment: Segment, ecn: u8| {
        segment.ip.ecn = ecn;
        segment
    };
    let transfer = |syn: u8, syn_ack: u8| {
        [
            packet(true, syn, 100, 0, 0),
            packet(false, syn_ack, 500, 101, 0),
            packet(true, ACK, 101, 501, 0),
            mark(packet(false, ACK, 501, 101, 1_000), 2),
            mark(packet(false, ACK, 1_501, 101, 1_000), 3),
            packet(true, ACK | Flags::ECE, 101, 2_501, 0),
            mark(packet(false, ACK | Flags::CWR, 2_501, 101, 1_000), 2),
            packet(true, ACK, 101, 3_501, 0),
        ]
    };
    let ecn = |syn: u8, syn_ack: u8| facts_of(&connection(&transfer(syn, syn_ack)), 1).ecn.expect("ECN");
    let agreed = ecn(SYN_ECN, Flags::SYN | ACK | Flags::ECE);
    assert_eq!(agreed, Ecn { negotiated: Some(true), capable: 3, marked: 1, echoes: 1, reductions: 1 });
    assert_eq!(ecn(SYN_ECN, Flags::SYN | ACK).negotiated, Some(false));
    // RFC 3168 §6.1.1.1: a SYN-ACK that reflects both bits does not agree.
    assert_eq!(ecn(SYN_ECN, SYN_ECN | ACK).negotiated, Some(false));
    let midstream = facts_of(&connection(&transfer(SYN_ECN, SYN_ECN | ACK)[2..]), 1).ecn.expect("ECN");
    assert_eq!((midstream.negotiated, midstream.marked), (None, 1));
    let plain = [packet(true, Flags::SYN, 1, 0, 0), packet(false, Flags::SYN | ACK, 1, 2, 0)];
    assert_eq!(facts_of(&connection(&plain), 1), Facts::default());
}

#[test]
fn keep_alives_and_window_probes_are_told_apart_and_their_answers_counted() {
    let mut closed = packet(true, ACK, 101, 2_501, 0);
    closed.tcp.window = 0;
    let found = connection(&[
        packet(true, Flags::SYN, 100, 0, 0),
        packet(false, Flags::SYN | ACK, 500, 101, 0),
        packet(true, ACK, 101, 501, 0),
        // The server asks twice, without payload; the first gets no answer, and between them the client asks with a byte.
        packet(false, ACK, 500, 101, 0),
        packet(true, ACK, 100, 501, 1),
        packet(false, ACK, 501, 101, 0),
        packet(false, ACK, 500, 101, 0),
        packet(true, ACK, 101, 501, 0),
        packet(false, ACK, 501, 101, 1_000),
        packet(false, ACK, 1_501, 101, 1_000),
        closed,
        packet(false, ACK, 2_500, 101, 0),
        closed,
    ]);
    let seen = facts_of(&found, 1).keep_alives.expect("keep-alives");
    assert_eq!(*seen, KeepAlives { client: 1, server: 2, window_probes: 1, answers: 3 });
    assert_eq!((found.sides[0].sender.totals.bytes, found.sides[1].sender.totals.bytes), (0, 2_000));
    assert_eq!(found.sides[1].sender.losses.total, 0);
}

#[test]
fn multipath_subflows_are_named_and_refusals_told() {
    let with = |subtype| Options { multipath: subtype, ..Options::default() };
    let found = |syn, syn_ack, data| {
        let packets = [
            options(packet(true, Flags::SYN, 100, 0, 0), with(syn)),
            options(packet(false, Flags::SYN | ACK, 500, 101, 0), with(syn_ack)),
            options(packet(true, ACK, 101, 501, 10), with(data)),
        ];
        [&packets[..], &packets[2..]].map(|part| facts_of(&connection(part), 0).multipath)
    };
    let is = |kind, agreed| Some(Multipath { kind, agreed });
    assert_eq!(
        found(Some(0), Some(0), Some(2)),
        [is(MultipathKind::Capable, Some(true)), is(MultipathKind::Unknown, None)]
    );
    assert_eq!(found(Some(1), Some(1), None), [is(MultipathKind::Join, Some(true)), None]);
    assert_eq!(found(Some(0), None, None), [is(MultipathKind::Capable, Some(false)), None]);
    assert_eq!(found(None, None, None), [None, None]);
}

#[test]
fn a_fast_open_asks_first_and_sends_data_with_its_cookie_then() {
    let with = |cookie| Options { fast_open: cookie, ..Options::default() };
    let found = |syn, bytes, syn_ack, ack| {
        let packets = [
            options(packet(true, Flags::SYN, 100, 0, bytes), with(syn)),
            options(packet(false, Flags::SYN | ACK, 500, ack, 0), with(syn_ack)),
        ];
        facts_of(&connection(&packets), 0).fast_open.map(|found| *found)
    };
    let none = FastOpen::default();
    assert_eq!(found(Some(0), 0, Some(8), 101), Some(FastOpen { asked: true, granted: true, ..none }));
    let sent = FastOpen { sent: true, syn_bytes: 300, ..none };
    assert_eq!(found(Some(8), 300, None, 401), Some(FastOpen { accepted: Some(true), ..sent }));
    assert_eq!(found(Some(8), 300, Some(8), 101), Some(FastOpen { accepted: Some(false), granted: true, ..sent }));
    assert_eq!(found(None, 0, None, 101), None);
}
