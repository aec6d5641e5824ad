//! Packets in parts: in order, reversed, copied, without a first one, and hostile.

use crate::{Decoded, Decoder, LinkType, Other, Packet};
use proptest::prelude::*;
use thalweg_units::Timestamp;

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

/// What was reported, and at which packet; the end of the capture counts as one more.
#[derive(Debug, PartialEq, Eq)]
enum Reported {
    /// Sequence number and payload.
    Tcp(usize, u32, u32),
    /// The same of what was not waited for any longer, and the second its latest fragment is of.
    Late(usize, u32, u32, u64),
    Other(usize, Other),
}
use Reported::{Late, Tcp};

fn reported(index: usize, decoded: Decoded) -> Reported {
    match decoded {
        Decoded::Tcp(segment) => Tcp(index, segment.tcp.seq.get(), segment.payload_len),
        Decoded::Late(late) => {
            Late(index, late.segment.tcp.seq.get(), late.segment.payload_len, late.at.as_nanos() / 1_000_000_000)
        }
        Decoded::Other(other) => Reported::Other(index, other),
        Decoded::Udp(datagram) => panic!("no fragment is reported as a datagram: {datagram:?}"),
        Decoded::TooBig(error) => panic!("no fragment holds an error: {error:?}"),
    }
}

fn decode(packets: &[(u64, Vec<u8>)]) -> Vec<Reported> {
    decode_cut(packets, usize::MAX)
}

/// With this snapshot length.
fn decode_cut(packets: &[(u64, Vec<u8>)], snaplen: usize) -> Vec<Reported> {
    let mut decoder = Decoder::default();
    let mut found = Vec::new();
    for (index, (seconds, bytes)) in packets.iter().enumerate() {
        let whole = packet(*seconds, bytes);
        let packet = Packet { bytes: &bytes[..bytes.len().min(snaplen)], ..whole };
        decoder.decode(&packet, |decoded| found.push(reported(index, decoded)));
    }
    decoder.finish(|decoded| found.push(reported(packets.len(), decoded)));
    found
}

/// `whole` in parts of `size` bytes.
fn parts(id: u16, whole: &[u8], size: usize) -> Vec<(u64, Vec<u8>)> {
    let count = whole.len().div_ceil(size);
    whole.chunks(size).enumerate().map(|(n, bytes)| (1, part(id, n * size, n + 1 < count, bytes))).collect()
}

fn parts_v6(id: u32, whole: &[u8], size: usize) -> Vec<(u64, Vec<u8>)> {
    let count = whole.len().div_ceil(size);
    whole.chunks(size).enumerate().map(|(n, bytes)| (1, part_v6(id, n * size, n + 1 < count, bytes))).collect()
}

#[test]
fn a_packet_in_parts_is_one_segment_when_it_is_whole_in_whatever_order() {
    let whole = segment(0x18, 3_000);
    for mut parts in [parts(7, &whole, 1_480), parts_v6(7, &whole, 1_480)] {
        assert_eq!(decode(&parts), [Tcp(2, 1_000, 3_000)]);
        // Of the first part the headers alone are captured, of the others no byte of TCP.
        assert_eq!(decode_cut(&parts, 70), [Tcp(2, 1_000, 3_000)]);
        parts.reverse();
        assert_eq!(decode(&parts), [Tcp(2, 1_000, 3_000)]);
        parts.swap(0, 1);
        assert_eq!(decode(&parts), [Tcp(2, 1_000, 3_000)]);
    }
}

#[test]
fn a_header_over_two_parts_is_read() {
    let whole = segment(0x18, 3_000);
    for mut parts in [parts(7, &whole, 8), parts_v6(7, &whole, 8)] {
        assert_eq!(decode(&parts), [Tcp(377, 1_000, 3_000)]);
        parts.reverse();
        assert_eq!(decode(&parts), [Tcp(377, 1_000, 3_000)]);
    }
}

#[test]
fn a_tunnel_whose_packets_are_in_parts_is_followed() {
    let inner = part(0, 0, false, &segment(0x18, 1_400));
    let gre = [&[0, 0, 8, 0][..], &inner].concat();
    let mut parts = parts(7, &gre, 1_000);
    parts.iter_mut().for_each(|(_, bytes)| bytes[9] = 47);
    assert_eq!(decode(&parts), [Tcp(1, 1_000, 1_400)]);
    // Behind IPv6's fragment header come destination options of eight bytes.
    let options = [&[6, 0, 1, 4, 0, 0, 0, 0][..], &segment(0x18, 1_400)].concat();
    let mut parts = parts_v6(7, &options, 1_000);
    parts.iter_mut().for_each(|(_, bytes)| bytes[40] = 60);
    assert_eq!(decode(&parts), [Tcp(1, 1_000, 1_400)]);
}

#[test]
fn what_a_tap_delivers_twice_is_told_twice_or_not_at_all() {
    let once = parts(7, &segment(0x18, 2_000), 1_480);
    let again = [once.clone(), once.clone()].concat();
    assert_eq!(decode(&again), [Tcp(1, 1_000, 2_000), Tcp(3, 1_000, 2_000)]);
    let each_twice: Vec<_> = once.iter().flat_map(|part| [part.clone(), part.clone()]).collect();
    assert_eq!(decode(&each_twice), [Tcp(2, 1_000, 2_000)]);
}

