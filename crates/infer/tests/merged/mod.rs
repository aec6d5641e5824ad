//! A capture of many connections, made of the lab's small captures in `fuzz/corpus/diagnose`.

use std::fs;
use std::path::Path;
use thalweg_units::Timestamp;
use thalweg_wire::{Capture, LinkType, pcapng};

/// How often each capture of the corpus is in the merged one, each time between other hosts.
const TIMES: u8 = 10;

/// Where an Ethernet frame has the third byte of its IPv4 addresses: one `/24` for each copy.
const SOURCE_NET: usize = 14 + 12 + 2;
const DESTINATION_NET: usize = 14 + 16 + 2;

/// All captures of the corpus, several times, with their packets in the order of time.
pub(crate) fn capture() -> Vec<u8> {
    capture_of(|_| true)
}

/// The frames of [`capture`] that `keeps` keeps.
pub(crate) fn capture_of(keeps: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/diagnose");
    let mut inputs: Vec<_> = fs::read_dir(&folder).expect("the corpus").map(|e| e.expect("an entry").path()).collect();
    inputs.sort();
    let mut packets = Vec::new();
    for (index, path) in (0u8..).zip(&inputs) {
        let bytes = fs::read(path).expect("an input");
        for copy in 0..TIMES {
            let mut capture = Capture::new(bytes.as_slice()).expect("a capture");
            let mut first = None;
            while let Some(packet) = capture.next().expect("readable") {
                // One end's packets: with both, each connection is two.
                if packet.interface != 0 || !keeps(packet.bytes) {
                    continue;
                }
                assert_eq!(
                    (packet.link, &packet.bytes[12..14]),
                    (LinkType::ETHERNET, &[8u8, 0][..]),
                    "IPv4 in Ethernet"
                );
                let first = *first.get_or_insert(packet.at.as_nanos());
                // Each begins 40 ms after the one before, so that many go on at a time.
                let at = packet.at.as_nanos() - first + (u64::from(copy) * 20 + u64::from(index)) * 40_000_000;
                let mut frame = packet.bytes.to_vec();
                frame[SOURCE_NET] = index * TIMES + copy;
                frame[DESTINATION_NET] = index * TIMES + copy;
                packets.push((at, packet.original_len, frame));
            }
        }
    }
    packets.sort_by_key(|(at, ..)| *at);
    let mut writer = pcapng::Writer::new(Vec::new(), "test").expect("vec");
    writer.add_interface("lab", LinkType::ETHERNET, 0).expect("vec");
    for (at, length, frame) in packets {
        writer.packet(0, Timestamp::from_nanos(at + 1_000_000_000), length, &frame, None).expect("vec");
    }
    writer.finish().expect("vec")
}
