//! Flows with known bytes, and segments sent again at known times.

use super::super::{Bursts, Port};
use super::*;
use thalweg_model::{BurstResent, BurstSource, BurstSourceKind, BurstsReport, ResentSource};
use thalweg_units::{Bytes, Rate};

fn at(us: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000_000 + us * 1_000)
}

fn flow(port: u16) -> FlowId {
    let (local, peer) = (SocketAddr::from(([192, 0, 2, 1], port)), "192.0.2.2:443".parse().expect("an end"));
    FlowId { protocol: FlowProtocol::Tcp, local, peer }
}

/// An interface with a port of 1 Gb/s and 10 kB, and rows for this many flows.
fn bursts(most: usize) -> Bursts {
    let source = BurstSource { kind: BurstSourceKind::Tcx, reason: None, step_us: 10 };
    let port = Port { rate: Rate::from_bits_per_second(1_000_000_000), buffer: Bytes::new(10_000) };
    let mut bursts = Bursts::new("eth0", source, at(0), Some(port));
    bursts.tell_flows(most, Some(BurstResent { source: ResentSource::Tracepoint, ..BurstResent::default() }));
    bursts
}

fn resent(port: u16, us: u64, kind: ResentKind) -> Resent {
    let FlowId { local, peer, .. } = flow(port);
    Resent { at: at(us), local, peer, kind, segments: 1, round_trip: Span::from_millis(1) }
}

fn ports(report: &BurstsReport) -> Vec<Option<u16>> {
    report.flows.iter().map(|flow| flow.ends.map(|ends| ends.local.port())).collect()
}

#[test]
fn the_flows_that_matter_get_the_rows() {
    let mut bursts = bursts(2);
    // Two small ones come first, and a large one has no row.
    for round in 0..100u64 {
        let us = round * 1_000;
        for (port, bytes) in [(1, 100), (2, 100), (3, 9_000)] {
            bursts.packet(at(us), bytes, true, Some(flow(port)));
        }
        bursts.packet(at(us), 40, false, Some(flow(3)));
        bursts.packet(at(us), 60, false, None);
    }
    let report = bursts.report(at(100_000), 0);
    assert_eq!(ports(&report), [Some(1), Some(2), None]);
    let bytes = |side: fn(&BurstFlow) -> &BurstFlowSide| report.flows.iter().map(|flow| side(flow).bytes).sum::<u64>();
    assert_eq!((bytes(|flow| &flow.sent), bytes(|flow| &flow.received)), (report.sent.bytes, report.received.bytes));
    assert!(report.flows[0].sent.bins.iter().zip([1_000, 100, 10]).all(|(bins, count)| bins.count == count));
    assert_eq!(report.flows[0].sent.bins[1].max_bps, 800_000.0);
    // It gets one in the next interval.
    assert!(!bursts.is_kept(&flow(1)));
    for port in [3, 1] {
        bursts.packet(at(100_500), 9_000, true, Some(flow(port)));
    }
    let report = bursts.report(at(200_000), 0);
    assert_eq!(ports(&report), [Some(1), Some(3)]);
    assert!(bursts.is_kept(&flow(1)) && bursts.is_kept(&flow(3)));
    // One that rests loses it.
    bursts.packet(at(200_500), 9_000, true, Some(flow(3)));
    bursts.report(at(300_000), 0);
    assert!(!bursts.is_kept(&flow(1)) && bursts.is_kept(&flow(3)));
}

#[test]
fn parts_of_bins_leave_the_rest_to_others() {
    let mut bursts = bursts(4);
    let bin = super::super::BusyBin {
        at_ns: at(100).as_nanos(),
        is_sent: true,
        packets: 10,
        bytes: 15_000,
        packet_max_bytes: 1_500,
        overflows: false,
        flow: None,
    };
    bursts.bin(&bin, [(flow(1), 4, 6_000), (flow(2), 5, 7_500)]);
    let report = bursts.report(at(1_000), 0);
    let sent: Vec<(u64, u64)> = report.flows.iter().map(|flow| (flow.sent.packets, flow.sent.bytes)).collect();
    assert_eq!(sent, [(5, 7_500), (4, 6_000), (1, 1_500)]);
    assert!(report.flows.iter().all(|flow| flow.sent.overflow_bytes == flow.sent.bytes), "15 kB overflow 10 kB");
    assert_eq!((report.sent.overflows.len(), report.sent.overflows[0].excess_bytes), (1, 5_000));
}

