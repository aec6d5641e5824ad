//! Frames of every known link type, whole and cut.

use super::*;
use proptest::prelude::*;

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0, total.to_be_bytes()[0], total.to_be_bytes()[1], 0, 7, 0, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

fn ipv6(next: u8, payload: &[u8], length: u16) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([1; 16]);
    packet.extend([2; 16]);
    packet.extend(payload);
    packet
}

fn tcp(payload: usize) -> Vec<u8> {
    let mut segment = vec![0x13, 0x88, 0, 80, 0, 0, 0, 9, 0, 0, 0, 8, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
    segment.resize(20 + payload, 0xaa);
    segment
}

fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend(ether_type.to_be_bytes());
    frame.extend(payload);
    frame
}

fn behind(header: &[u8], payload: &[u8]) -> Vec<u8> {
    [header, payload].concat()
}

fn payload_of(link: LinkType, frame: &[u8]) -> Option<(u32, Vec<Tag>)> {
    match decode(link, frame, frame.len() as u32) {
        Decoded::Tcp(segment) => {
            assert_eq!((segment.tcp.source_port, segment.tcp.destination_port), (5000, 80));
            Some((segment.payload_len, segment.tags.iter().collect()))
        }
        Decoded::Other(_) => None,
    }
}

#[test]
fn every_link_type_leads_to_tcp() {
    let ip = ipv4(6, &tcp(5));
    let sll = behind(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], &ip);
    let sll2 = behind(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], &ip);
    for (link, frame) in [
        (LinkType::ETHERNET, ethernet(0x0800, &ip)),
        (LinkType::RAW, ip.clone()),
        (LinkType::RAW_BSD, ip.clone()),
        (LinkType::IPV4, ip.clone()),
        (LinkType::IPV6, ipv6(6, &tcp(5), 25)),
        (LinkType::LINUX_SLL, sll),
        (LinkType::LINUX_SLL2, sll2),
        (LinkType::NULL, behind(&[2, 0, 0, 0], &ip)),
        (LinkType::LOOP, behind(&[0, 0, 0, 2], &ip)),
        (LinkType::PPP, behind(&[0xff, 3, 0, 0x21], &ip)),
        (LinkType::PPP, behind(&[0x21], &ip)),
    ] {
        assert_eq!(payload_of(link, &frame), Some((5, vec![])), "{link}");
    }
}

#[test]
fn virtual_networks_are_told() {
    let ip = ipv4(6, &tcp(5));
    let one_vlan = ethernet(0x8100, &behind(&[0x60, 7, 8, 0], &ip));
    assert_eq!(payload_of(LinkType::ETHERNET, &one_vlan), Some((5, vec![Tag::Vlan(7)])));
    let priority = ethernet(0x8100, &behind(&[0x60, 0, 8, 0], &ip));
    assert_eq!(payload_of(LinkType::ETHERNET, &priority), Some((5, vec![])));
    let two_vlans = ethernet(0x88a8, &behind(&[0, 1, 0x81, 0, 0, 2, 8, 0], &ip));
    assert_eq!(payload_of(LinkType::ETHERNET, &two_vlans), Some((5, vec![Tag::Vlan(1), Tag::Vlan(2)])));
    let mpls = ethernet(0x8847, &behind(&[0, 1, 0, 64, 0, 2, 1, 64], &ip));
    assert_eq!(payload_of(LinkType::ETHERNET, &mpls), Some((5, vec![])));
    let gre = ipv4(47, &behind(&[0x20, 0, 8, 0, 0, 0, 0, 9], &ip));
    assert_eq!(payload_of(LinkType::RAW, &gre), Some((5, vec![Tag::Gre(9)])));
    let in_v4 = ipv4(41, &ipv6(6, &tcp(5), 25));
    assert_eq!(payload_of(LinkType::RAW, &in_v4), Some((5, vec![Tag::IpInIp])));
    let udp = behind(&[0, 1, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 5, 0], &ethernet(0x0800, &ip));
    assert_eq!(payload_of(LinkType::RAW, &ipv4(17, &udp)), Some((5, vec![Tag::Vxlan(5)])));
}

#[test]
fn lengths_that_do_not_fit_their_fields() {
    // Segmentation offload: no total length, so the frame's own counts.
    let mut packet = ipv4(6, &tcp(5));
    packet[2..4].copy_from_slice(&[0, 0]);
    assert_eq!(payload_of(LinkType::RAW, &packet), Some((5, vec![])));
    // BIG TCP: a hop-by-hop header with the jumbo length.
    let jumbo = behind(&[6, 0, 0xc2, 4, 0, 1, 0x38, 0x80], &tcp(5));
    assert_eq!(payload_of(LinkType::RAW, &ipv6(0, &jumbo, 0)), Some((80_000 - 28, vec![])));
    // Ethernet's padding is no payload.
    let mut padded = ethernet(0x0800, &ipv4(6, &tcp(0)));
    padded.resize(60, 0);
    assert_eq!(payload_of(LinkType::ETHERNET, &padded), Some((0, vec![])));
    // A snapshot cut behind the headers keeps the length on the wire.
    let whole = ipv4(6, &tcp(1000));
    match decode(LinkType::RAW, &whole[..40], 1040) {
        Decoded::Tcp(segment) => assert_eq!(segment.payload_len, 1000),
        Decoded::Other(other) => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_tcp_segment_is_told_apart() {
    let other = |link, bytes: &[u8]| match decode(link, bytes, bytes.len() as u32) {
        Decoded::Other(other) => other,
        Decoded::Tcp(_) => panic!("tcp"),
    };
    assert_eq!(other(LinkType(147), &[0; 60]), Other::UnknownLink);
    assert_eq!(other(LinkType::ETHERNET, &ethernet(0x0806, &[0; 28])), Other::NotIp);
    assert_eq!(other(LinkType::RAW, &ipv4(1, &[0; 8])), Other::NotTcp);
    assert_eq!(other(LinkType::RAW, &ipv4(6, &[0; 8])), Other::Malformed);
    let mut fragment = ipv4(6, &tcp(5));
    fragment[7] = 1;
    assert_eq!(other(LinkType::RAW, &fragment), Other::Fragment);
}

proptest! {
    #[test]
    fn never_panics(link in 0u16..300, bytes in proptest::collection::vec(any::<u8>(), 0..200), length in any::<u32>()) {
        let _ = decode(LinkType(link), &bytes, length);
    }

    #[test]
    fn never_panics_on_damaged_frames(at in 0usize..120, byte in any::<u8>(), cut in 0usize..200) {
        let ip = ipv4(47, &behind(&[0x20, 0, 8, 0, 0, 0, 0, 9], &ipv4(6, &tcp(30))));
        let mut frame = ethernet(0x8100, &behind(&[0x60, 7, 8, 0], &ip));
        if let Some(slot) = frame.get_mut(at) {
            *slot = byte;
        }
        let _ = decode(LinkType::ETHERNET, &frame[..cut.min(frame.len())], frame.len() as u32);
    }
}