#[test]
fn what_is_known_of_a_packet_that_is_never_whole_counts_once() {
    let whole = segment(0x18, 2_000);
    let parts = parts(7, &whole, 1_480);
    let other = |seconds, id| (seconds, part(id, 0, true, &whole[..1_480]));
    // To the end of the capture.
    assert_eq!(decode(&parts[..1]), [Late(1, 1_000, 1_460, 1)]);
    // Nothing of it for a second; another's part, and a packet that is no part.
    assert_eq!(decode(&[parts[0].clone(), other(2, 8)])[0], Late(1, 1_000, 1_460, 1));
    let plain = (2, part(9, 0, false, &segment(0x18, 10)));
    assert_eq!(decode(&[parts[0].clone(), plain]), [Late(1, 1_000, 1_460, 1), Tcp(1, 1_000, 10)]);
    // The rest comes after that, and another, much later, with its number.
    let late = [parts[0].clone(), other(2, 8), (3, parts[1].1.clone()), (40, parts[1].1.clone())];
    assert_eq!(
        decode(&late),
        [Late(1, 1_000, 1_460, 1), Late(2, 1_000, 1_460, 2), Tcp(2, 2_460, 540), Reported::Other(4, Other::Fragment)]
    );
    // A SYN takes a sequence number before its data.
    let syn = [(1, part(7, 0, true, &segment(0x02, 1_460))), other(2, 8), (2, parts[1].1.clone())];
    assert_eq!(decode(&syn)[..2], [Late(1, 1_000, 1_460, 1), Tcp(2, 2_461, 540)]);
    // Without its first part it is nothing; nor with a number that is another's.
    let no_first = [parts[1].clone(), (1, part(8, 2_960, false, &whole[..8]))];
    assert_eq!(decode(&no_first), [Reported::Other(2, Other::Fragment), Reported::Other(2, Other::Fragment)]);
    // A lone part is a whole packet (RFC 6946).
    assert_eq!(decode(&parts_v6(7, &whole, 2_020)), [Tcp(0, 1_000, 2_000)]);
}

#[test]
fn a_packet_that_three_overtook_is_not_waited_for() {
    let whole = segment(0x18, 2_000);
    let mut packets = vec![parts(7, &whole, 1_480)[0].clone()];
    (8..12).for_each(|id| packets.extend(parts(id, &whole, 1_480)));
    assert_eq!(
        decode(&packets),
        [
            Tcp(2, 1_000, 2_000),
            Tcp(4, 1_000, 2_000),
            Tcp(6, 1_000, 2_000),
            Late(6, 1_000, 1_460, 1),
            Tcp(8, 1_000, 2_000)
        ]
    );
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    let whole = segment(0x18, 2_000);
    let first = (1, part(7, 0, true, &whole[..1_480]));
    let refused = |n| Reported::Other(n, Other::Malformed);
    // Over an edge; a second end; behind the end.
    for second in
        [part(7, 1_472, false, &whole[1_472..]), part(7, 8, false, &whole[8..16]), part(7, 0, true, &whole[..1_488])]
    {
        let packets = [first.clone(), (1, second), (1, part(7, 1_480, false, &whole[1_480..]))];
        assert_eq!(decode(&packets), [refused(1), refused(1), refused(2)]);
    }
    let behind = [(1, part(7, 1_480, false, &whole[1_480..])), (1, part(7, 2_960, true, &whole[..8]))];
    assert_eq!(decode(&behind), [refused(1), refused(1)]);
    // What lies within the known is a copy, whose bytes are not looked at.
    let within = [first, (1, part(7, 8, true, &[0xff; 16])), (1, part(7, 1_480, false, &whole[1_480..]))];
    assert_eq!(decode(&within), [Tcp(2, 1_000, 2_000)]);
}

#[test]
fn parts_of_what_is_no_tcp_are_told_each() {
    let mut parts = parts(7, &[0; 3_000], 1_480);
    parts.iter_mut().for_each(|(_, bytes)| bytes[9] = 17);
    let other = || Reported::Other(2, Other::NotTcp);
    assert_eq!(decode(&parts), [other(), other(), other()]);
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
    assert!(decoder.fragments_known() <= super::MOST_DATAGRAMS);
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
        decoder.finish(|_| {});
        prop_assert_eq!(decoder.fragments_known(), 0);
    }

    /// However the fragments of several packets interleave, only the packets are reported.
    #[test]
    fn mixed_parts_are_the_packets(
        sizes in proptest::collection::vec((20usize..2_000, 1usize..40), 1..6),
        swaps in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..40),
        v6 in any::<bool>(),
    ) {
        let mut packets = Vec::new();
        for (id, &(payload, eights)) in sizes.iter().enumerate() {
            let whole = segment(0x18, payload);
            let size = (8 * eights).max(whole.len().div_ceil(40).next_multiple_of(8));
            packets.extend(if v6 { parts_v6(id as u32, &whole, size) } else { parts(id as u16, &whole, size) });
        }
        let count = packets.len();
        for (one, other) in swaps {
            packets.swap(one.index(count), other.index(count));
        }
        let mut lens = Vec::new();
        let mut reported = 0;
        for found in decode(&packets) {
            match found {
                Tcp(_, 1_000, len) => lens.push(len),
                Tcp(_, seq, len) => { prop_assert!(seq > 1_000); reported += len; }
                Late(_, _, len, _) => reported += len,
                // Without its first part, or with less of it than the header.
                Reported::Other(_, other) => prop_assert!(matches!(other, Other::Fragment | Other::Malformed)),
            }
        }
        // One that three overtook is reported in two parts.
        let all: usize = sizes.iter().map(|size| size.0).sum();
        prop_assert_eq!(lens.iter().sum::<u32>() + reported, all as u32);
    }
}
