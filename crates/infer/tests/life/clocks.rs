//! Captures whose clock or file is at fault: set back, joined with itself; and handshakes whose third packet comes late.

use super::capture::{CLIENT, SERVER, Setup, Wire};
use super::{ACK, MS, SECOND, judged, report};
use thalweg_model::Code;

/// A transfer of two seconds: 200 responses over a round trip of 10 ms.
fn responses(setup: Setup) -> Wire {
    let mut wire = Wire::new(setup);
    let mut now = wire.open(0);
    for _ in 0..200 {
        now = wire.exchange(now, 0, 9_000);
    }
    wire
}

#[test]
fn a_capture_that_is_joined_with_itself_is_told_once() {
    for setup in Setup::all(10) {
        let once = report(responses(setup), |_| {});
        let twice = report(responses(setup), |packets| packets.extend(packets.clone()));
        assert_eq!(once.flows, twice.flows, "{setup:?}");
        let note = twice.notes.last().expect("a note");
        assert!(note.contains("a second time"), "{note}");
        assert_eq!(twice.packets, 2 * once.packets);
    }
}

#[test]
fn a_clock_that_is_set_back_makes_no_transfer_faster() {
    for setup in Setup::all(10) {
        let right = report(responses(setup), |_| {});
        let set_back = report(responses(setup), |packets| {
            let half = packets.len() / 2;
            for packet in &mut packets[half..] {
                let seconds = u32::from_le_bytes([packet[0], packet[1], packet[2], packet[3]]);
                packet[..4].copy_from_slice(&(seconds - 3_600).to_le_bytes());
            }
        });
        let rates = [&right, &set_back].map(|report| report.flows[0].goodput_bps);
        assert!((rates[1] / rates[0] - 1.0).abs() < 0.01, "{setup:?}: {rates:?}");
        assert_eq!(set_back.flows[0].retransmits.total, 0);
        let note = set_back.notes.last().expect("a note");
        assert!(note.starts_with("time jumps back in the capture: 1 time, by 3,6"), "{note}");
    }
}

/// A download of 40 segments in windows of four, whose client sends the third packet of the handshake 48 ms late.
fn late_third_packet(setup: Setup) -> Wire {
    let mut wire = Wire::new(setup);
    wire.window = [5_600, 60_000];
    let (half, late) = (setup.rtt / 2, 48 * MS);
    wire.send(0, CLIENT, super::SYN, 0);
    wire.send(half, SERVER, super::SYN | ACK, 0);
    let open = setup.rtt + late;
    wire.send(open, CLIENT, ACK, 0);
    wire.send(open, CLIENT, ACK | thalweg_wire::Flags::PSH, 200);
    let mut now = open + half;
    for _ in 0..10 {
        for n in 0..4 {
            wire.send(now + n * 20, SERVER, ACK, 1_400);
        }
        for n in 0..4 {
            wire.send(now + half + 100 + n * 20, CLIENT, ACK, 0);
        }
        now += setup.rtt + 200;
    }
    wire
}

#[test]
fn a_late_third_packet_of_the_handshake_is_no_round_trip() {
    for setup in Setup::all(20) {
        let (flow, _) = judged(late_third_packet(setup));
        let rtt = flow.rtt_min_ms.expect("a round trip");
        assert!((20.0..21.5).contains(&rtt), "{setup:?}: {rtt}");
        assert!(flow.facts.flight_max_bytes <= 5_600, "{setup:?}: {:?}", flow.facts.flight_max_bytes);
        assert!(flow.duration_s < SECOND as f64);
    }
}

#[test]
fn packets_seen_before_and_behind_a_router_count_once() {
    for setup in Setup::all(10).filter(|setup| setup.tap == CLIENT) {
        let once = report(responses(setup), |_| {});
        // 30 µs later: packets of the other side come between the two.
        let twice = report(responses(setup), |packets| {
            let copies: Vec<Vec<u8>> = packets.iter().map(|packet| behind_router(packet, setup.v6)).collect();
            packets.extend(copies);
            packets.sort_by_key(|packet| (word(packet, 0), word(packet, 4)));
        });
        let [once, twice] = [once, twice].map(|report| (report.flows[0].verdict.code(), report.flows[0].retransmits));
        assert_eq!(once, twice, "{setup:?}");
        assert_eq!(twice.1.total, 0);
    }
}

fn word(packet: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
}

/// The packet of a capture 30 µs later, with a hop less to go.
fn behind_router(packet: &[u8], v6: bool) -> Vec<u8> {
    let mut copy = packet.to_vec();
    let micros = word(packet, 4) + 30;
    copy[..4].copy_from_slice(&(word(packet, 0) + micros / 1_000_000).to_le_bytes());
    copy[4..8].copy_from_slice(&(micros % 1_000_000).to_le_bytes());
    copy[16 + if v6 { 7 } else { 8 }] -= 1;
    copy
}

#[test]
fn a_scale_that_is_cut_off_leaves_the_window_unknown() {
    for setup in Setup::all(20).filter(|setup| !setup.timestamps) {
        // In the file the SYNs end before their last option, and all other headers are whole.
        let headers = if setup.v6 { 60 } else { 40 };
        let told = |snaplen: usize| {
            let mut wire = Wire::new(setup);
            (wire.scale, wire.window, wire.snaplen) = (Some(7), [500; 2], snaplen);
            let open = wire.open(0);
            wire.exchange(open + MS, MS, 400_000);
            let (flow, _) = judged(wire);
            (flow.handshake.wscale_client, flow.measured.window_max_bytes, flow.verdict.code())
        };
        let (whole, cut) = (told(usize::MAX), told(headers + 8));
        assert_eq!((whole.0, whole.1), (Some(7), 64_000), "{setup:?}");
        assert_eq!(cut.0, None, "{setup:?}");
        let of_windows = [Code::ReceiveWindow, Code::WindowScalingMissing, Code::Reader];
        assert!(!of_windows.contains(&cut.2), "{setup:?}: {}", cut.2);
    }
}