#[test]
fn a_segment_sent_again_is_joined_to_the_overflow_before_it() {
    let mut bursts = bursts(4);
    for packet in 0..20 {
        bursts.packet(at(10_000 + packet), 1_500, true, Some(flow(1)));
    }
    bursts.packet(at(10_001), 1_500, true, Some(flow(2)));
    for (port, us, kind) in [
        (1, 9_000, ResentKind::Fast),
        (1, 10_010, ResentKind::Fast),
        (1, 15_000, ResentKind::Fast),
        (1, 90_000, ResentKind::Fast),
        (1, 91_000, ResentKind::Timeout),
        (2, 99_000, ResentKind::Probe),
        (7, 99_000, ResentKind::Fast),
    ] {
        bursts.resent(resent(port, us, kind));
    }
    let report = bursts.report(at(100_000), 0);
    assert_eq!(ports(&report), [Some(1), Some(2)]);
    let segments = report.resent.expect("told").segments;
    let joined: Vec<bool> = segments.iter().map(|segment| segment.overflow_at_s.is_some()).collect();
    assert_eq!(joined, [false, true, true, false, true, false], "{segments:?}");
    let began = report.sent.overflows[0].at_s;
    assert_eq!(segments[1].overflow_at_s, Some(began));
    let classes = report.flows[0].resent.and_then(|resent| resent.classes).expect("told");
    assert_eq!((classes.fast, classes.timeout, classes.after_overflow), (4, 1, 3));
    assert_eq!(report.flows[1].resent.map(|resent| resent.segments), Some(1));
    // An overflow of an earlier interval counts too, and so does each segment of what is sent as one.
    bursts.packet(at(150_000), 100, true, Some(flow(1)));
    bursts.resent(Resent { segments: 3, ..resent(1, 150_000, ResentKind::Timeout) });
    let report = bursts.report(at(200_000), 0);
    let resent = report.flows[0].resent.expect("counted");
    assert_eq!((resent.segments, resent.classes.expect("by class").after_overflow), (3, 3));
    assert!(report.resent.expect("listed").segments[0].overflow_at_s.is_some());
}

#[test]
fn counters_of_sockets_tell_how_many_and_no_more() {
    let mut bursts = bursts(4);
    bursts.packet(at(1), 1_500, true, Some(flow(1)));
    bursts.packet(at(1), 1_500, true, Some(flow(2)));
    let FlowId { local, peer, .. } = flow(1);
    bursts.resent_counted([((local, peer), 5)].into());
    let report = bursts.report(at(1_000), 0);
    let told: Vec<_> = report.flows.iter().filter_map(|flow| flow.resent).collect();
    assert_eq!(told.iter().map(|resent| resent.segments).collect::<Vec<_>>(), [5, 0]);
    assert!(told.iter().all(|resent| resent.classes.is_none()) && report.resent.expect("told").segments.is_empty());
}

#[test]
fn a_packet_tells_its_flow_by_its_headers() {
    let mut v4 = vec![0x46, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 0, 0, 0];
    v4.extend([0x1f, 0x90, 0x01, 0xbb]);
    let sent = flow_of(&v4, true).expect("a flow");
    assert_eq!((sent.local, sent.peer), ("192.0.2.1:8080".parse().expect("an end"), flow(1).peer));
    let received = flow_of(&v4, false).expect("a flow");
    assert_eq!((received.local, received.peer), (sent.peer, sent.local));
    let mut v6 = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    v6.extend([1; 16]);
    v6.extend([2; 16]);
    v6.extend([0, 1, 0, 2]);
    let udp = flow_of(&v6, true).expect("a flow");
    assert_eq!((udp.protocol, udp.local.port(), udp.peer.port()), (FlowProtocol::Udp, 1, 2));
    for packet in [&v4, &v6] {
        assert!((0..packet.len()).all(|len| flow_of(&packet[..len], true).is_none()), "cut");
    }
    v4[7] = 1;
    assert_eq!(flow_of(&v4, true), None, "a later fragment");
    v6[6] = 58;
    assert_eq!(flow_of(&v6, true), None, "ICMP");
}

#[test]
fn bins_of_flows_add_up_to_those_of_the_interface() {
    let mut bursts = bursts(2);
    bursts.keep_bins();
    let mut sums = std::collections::HashMap::new();
    for interval in 0..3u64 {
        for round in 0..100u64 {
            let us = interval * 100_000 + round * 1_000;
            for port in [1, 2, 3] {
                bursts.packet(at(us), 1_000 * u64::from(port), port != 2, Some(flow(port)));
            }
        }
        let report = bursts.report(at((interval + 1) * 100_000), 0);
        let bins = bursts.busy_bins();
        let sum = |is_sent| bins.iter().filter(|bin| bin.is_sent == is_sent).map(|bin| bin.bytes).sum::<u64>();
        assert_eq!((sum(true), sum(false)), (report.sent.bytes, report.received.bytes));
        assert!(bins.is_sorted_by_key(|bin| (bin.at_ns, bin.is_sent)));
        for bin in bins {
            assert_eq!(bin.packet_max_bytes, if bin.is_sent { 3_000 } else { 2_000 });
            *sums.entry(bin.flow).or_insert(0) += bin.bytes;
        }
        assert!(bursts.busy_bins().is_empty());
    }
    // In the first interval the third has no row.
    assert!(sums[&Some(flow(2))] == 600_000 && sums[&None] >= 300_000, "{sums:?}");
    assert_eq!(sums.values().sum::<u64>(), 1_800_000);
}

#[test]
fn without_a_source_nothing_is_said_of_what_is_sent_again() {
    let mut bursts =
        Bursts::new("eth0", BurstSource { kind: BurstSourceKind::Record, reason: None, step_us: 100 }, at(0), None);
    bursts.tell_flows(2, None);
    bursts.packet(at(10), 1_000, true, Some(flow(1)));
    let report = bursts.report(at(1_000), 0);
    assert_eq!((report.flows.len(), report.flows[0].resent, report.resent), (1, None, None));
}
