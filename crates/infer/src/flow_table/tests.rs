//! Connections that are over: what comes late, what begins again, and what is kept in memory.

use super::*;
use crate::testing::{CLIENT, packet};
use std::cell::Cell;
use thalweg_units::SeqNum;
use thalweg_wire::{Flags, SackBlocks};

thread_local! {
    /// The number of the packet at which this thread's analysis panics; 0 for none.
    static DEFECT: Cell<u64> = const { Cell::new(0) };
}

/// Panics at the packet that [`DEFECT`] names.
pub(super) fn panic_at(number: u64) {
    assert!(DEFECT.get() != number, "a defect, for a test");
}

const SECOND: u64 = 1_000_000_000;

/// A table and the packets of connections between two ends, a millisecond apart.
struct Wire {
    table: FlowTable,
    number: u64,
    now: u64,
    seen: Vec<TcpPacket>,
}

impl Wire {
    fn new() -> Self {
        Self { table: FlowTable::new(PlotSelection::None, Retain::All), number: 0, now: SECOND, seen: Vec::new() }
    }

    /// After a handshake over a path of 20 ms, captured beside the server.
    fn opened() -> Self {
        let mut wire = Self::new();
        wire.send(true, Flags::SYN, 100, 0, 0, &[]);
        wire.send(false, Flags::SYN | Flags::ACK, 100, 101, 0, &[]);
        wire.now += SECOND / 50;
        wire.send(true, Flags::ACK, 101, 101, 0, &[]);
        wire
    }

    /// 10,000 bytes down in ten segments, acknowledged a round trip later.
    fn answer(&mut self) {
        (0..10).for_each(|n| self.send(false, Flags::ACK, 101 + n * 1_000, 101, 1_000, &[]));
        self.now += SECOND / 50;
        self.send(true, Flags::ACK, 101, 10_101, 0, &[]);
    }

    fn send(&mut self, up: bool, flags: u8, seq: u32, ack: u32, payload_len: u32, sack: &[(u32, u32)]) {
        self.number += 1;
        self.now += SECOND / 1_000;
        let sack: Vec<_> = sack.iter().map(|&(l, r)| (SeqNum::new(l), SeqNum::new(r))).collect();
        let mut segment = packet(up, flags, seq, ack, payload_len);
        segment.tcp.options.sack = SackBlocks::new(&sack);
        let at = Timestamp::from_nanos(self.now);
        let seen = TcpPacket::new(0, (at, self.now), self.number, segment);
        self.table.packet(&seen);
        self.seen.push(seen);
    }

    /// A whole connection: 2,000 bytes down in two segments, then both FINs.
    fn connection(&mut self, isn: u32) {
        self.send(true, Flags::SYN, isn, 0, 0, &[]);
        self.send(false, Flags::SYN | Flags::ACK, isn, isn + 1, 0, &[]);
        self.send(true, Flags::ACK, isn + 1, isn + 1, 0, &[]);
        self.send(false, Flags::ACK, isn + 1, isn + 1, 1_000, &[]);
        self.send(false, Flags::ACK, isn + 1_001, isn + 1, 1_000, &[]);
        self.send(true, Flags::ACK, isn + 1, isn + 2_001, 0, &[]);
        self.send(false, Flags::FIN | Flags::ACK, isn + 2_001, isn + 1, 0, &[]);
        self.send(true, Flags::FIN | Flags::ACK, isn + 1, isn + 2_002, 0, &[]);
        self.send(false, Flags::ACK, isn + 2_002, isn + 2, 0, &[]);
    }
}

#[test]
fn a_late_retransmission_counts_though_the_connection_was_summed_up() {
    let mut wire = Wire::new();
    wire.connection(100);
    wire.now += 10 * SECOND;
    wire.send(false, Flags::ACK, 1_101, 101, 1_000, &[]);
    assert_eq!(wire.table.kept.records.len(), 1, "it was summed up before");
    wire.send(true, Flags::ACK, 102, 2_102, 0, &[(1_101, 2_101)]);
    let finished = wire.table.finish(0).records;
    let [one] = finished.as_slice() else { panic!("{} connections", finished.len()) };
    let sent_again = &one.flow.retransmits;
    assert_eq!((sent_again.total, sent_again.rto, sent_again.spurious), (1, 1, 1));
    assert_eq!((one.flow.packets_up, one.flow.packets_down, one.flow.bytes_down), (5, 6, 2_000));
    assert!(one.flow.duration_s > 10.0);
}

