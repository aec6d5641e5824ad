//! Packets in parts: in order, reversed, copied, without a first one, and hostile.

use crate::{Decoded, Decoder, LinkType, Other, Packet};
use proptest::prelude::*;
use units::Timestamp;

/// An IPv4 packet's part: `bytes` of its payload at `offset`.
fn part(id: u16, offset: usize, more: bool, bytes: &[u8]) -> Vec<u8> {
    let total = (20 + bytes.len()) as u16;
    let place = (offset / 8) as u16 | if more { 0x2000 } else { 0 };
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend(place.to_be_bytes());
    packet.extend([64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(bytes);
    packet
}

fn part_v6(id: u32, offset: usize, more: bool, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((8 + bytes.len() as u16).to_be_bytes());
    packet.extend([44, 64]);
    packet.extend([1; 16]);
    packet.extend([2; 16]);
    packet.extend([6, 0]);
    packet.extend((offset as u16 | u16::from(more)).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend(bytes);
    packet
}

/// A segment with sequence number 1,000 and `payload` bytes.
fn segment(flags: u8, payload: usize) -> Vec<u8> {
    let mut segment = vec![0x13, 0x88, 0, 80, 0, 0, 0x03, 0xe8, 0, 0, 0, 8, 0x50, flags, 1, 0, 0, 0, 0, 0];
    segment.resize(20 + payload, 0xaa);
    segment
}

fn packet(seconds: u64, bytes: &[u8]) -> Packet<'_> {
    Packet {
        number: 1,
        at: Timestamp::from_nanos(seconds * 1_000_000_000),
        interface: 0,
        link: LinkType::RAW,
        original_len: bytes.len() as u32,
        dropped_before: 0,
        bytes,
    }
}

/// Sequence numbers and payloads of what was decoded; `None` for what is no segment.
fn decode(packets: &[(u64, Vec<u8>)]) -> Vec<Option<(u32, u32)>> {
    let mut decoder = Decoder::default();
    let mut found = Vec::new();
    for (seconds, bytes) in packets {
        decoder.decode(&packet(*seconds, bytes), |decoded| {
            found.push(match decoded {
                Decoded::Tcp(segment) => Some((segment.tcp.seq.get(), segment.payload_len)),
                Decoded::Other(other) => {
                    assert_eq!(other, Other::Fragment);
                    None
                }
            });
        });
    }
    found
}

#[test]
fn in_order_they_are_segments_that_follow_each_other() {
    let whole = segment(0x18, 3_000);
    for make in [|o, m, b: &[u8]| part(7, o, m, b), |o, m, b: &[u8]| part_v6(7, o, m, b)] {
        let parts = [
            (1, make(0, true, &whole[..1_480])),
            (1, make(1_480, true, &whole[1_480..2_960])),
            (1, make(2_960, false, &whole[2_960..])),
        ];
        assert_eq!(decode(&parts), [Some((1_000, 1_460)), Some((2_460, 1_480)), Some((3_940, 60))]);
        let reversed = [parts[2].clone(), parts[1].clone(), parts[0].clone()];
        let told = decode(&reversed);
        assert_eq!(told, [None, None, Some((1_000, 1_460)), Some((3_940, 60)), Some((2_460, 1_480))]);
    }
}

#[test]
fn copies_are_told_once_but_for_the_first() {
    let whole = segment(0x02, 2_000);
    let parts = [
        (1, part(7, 0, true, &whole[..1_480])),
        (1, part(7, 0, true, &whole[..1_480])),
        (1, part(7, 1_480, false, &whole[1_480..])),
        (1, part(7, 1_480, false, &whole[1_480..])),
    ];
    // A SYN takes a sequence number before its data. That the first fragment comes twice, the tap's duplicates tell.
    assert_eq!(decode(&parts), [Some((1_000, 1_460)), Some((1_000, 1_460)), Some((2_461, 540)), None]);
}

#[test]
fn an_identification_is_used_anew_after_its_life_and_others_are_not_joined() {
    let whole = segment(0x18, 2_000);
    let parts = [
        (1, part(7, 0, true, &whole[..1_480])),
        (2, part(8, 1_480, false, &whole[1_480..])),
        (40, part(7, 1_480, false, &whole[1_480..])),
    ];
    assert_eq!(decode(&parts), [Some((1_000, 1_460)), None, None]);
    // A lone fragment is a whole packet (RFC 6946).
    assert_eq!(decode(&[(1, part_v6(7, 0, false, &whole))]), [Some((1_000, 2_000))]);
}

#[test]
fn what_overlaps_the_header_is_refused() {
    let whole = segment(0x18, 2_000);
    let parts = [(1, part(7, 0, true, &whole[..1_480])), (1, part(7, 8, true, &whole[..16]))];
    assert_eq!(decode(&parts), [Some((1_000, 1_460)), None]);
}

#[test]
fn many_unfinished_packets_take_no_memory() {
    let mut decoder = Decoder::default();
    let whole = segment(0x18, 1_460);
    for id in 0..20_000u32 {
        let bytes = part_v6(id, 0, true, &whole);
        decoder.decode(&packet(1, &bytes), |_| {});
        let later = part_v6(id / 64, id as usize % 64 * 8 + 1_480, true, &whole);
        decoder.decode(&packet(1, &later), |_| {});
    }
    assert!(decoder.fragments_known() <= super::MOST_PACKETS);
}

proptest! {
    #[test]
    fn any_parts_in_any_order(parts in proptest::collection::vec(
        (0u16..3, 0usize..300, any::<bool>(), 0usize..80, 0u64..60), 1..100,
    )) {
        let whole = segment(0x13, 200);
        let packets: Vec<_> = parts
            .iter()
            .map(|&(id, offset, more, len, seconds)| (seconds, part(id, offset * 8, more, &whole[..len])))
            .collect();
        let mut decoder = Decoder::default();
        for (seconds, bytes) in &packets {
            decoder.decode(&packet(*seconds, bytes), |_| {});
        }
    }
}
