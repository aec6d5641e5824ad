//! Transfers with losses, timeouts, reordering and missing identifications at the receiver's tap: never a panic, and shares that add up.

#[path = "simulated/path.rs"]
mod path;

use path::{Scenario, run};
use proptest::prelude::*;
use std::sync::OnceLock;
use thalweg_units::Timestamp;
use thalweg_wire::{LinkType, pcapng};

/// One packet of the receiver's tap.
#[derive(Debug, Clone)]
struct Packet {
    at: Timestamp,
    original_len: u32,
    bytes: Vec<u8>,
}

/// What befalls one packet on its way to the tap.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    /// Lost before the tap.
    Lost,
    /// Overtaken by the packets of the next so many milliseconds.
    Late(u16),
    /// Arrives twice, the second time so many milliseconds later.
    Twice(u16),
    /// The identification is of another sequence.
    Renumbered(u16),
    /// A bare acknowledgement takes its place and its identification.
    Bare,
}

fn mishap() -> impl Strategy<Value = Mishap> {
    prop_oneof![
        4 => Just(Mishap::Lost),
        3 => (0u16..600).prop_map(Mishap::Late),
        2 => (0u16..600).prop_map(Mishap::Twice),
        1 => any::<u16>().prop_map(Mishap::Renumbered),
        2 => Just(Mishap::Bare),
    ]
}

/// Packets at the receiver's tap of transfers that differ in what they lose.
fn taps() -> &'static [Vec<Packet>] {
    static TAPS: OnceLock<Vec<Vec<Packet>>> = OnceLock::new();
    TAPS.get_or_init(|| {
        let transfer = |bytes, loss, blackout| {
            let file = run(&Scenario { bytes, loss, blackout, rate: 20e6, queue: 40_000, ..Scenario::default() });
            let mut capture = thalweg_wire::Capture::new(file.as_slice()).expect("a capture");
            let mut packets = Vec::new();
            while let Some(packet) = capture.next().expect("a packet") {
                if packet.interface == 0 {
                    let bytes = packet.bytes.to_vec();
                    packets.push(Packet { at: packet.at, original_len: packet.original_len, bytes });
                }
            }
            packets
        };
        vec![transfer(80_000, 0.1, None), transfer(150_000, 0.3, None), transfer(300_000, 0.02, Some((0.12, 0.5)))]
    })
}

/// The capture after the mishaps, each at the packet that its index names.
fn befallen(packets: &[Packet], mishaps: &[(prop::sample::Index, Mishap)]) -> Vec<u8> {
    let mut packets: Vec<Option<Packet>> = packets.iter().cloned().map(Some).collect();
    let later = |at: Timestamp, ms: u16| Timestamp::from_nanos(at.as_nanos() + u64::from(ms) * 1_000_000);
    for (index, mishap) in mishaps {
        let place = index.index(packets.len());
        let Some(packet) = &mut packets[place] else { continue };
        match *mishap {
            Mishap::Lost => packets[place] = None,
            Mishap::Late(ms) => packet.at = later(packet.at, ms),
            Mishap::Twice(ms) => {
                let copy = Packet { at: later(packet.at, ms), ..packet.clone() };
                packets.push(Some(copy));
            }
            Mishap::Renumbered(id) => packet.bytes[4..6].copy_from_slice(&id.to_be_bytes()),
            Mishap::Bare => {
                let headers = 20 + usize::from(packet.bytes[32] >> 4) * 4;
                packet.bytes.truncate(headers);
                packet.bytes[2..4].copy_from_slice(&(headers as u16).to_be_bytes());
                packet.original_len = headers as u32;
            }
        }
    }
    let mut packets: Vec<Packet> = packets.into_iter().flatten().collect();
    packets.sort_by_key(|packet| packet.at);
    let mut out = pcapng::Writer::new(Vec::new(), "tap").expect("memory");
    out.add_interface("client", LinkType::RAW, 0).expect("memory");
    for packet in packets {
        out.packet(0, packet.at, packet.original_len, &packet.bytes, None).expect("memory");
    }
    out.finish().expect("memory")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]
    #[test]
    fn mishaps_before_the_tap_are_judged(
        transfer in 0usize..3,
        mishaps in proptest::collection::vec((any::<prop::sample::Index>(), mishap()), 0..60),
    ) {
        let capture = befallen(&taps()[transfer], &mishaps);
        let found = thalweg_infer::diagnose_reader(capture.as_slice(), "tap").expect("a capture");
        for flow in found.report.flows {
            let total = flow.limits.total();
            prop_assert!(total == 0.0 || (total - 1.0).abs() < 1e-9, "{}", total);
            let classes = &flow.retransmits;
            prop_assert_eq!(classes.total, classes.fast + classes.rto + classes.tlp);
        }
    }
}