#[test]
fn reused_ports_and_ends_long_forgotten_begin_anew() {
    let mut wire = Wire::new();
    wire.connection(100);
    wire.connection(50_000);
    wire.now += 10 * SECOND;
    wire.connection(90_000);
    wire.now += 300 * SECOND;
    wire.send(false, Flags::ACK, 91_001, 90_001, 1_000, &[]);
    let finished = wire.table.finish(0).records;
    let packets: Vec<u64> = finished.iter().map(|one| one.flow.packets_up + one.flow.packets_down).collect();
    assert_eq!(packets, [9, 9, 9, 1]);
}

#[test]
fn it_makes_no_difference_how_many_packets_are_analysed_at_a_time() {
    let mut wire = Wire::new();
    wire.connection(100);
    wire.connection(50_000);
    wire.now += 10 * SECOND;
    wire.send(false, Flags::ACK, 51_001, 50_001, 1_000, &[]);
    wire.connection(90_000);
    wire.now += 300 * SECOND;
    wire.send(false, Flags::ACK, 91_001, 90_001, 1_000, &[]);
    // The same between other ports, a little later each.
    let mut all = Vec::new();
    for later in 0..40u16 {
        all.extend(wire.seen.iter().map(|seen| {
            let clock = seen.clock + u64::from(later) * 700_000;
            let mut seen = TcpPacket { at: Timestamp::from_nanos(clock), clock, ..seen.clone() };
            let tcp = &mut seen.segment.tcp;
            let port = if tcp.source_port == CLIENT.1 { &mut tcp.source_port } else { &mut tcp.destination_port };
            *port += later;
            seen
        }));
    }
    all.sort_by_key(|seen| seen.clock);
    (1..).zip(&mut all).for_each(|(number, seen)| seen.number = number);
    let found = |at_a_time: usize, drawn: PlotSelection| {
        let mut table = FlowTable { at_a_time, ..FlowTable::new(drawn, Retain::All) };
        all.iter().for_each(|seen| table.packet(seen));
        let mut found = table.finish(0).records;
        found.sort_by_key(|one| one.flow.first_packet);
        format!("{found:?}")
    };
    for drawn in [PlotSelection::None, PlotSelection::First(50)] {
        let wanted = found(1, drawn.clone());
        assert_eq!(wanted.matches("first_packet").count(), 4 * 40);
        for at_a_time in [2, 7, BATCH_PACKETS] {
            assert!(found(at_a_time, drawn.clone()) == wanted, "{at_a_time} at a time, {drawn:?}");
        }
    }
}

#[test]
fn an_open_connection_may_be_silent_for_two_hours() {
    let mut wire = Wire::new();
    for n in 0..3 {
        wire.send(n % 2 == 0, Flags::ACK, 100, 100, 0, &[]);
        wire.now += 7_000 * SECOND;
    }
    wire.now += 1_000 * SECOND;
    wire.send(true, Flags::ACK, 100, 100, 0, &[]);
    assert_eq!(wire.table.finish(0).records.len(), 2);
}

#[test]
fn what_is_kept_does_not_grow_with_what_is_over() {
    let mut wire = Wire::new();
    for n in 0..2_000 {
        wire.connection(n * 10_000);
        wire.now += 3 * SECOND;
    }
    assert_eq!(wire.table.current.len(), 1);
    assert!(wire.table.slots.len() <= 2 && wire.table.spare.len() <= 2 && wire.table.backlog.room() <= 32);
    let noted = [&wire.table.closed, &wire.table.looks, &wire.table.remembered].map(VecDeque::len);
    // One look every 240 s for each connection begun since.
    assert!(noted.iter().all(|&noted| noted <= 81), "{noted:?}");
    let finished = wire.table.finish(0).records;
    assert_eq!(finished.len(), 2_000);
}

