//! Tests of frames and their pieces.

use super::*;
use proptest::prelude::*;

/// A TSO frame over IPv4 with 12 bytes of TCP options, whose payload is a counter.
fn tcp(payload: usize, gso_size: u16) -> Vec<u8> {
    let mut bytes = vec![NEEDS_CSUM, GSO_TCPV4];
    [52u16, gso_size, 20, 16].iter().for_each(|field| bytes.extend(field.to_ne_bytes()));
    let mut ip = vec![0x45, 2, 0, 0, 0xff, 0xfe, 0x40, 0, 64, TCP, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
    ip.extend([0x1f, 0x90, 0xc0, 0x00, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 1, 0x80, 0x10 | 0x89, 1, 0, 0, 0, 0, 0]);
    ip.extend([1; 12]);
    ip.extend((0..payload).map(|at| (at % 251) as u8));
    let length = ip.len();
    put_u16(&mut ip, 2, length);
    set_ip_checksum(&mut ip);
    bytes.extend(ip);
    bytes
}

/// The packets that a receiver sees of a piece, with complete checksums: what segmentation in hardware would send.
fn on_the_wire(piece: &Piece<'_>) -> Vec<Vec<u8>> {
    let frame = Frame::parse(piece.parts().concat()).expect("IP");
    let count = frame.packet(()).lengths.count();
    (0..count)
        .map(|at| frame.piece(&(at..at + 1), false, Some(u32::MAX)).parts().concat()[VNET_LEN..].to_vec())
        .collect()
}

fn assert_sums(packet: &[u8]) {
    assert_eq!(sum(&packet[..20], 0), 0xffff, "the IP header's");
    let length = packet.len() - 20;
    assert_eq!(sum(&packet[20..], sum(&packet[12..20], u32::from(TCP) + length as u32)), 0xffff, "TCP's");
}

#[test]
fn a_segment_has_the_headers_of_its_place() {
    let frame = Frame::parse(tcp(3_000, 1_448)).expect("IP");
    let packet = frame.packet(());
    assert_eq!((packet.lengths, packet.is_tcp, packet.ecn_capable), (Lengths::segmented(52, 3_000, 1_448), true, true));
    let wire = on_the_wire(&frame.piece(&(0..3), false, None));
    assert_eq!(wire.iter().map(Vec::len).collect::<Vec<_>>(), [1_500, 1_500, 156]);
    wire.iter().for_each(|packet| assert_sums(packet));
    // Numbers and identifications wrap; CWR is on the first, PSH and FIN are on the last.
    let numbers: Vec<[u8; 4]> = wire.iter().map(|packet| packet[24..28].try_into().expect("4 bytes")).collect();
    assert_eq!(numbers.map_to_u32(), [0xffff_ff00, 0x0000_04a8, 0x0000_0a50]);
    assert_eq!(wire.iter().map(|packet| packet[5]).collect::<Vec<_>>(), [0xfe, 0xff, 0x00]);
    assert_eq!(wire.iter().map(|packet| packet[33]).collect::<Vec<_>>(), [0x90, 0x10, 0x19]);
}

trait ToNumbers {
    fn map_to_u32(&self) -> Vec<u32>;
}

impl ToNumbers for Vec<[u8; 4]> {
    fn map_to_u32(&self) -> Vec<u32> {
        self.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect()
    }
}

#[test]
fn a_mark_and_a_flipped_bit_are_in_the_packet() {
    let frame = Frame::parse(tcp(2_000, 1_000)).expect("IP");
    let wire = on_the_wire(&frame.piece(&(0..2), true, None));
    assert!(wire.iter().all(|packet| packet[1] & 3 == 3));
    wire.iter().for_each(|packet| assert_sums(packet));
    let piece = frame.piece(&(1..2), false, Some(60 * 8 + 7));
    let (flipped, whole) = (piece.parts().concat(), on_the_wire(&frame.piece(&(1..2), false, None)));
    let differ: Vec<usize> = (0..whole[0].len()).filter(|at| flipped[VNET_LEN + at] != whole[0][*at]).collect();
    assert_eq!((differ, flipped[..VNET_LEN].to_vec()), (vec![60], vec![0; VNET_LEN]));
}

proptest! {
    #[test]
    fn any_division_gives_the_same_wire_packets(payload in 1usize..60_000, size in 100u16..1_460, cuts in prop::collection::btree_set(1u32..60, 0..6)) {
        let frame = Frame::parse(tcp(payload, size)).expect("IP");
        let count = frame.packet(()).lengths.count();
        let whole = on_the_wire(&frame.piece(&(0..count), false, None));
        let mut ends: Vec<u32> = cuts.into_iter().filter(|cut| *cut < count).collect();
        ends.push(count);
        let mut start = 0;
        let mut pieces = Vec::new();
        for end in ends {
            pieces.extend(on_the_wire(&frame.piece(&(start..end), false, None)));
            start = end;
        }
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), segments in 0u32..4, marked: bool, bit in prop::option::of(any::<u32>())) {
        if let Some(frame) = Frame::parse(bytes) {
            let packet = frame.packet(());
            let end = (segments + 1).min(packet.lengths.count());
            frame.piece(&(end.saturating_sub(1)..end), marked, bit);
        }
    }
}