#[test]
fn a_finished_connection_takes_less_than_four_kilobytes() {
    let mut wire = Wire::new();
    wire.connection(100);
    let one = &wire.table.finish(0).records[0];
    let flow = &one.flow;
    // Each with the packets of three sights, as JSON has them.
    let findings = flow.findings.len() * (size_of::<thalweg_model::Finding>() + 3 * size_of::<u64>());
    let texts = flow.client.capacity() + flow.server.capacity();
    let facts = &flow.facts;
    let boxed = [
        facts.rtt.as_deref().map(size_of_val),
        facts.receive_window.as_deref().map(size_of_val),
        facts.bursts.as_deref().map(size_of_val),
        // Not of this connection, but of others.
        Some(size_of::<(
            thalweg_model::LossFacts,
            thalweg_model::Reordering,
            thalweg_model::IdleRestarts,
            thalweg_model::KeepAlives,
            thalweg_model::FastOpen,
        )>()),
        Some(
            size_of::<thalweg_model::SharedPath>()
                + crate::shared_path::aggregate_rate::MAX_BINS as usize * size_of::<f32>(),
        ),
    ];
    assert!(boxed.iter().all(Option::is_some), "{facts:?}");
    let boxed: usize = boxed.iter().flatten().sum();
    let all = boxed + size_of::<crate::flow::record::FlowRecord>() + texts + findings + size_of::<ClosedFlow>();
    assert!(all < 4_096, "{all} bytes");
}

/// Found by fuzzing, where overflow is checked.
#[test]
fn a_pause_of_decades_as_damaged_clocks_tell_is_summed_up() {
    let mut wire = Wire::new();
    wire.send(true, Flags::SYN, 100, 0, 0, &[]);
    wire.send(false, Flags::SYN | Flags::ACK, 100, 101, 0, &[]);
    wire.send(true, Flags::ACK, 101, 101, 0, &[]);
    for n in 0..20 {
        let seq = 101 + n * 1_000;
        wire.send(false, Flags::ACK, seq, 101, 1_000, &[]);
        wire.send(true, Flags::ACK, 101, seq + 1_000, 0, &[]);
    }
    let mut seen = wire.seen;
    // The capture's clock does not believe it; the connection's goes on from there.
    for late in &mut seen[13..] {
        late.at = Timestamp::from_nanos(late.at.as_nanos() + 1_100_000_000 * SECOND);
    }
    let mut table = FlowTable::new(PlotSelection::None, Retain::All);
    seen.iter().for_each(|seen| table.packet(seen));
    let finished = table.finish(0).records;
    let [one] = finished.as_slice() else { panic!("{} connections", finished.len()) };
    assert!((one.flow.limits.total() - 1.0).abs() < 1e-9 && one.flow.limits.application > 0.99);
}

/// A window of 60,000 bytes is filled twenty times; it opens again after a round trip, and what is next comes `later` than that.
fn fills_the_window(later: u64) -> thalweg_model::Limits {
    let mut wire = Wire::opened();
    for round in 0..20 {
        // Each packet comes a millisecond after the one before.
        wire.now = wire.now + later - SECOND / 1_000;
        for part in 0..3 {
            wire.send(false, Flags::ACK, 101 + round * 60_000 + part * 20_000, 101, 20_000, &[]);
        }
        wire.now += SECOND / 50;
        wire.send(true, Flags::ACK, 101, 101 + (round + 1) * 60_000, 0, &[]);
    }
    let finished = wire.table.finish(0).records;
    finished[0].flow.limits
}

#[test]
fn a_program_that_fills_the_window_and_has_no_more_does_not_wait_for_it() {
    let limits = fills_the_window(SECOND / 20_000);
    assert!(limits.receive_window > 0.9, "{limits:?}");
    let limits = fills_the_window(SECOND / 20);
    assert!(limits.application > 0.9 && limits.receive_window < 0.05, "{limits:?}");
}

/// Acknowledgements go on coming while the retransmission is lost as well: the next one follows one of them by chance.
#[test]
fn without_sack_what_is_sent_again_twice_in_place_was_the_timers() {
    let mut wire = Wire::opened();
    (0..20).for_each(|n| wire.send(false, Flags::ACK, 101 + n * 1_000, 101, 1_000, &[]));
    (0..4).for_each(|_| wire.send(true, Flags::ACK, 101, 1_101, 0, &[]));
    for duplicates in [12, 0] {
        // Each comes 100 microseconds after the acknowledgement before it.
        wire.now -= SECOND / 1_000 - SECOND / 10_000;
        wire.send(false, Flags::ACK, 1_101, 101, 1_000, &[]);
        for _ in 0..duplicates {
            wire.now += SECOND / 200;
            wire.send(true, Flags::ACK, 101, 1_101, 0, &[]);
        }
    }
    let finished = wire.table.finish(0).records;
    let again = finished[0].flow.retransmits;
    assert_eq!((again.fast, again.rto, again.tlp), (1, 1, 0));
}

/// What is said of the only connection there was.
fn claim(wire: Wire) -> (thalweg_model::Code, String) {
    let finished = wire.table.finish(0).records;
    let [one] = finished.as_slice() else { panic!("{} connections", finished.len()) };
    (one.flow.verdict.code(), one.flow.verdict.claim())
}

#[test]
fn what_never_opened_says_so_where_both_directions_were_captured() {
    let answers: [&[u8]; 3] = [&[], &[Flags::RST | Flags::ACK], &[Flags::SYN | Flags::ACK]];
    use thalweg_model::Code::{Connecting, Unknown};
    let wanted = [(Connecting, "nothing answered the SYN"), (Connecting, "was refused"), (Unknown, "holds no data")];
    for (answer, wanted) in answers.into_iter().zip(wanted) {
        let mut wire = Wire::new();
        wire.send(true, Flags::SYN, 100, 0, 0, &[]);
        wire.now += SECOND;
        wire.send(true, Flags::SYN, 100, 0, 0, &[]);
        answer.iter().for_each(|&flags| wire.send(false, flags, 0, 101, 0, &[]));
        let (code, claim) = claim(wire);
        assert!(code == wanted.0 && claim.contains(wanted.1), "{claim}");
    }
    // Of one direction alone the capture does not tell what answered.
    let mut wire = Wire::new();
    (0..2).for_each(|_| wire.send(true, Flags::SYN, 100, 0, 0, &[]));
    wire.send(true, Flags::ACK, 101, 501, 0, &[]);
    assert!(claim(wire).1.contains("holds no data"));
}

/// Segments of `len` bytes are sent again for half a minute, and nothing is heard, nor was before unless there was a handshake.
fn in_vain(handshake: bool, len: u32) -> (thalweg_model::Code, String) {
    let mut wire = Wire::new();
    if handshake {
        wire.send(true, Flags::SYN, 100, 0, 0, &[]);
        // The capture is the client's.
        wire.now += SECOND / 50;
        wire.send(false, Flags::SYN | Flags::ACK, 100, 101, 0, &[]);
        wire.send(true, Flags::ACK, 101, 101, 0, &[]);
    }
    for doubling in 0..6 {
        wire.send(true, Flags::ACK, 101, 101, len, &[]);
        wire.now += SECOND << doubling;
    }
    claim(wire)
}

#[test]
fn what_is_sent_in_vain_is_a_black_hole_where_only_its_length_explains_it() {
    use thalweg_model::Code::{PathMtuBlackHole, Unknown, VanishedPeer};
    assert_eq!(in_vain(true, 1_448).0, PathMtuBlackHole);
    let (code, claim) = in_vain(false, 1_448);
    assert!(code == Unknown && claim.contains("though it was sent again 5 times in 31.0 s"), "{code} {claim}");
    let (code, claim) = in_vain(true, 648);
    assert!(code == VanishedPeer && claim.contains("for 31.0 s: the client sent 5 packets again"), "{code} {claim}");
}

#[test]
fn the_data_phase_ends_with_the_data_whenever_the_program_closes() {
    let mut wire = Wire::opened();
    wire.answer();
    wire.now += 10 * SECOND;
    wire.send(false, Flags::FIN | Flags::ACK, 10_101, 101, 0, &[]);
    wire.send(true, Flags::FIN | Flags::ACK, 101, 10_102, 0, &[]);
    wire.send(false, Flags::ACK, 10_102, 102, 0, &[]);
    let finished = wire.table.finish(0).records;
    let flow = &finished[0].flow;
    assert!(flow.limits.application < 0.9 && flow.duration_s > 10.0, "{:?}", flow.limits);
}

#[test]
fn a_fin_that_is_sent_again_slows_no_data() {
    let mut wire = Wire::opened();
    wire.answer();
    for doubling in 0..5 {
        wire.send(false, Flags::FIN | Flags::ACK, 10_101, 101, 0, &[]);
        wire.now += (SECOND / 4) << doubling;
    }
    wire.send(true, Flags::FIN | Flags::ACK, 101, 10_102, 0, &[]);
    let finished = wire.table.finish(0).records;
    let flow = &finished[0].flow;
    assert_eq!((flow.retransmits.total, flow.limits.timeout), (4, 0.0), "{:?}", flow.limits);
    assert_ne!(flow.verdict.code(), thalweg_model::Code::RetransmissionTimeout, "{:?}", flow.verdict);
}

#[test]
fn one_small_write_leaves_nothing_to_gain_however_late_the_close() {
    for late in [0, SECOND / 20, 10 * SECOND] {
        let mut wire = Wire::opened();
        wire.send(false, Flags::ACK, 101, 101, 100, &[]);
        wire.now += SECOND / 50;
        wire.send(true, Flags::ACK, 101, 201, 0, &[]);
        wire.now += late;
        wire.send(true, Flags::FIN | Flags::ACK, 101, 201, 0, &[]);
        wire.send(false, Flags::FIN | Flags::ACK, 201, 102, 0, &[]);
        let finished = wire.table.finish(0).records;
        let (verdict, limits) = (&finished[0].flow.verdict, &finished[0].flow.limits);
        assert_eq!(
            (verdict.code(), limits.application),
            (thalweg_model::Code::NothingToGain, 0.0),
            "{verdict:?} {limits:?}"
        );
    }
}

/// Beside the receiver: of ten segments the second is lost, and nothing comes any more until the receiver closes.
#[test]
fn what_is_missing_until_the_end_was_left_to_a_timer() {
    let mut wire = Wire::opened();
    for n in (0..10).filter(|&n| n != 1) {
        wire.send(true, Flags::ACK, 101 + n * 1_000, 101, 1_000, &[]);
        let sack = [(2_101, 1_101 + n * 1_000)];
        wire.send(false, Flags::ACK, 101, 1_101, 0, if n > 1 { &sack } else { &[] });
    }
    wire.now += 3 * SECOND;
    wire.send(false, Flags::FIN | Flags::ACK, 101, 1_101, 0, &[(2_101, 10_101)]);
    let finished = wire.table.finish(0).records;
    let flow = &finished[0].flow;
    let (verdict, seconds) = (&flow.verdict, 9_000.0 * 8.0 / flow.goodput_bps);
    assert!((3.0..3.1).contains(&seconds) && flow.limits.timeout > 0.95, "{seconds} {:?}", flow.limits);
    assert_eq!(verdict.code(), thalweg_model::Code::RetransmissionTimeout, "{verdict:?}");
    assert!(verdict.claim().starts_with("Data was missing when packets stopped"), "{verdict:?}");
}

#[test]
fn losses_out_of_bursts_handed_down_whole_are_a_part_of_their_segments() {
    let mut wire = Wire::opened();
    for round in 0..12 {
        let start = 101 + round * 58_400;
        (0..2).for_each(|frame| wire.send(false, Flags::ACK, start + frame * 29_200, 101, 29_200, &[]));
        wire.now += SECOND / 50;
        if round % 3 == 2 {
            wire.send(true, Flags::ACK, 101, start, 0, &[(start + 1_460, start + 58_400)]);
            wire.send(false, Flags::ACK, start, 101, 1_460, &[]);
            wire.now += SECOND / 50;
        }
        wire.send(true, Flags::ACK, 101, start + 58_400, 0, &[]);
    }
    // 4 of 480 and 4, not 4 of 28 packets.
    let finished = wire.table.finish(0).records;
    let flow = &finished[0].flow;
    let findings = flow.findings.iter().map(|finding| &finding.verdict);
    let claims: Vec<String> = std::iter::once(&flow.verdict).chain(findings).map(|found| found.claim()).collect();
    assert!(claims.iter().any(|claim| claim.contains("(0.8 % of them)")), "{claims:?}");
}

/// The defect is at a packet of the first of two connections: while it goes on, at its end, and with more of it to come.
#[test]
fn a_defect_in_one_connection_leaves_the_others() {
    let whole = {
        let mut wire = Wire::new();
        wire.connection(100);
        wire.now += 20 * SECOND;
        wire.connection(50_000);
        wire.table.finish(0)
    };
    assert_eq!((whole.records.len(), whole.failed.len()), (2, 0));
    for (at, at_a_time) in [(2, 1), (2, BATCH_PACKETS), (5, 3)] {
        DEFECT.set(at);
        let mut wire = Wire::new();
        wire.table.at_a_time = at_a_time;
        wire.connection(100);
        // Late, and of no other connection.
        wire.send(false, Flags::ACK, 101, 101, 1_000, &[]);
        wire.now += 20 * SECOND;
        wire.connection(50_000);
        let kept = wire.table.finish(0);
        DEFECT.set(0);
        let failed: Vec<u64> = kept.failed.iter().map(|flow| flow.first_packet).collect();
        assert_eq!((failed, kept.firsts.len(), kept.records.len()), (vec![1], 2, 1), "{at} {at_a_time}");
        assert_eq!(kept.failed[0].ends[0], CLIENT);
        assert_eq!(kept.records[0].flow.bytes_down, whole.records[1].flow.bytes_down);
    }
}
