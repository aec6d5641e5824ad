//! Frames of every known link type, whole and cut.

use super::*;
use crate::segment::Tag;
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
            // What [`tcp`] fills it with.
            let held = segment.payload(frame);
            assert!(held.len() == segment.payload_len.min(5) as usize && held.iter().all(|&byte| byte == 0xaa));
            Some((segment.payload_len, segment.tags.iter().collect()))
        }
        _ => None,
    }
}

const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// An 802.11 data frame with its LLC header: frame control, then what QoS and a fourth address add.
fn wlan(control: [u8; 2], more: &[u8], payload: &[u8]) -> Vec<u8> {
    behind(&behind(&behind(&control, &[0; 22]), more), &behind(&SNAP, payload))
}

/// One frame of each link type.
fn links() -> Vec<(LinkType, Vec<u8>)> {
    let ip = ipv4(6, &tcp(5));
    let sll =
        |ether_type: [u8; 2], ip: &[u8]| behind(&behind(&[0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], &ether_type), ip);
    let plain = wlan([0x08, 0x01], &[], &ip);
    let ppi = |link: u8, inner: &[u8]| behind(&[0, 0, 12, 0, link, 0, 0, 0, 9, 9, 9, 9], inner);
    let radiotap = |flags: u8| [0, 0, 17, 0, 0x03, 0, 0, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, flags];
    let mut prism = vec![0x44, 0, 0, 0, 144, 0, 0, 0];
    prism.resize(144, 0);
    let mut avs = vec![0x80, 0x21, 0x10, 0x01, 0, 0, 0, 64];
    avs.resize(64, 0);
    vec![
        (LinkType::ETHERNET, ethernet(0x0800, &ip)),
        // 802.3 with a length in place of the type.
        (LinkType::ETHERNET, ethernet((SNAP.len() + ip.len()) as u16, &behind(&SNAP, &ip))),
        (LinkType::ETHERNET, ethernet(0x8864, &behind(&[0x11, 0, 0, 1, 0, 47, 0, 0x21], &ip))),
        (LinkType::RAW, ip.clone()),
        (LinkType::RAW_BSD, ip.clone()),
        (LinkType::RAW_OPENBSD, ip.clone()),
        (LinkType::IPV4, ip.clone()),
        (LinkType::IPV6, ipv6(6, &tcp(5), 25)),
        (LinkType::LINUX_SLL, sll([8, 0], &ip)),
        (LinkType::LINUX_SLL, sll([0, 4], &behind(&SNAP, &ip))),
        (LinkType::LINUX_SLL2, behind(&[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], &ip)),
        (LinkType::NULL, behind(&[2, 0, 0, 0], &ip)),
        (LinkType::NULL, behind(&[0, 0, 0, 30], &ipv6(6, &tcp(5), 25))),
        (LinkType::LOOP, behind(&[0, 0, 0, 2], &ip)),
        (LinkType::PPP, behind(&[0xff, 3, 0, 0x21], &ip)),
        (LinkType::PPP, behind(&[0x21], &ip)),
        (LinkType::PPP_HDLC, behind(&[0xff, 3, 0x21], &ip)),
        (LinkType::PPP_PPPD, behind(&[1, 3, 0, 0x21], &ip)),
        (LinkType::PPP_WITH_DIR, behind(&[1, 0xff, 3, 0, 0x21], &ip)),
        (LinkType::PPP_ETHER, behind(&[0x11, 0, 0, 1, 0, 47, 0, 0x21], &ip)),
        (LinkType::C_HDLC, behind(&[0x0f, 0, 8, 0], &ip)),
        (LinkType::ATM_RFC1483, behind(&SNAP, &ip)),
        (LinkType::ATM_RFC1483, behind(&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0], &ethernet(0x0800, &ip))),
        (LinkType::FDDI, behind(&[0x50; 13], &behind(&SNAP, &ip))),
        (LinkType::ENC, behind(&[2, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0], &ip)),
        (LinkType::PFLOG, behind(&behind(&[61, 2], &[0; 62]), &ip)),
        (LinkType::NFLOG, behind(&[2, 0, 0, 0, 5, 0, 10, 0, 0, 0, 0, 0, 49, 0, 9, 0], &ip)),
        (LinkType::IEEE802_11, plain.clone()),
        // Quality of service; with high-throughput control; a fourth address; both.
        (LinkType::IEEE802_11, wlan([0x88, 0x01], &[0, 0], &ip)),
        (LinkType::IEEE802_11, wlan([0x88, 0x81], &[0, 0, 9, 9, 9, 9], &ip)),
        (LinkType::IEEE802_11, wlan([0x08, 0x03], &[7; 6], &ip)),
        (LinkType::IEEE802_11, wlan([0x88, 0x03], &[7, 7, 7, 7, 7, 7, 0, 0], &ip)),
        // In a mesh: the control field, with no addresses more and with two.
        (LinkType::IEEE802_11, wlan([0x88, 0x03], &[7, 7, 7, 7, 7, 7, 0, 1, 0, 31, 0, 0, 0, 1], &ip)),
        (
            LinkType::IEEE802_11,
            wlan([0x88, 0x03], &[&[7, 7, 7, 7, 7, 7, 0, 1, 2, 31, 0, 0, 0, 1][..], &[8; 12]].concat(), &ip),
        ),
        // The same bit without one.
        (LinkType::IEEE802_11, wlan([0x88, 0x03], &[7, 7, 7, 7, 7, 7, 0, 1], &ip)),
        (LinkType::MPLS, behind(&[0, 1, 0, 64, 0, 2, 1, 64], &ip)),
        (LinkType::IEEE802_11_RADIOTAP, behind(&radiotap(0), &plain)),
        // Padded: the header's 26 bytes and two more.
        (LinkType::IEEE802_11_RADIOTAP, behind(&radiotap(0x20), &wlan([0x88, 0x01], &[0, 0, 0, 0], &ip))),
        (LinkType::IEEE802_11_RADIOTAP, behind(&[0, 0, 8, 0, 0, 0, 0, 0], &plain)),
        (LinkType::IEEE802_11_PRISM, behind(&prism, &plain)),
        (LinkType::IEEE802_11_PRISM, behind(&avs, &plain)),
        (LinkType::IEEE802_11_AVS, behind(&avs, &plain)),
        (LinkType::PPI, ppi(105, &plain)),
        (LinkType::PPI, ppi(1, &ethernet(0x0800, &ip))),
    ]
}

#[test]
fn every_link_type_leads_to_tcp() {
    for (link, frame) in links() {
        assert_eq!(payload_of(link, &frame), Some((5, vec![])), "{link}: {frame:02x?}");
        assert!(!link.to_string().starts_with("link type"), "{link} has no name");
    }
}

/// Tunnels and virtual networks over Ethernet or IP, and what the decoder reports of them.
fn tunnels() -> Vec<(LinkType, Vec<u8>, Vec<Tag>)> {
    let ip = ipv4(6, &tcp(5));
    let inner = ethernet(0x0800, &ip);
    let (eth, raw) = (LinkType::ETHERNET, LinkType::RAW);
    let gre = |header: &[u8], inner: &[u8]| ipv4(47, &behind(header, inner));
    let udp = |port: u16, header: &[u8], inner: &[u8]| {
        let mut datagram = vec![0, 1];
        datagram.extend(port.to_be_bytes());
        datagram.extend([0; 4]);
        ipv4(17, &behind(&behind(&datagram, header), inner))
    };
    vec![
        (eth, ethernet(0x8100, &behind(&[0x60, 7, 8, 0], &ip)), vec![Tag::Vlan(7)]),
        (eth, ethernet(0x8100, &behind(&[0x60, 0, 8, 0], &ip)), vec![]),
        (eth, ethernet(0x88a8, &behind(&[0, 1, 0x81, 0, 0, 2, 8, 0], &ip)), vec![Tag::Vlan(1), Tag::Vlan(2)]),
        (eth, ethernet(0x8847, &behind(&[0, 1, 0, 64, 0, 2, 1, 64], &ip)), vec![]),
        // A pseudowire: a control word, then Ethernet.
        (eth, ethernet(0x8847, &behind(&[0, 2, 1, 64, 0, 0, 0, 0], &inner)), vec![]),
        // Without the control word, to addresses that begin with another nibble or the same.
        (eth, ethernet(0x8847, &behind(&[0, 2, 1, 64], &inner)), vec![]),
        (eth, ethernet(0x8847, &behind(&[0, 2, 1, 64, 0x98], &inner[1..])), vec![]),
        (raw, ipv4(137, &behind(&[0, 2, 1, 64], &ip)), vec![Tag::MplsInIp]),
        (raw, udp(6635, &[0, 2, 1, 64], &ip), vec![Tag::MplsInIp]),
        (raw, udp(2152, &[0x30, 255, 0, 45, 0, 0, 0, 1], &ip), vec![Tag::Gtp]),
        // A sequence number; a PDU session container before the user's packet.
        (raw, udp(2152, &[0x32, 255, 0, 49, 0, 0, 0, 1, 0, 9, 0, 0], &ip), vec![Tag::Gtp]),
        (raw, udp(2152, &[0x34, 255, 0, 53, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0], &ip), vec![Tag::Gtp]),
        (eth, ethernet(0x894f, &behind(&[0x0f, 0xc2, 1, 3, 0, 0, 0, 0], &inner)), vec![]),
        (raw, gre(&[0, 0, 8, 0], &ip), vec![Tag::Gre(0)]),
        (raw, gre(&[0x20, 0, 8, 0, 0, 0, 0, 9], &ip), vec![Tag::Gre(9)]),
        (raw, gre(&[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], &ip), vec![Tag::Gre(9)]),
        (raw, gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9], &inner), vec![Tag::Gre(9)]),
        // PPTP: version 1 with a key and a sequence number.
        (
            raw,
            gre(&[0x30, 1, 0x88, 0x0b, 0, 44, 0, 5, 0, 0, 0, 1], &behind(&[0xff, 3, 0, 0x21], &ip)),
            vec![Tag::Gre(0)],
        ),
        (raw, gre(&[0, 0, 0x88, 0xbe], &inner), vec![Tag::Erspan(0)]),
        (raw, gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0x01, 0x2c, 0, 0, 0, 0], &inner), vec![Tag::Erspan(300)]),
        (
            raw,
            gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0], &inner),
            vec![Tag::Erspan(5)],
        ),
        (
            raw,
            gre(
                &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 7, 7, 7, 7, 7, 7, 7, 7],
                &inner,
            ),
            vec![Tag::Erspan(5)],
        ),
        // The mirrored frame began with IP.
        (
            raw,
            gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 0, 5, 0, 0, 0, 0, 0, 0, 8, 0], &ip),
            vec![Tag::Erspan(5)],
        ),
        // Source routes: none, and one of four bytes behind a key.
        (raw, gre(&[0x40, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0], &ip), vec![Tag::Gre(0)]),
        (
            raw,
            gre(&[0x60, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 9, 8, 0, 0, 4, 10, 0, 0, 1, 0, 0, 0, 0], &ip),
            vec![Tag::Gre(9)],
        ),
        (raw, ipv4(41, &ipv6(6, &tcp(5), 25)), vec![Tag::IpInIp]),
        (raw, ipv4(4, &ip), vec![Tag::IpInIp]),
        (raw, ipv6(4, &ip, ip.len() as u16), vec![Tag::IpInIp]),
        (raw, ipv6(41, &ipv6(6, &tcp(5), 25), 65), vec![Tag::IpInIp]),
        (raw, udp(4789, &[8, 0, 0, 0, 0, 0, 5, 0], &inner), vec![Tag::Vxlan(5)]),
        (raw, udp(8472, &[8, 0, 0, 0, 0, 0, 5, 0], &inner), vec![Tag::Vxlan(5)]),
        (raw, udp(4790, &[0x0c, 0, 0, 1, 0, 0, 5, 0], &ip), vec![Tag::Vxlan(5)]),
        (raw, udp(4790, &[0x0c, 0, 0, 3, 0, 0, 5, 0], &inner), vec![Tag::Vxlan(5)]),
        (raw, udp(4790, &[0x0c, 0, 0, 4, 0, 0, 5, 0, 0, 2, 1, 1, 0, 0, 0, 0], &ip), vec![Tag::Vxlan(5)]),
        (raw, udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 6, 0], &inner), vec![Tag::Geneve(6)]),
        (raw, udp(6081, &[2, 0, 8, 0, 0, 0, 6, 0, 1, 1, 1, 1, 1, 1, 1, 1], &ip), vec![Tag::Geneve(6)]),
    ]
}

#[test]
fn virtual_networks_are_told() {
    for (link, frame, tags) in tunnels() {
        assert_eq!(payload_of(link, &frame), Some((5, tags)), "{frame:02x?}");
    }
}

#[test]
fn headers_between_ip_and_tcp_are_stepped_over() {
    // IPv4 options: the header is 24 bytes.
    let mut options = ipv4(6, &behind(&[0x94, 4, 0, 0], &tcp(5)));
    options[0] = 0x46;
    assert_eq!(payload_of(LinkType::RAW, &options), Some((5, vec![])));
    let authentication = [6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    assert_eq!(payload_of(LinkType::RAW, &ipv4(51, &behind(&authentication, &tcp(5)))), Some((5, vec![])));
    // Hop-by-hop with a router alert, destination options of 16 bytes, routing, authentication.
    let chain = [
        &[60, 0, 5, 2, 0, 0, 1, 0][..],
        &[43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[51, 0, 0, 0, 0, 0, 0, 0],
        &[6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        &tcp(5),
    ]
    .concat();
    assert_eq!(payload_of(LinkType::RAW, &ipv6(0, &chain, chain.len() as u16)), Some((5, vec![])));
}

/// At any cut behind the headers the payload on the wire is the same; before, nothing is made up.
#[test]
fn cut_at_every_byte() {
    let links = links().into_iter().map(|(link, frame)| (link, frame, vec![]));
    for (link, frame, tags) in links.chain(tunnels()) {
        for at in 0..frame.len() {
            if let Decoded::Tcp(segment) = decode(link, &frame[..at], frame.len() as u32) {
                assert!(at >= frame.len() - 5, "{link} cut at {at} of {}", frame.len());
                assert_eq!((segment.payload_len, segment.tags.iter().collect()), (5, tags.clone()), "{link} at {at}");
            }
        }
        assert!(matches!(decode(link, &frame[..frame.len() - 5], frame.len() as u32), Decoded::Tcp(_)), "{link}");
    }
}

#[test]
fn the_frames_of_an_aggregate_are_all_told() {
    let subframe = |payload: usize| {
        let inner = behind(&SNAP, &ipv4(6, &tcp(payload)));
        let mut frame = vec![0; 12];
        frame.extend((inner.len() as u16).to_be_bytes());
        frame.extend(inner);
        frame.resize(frame.len().next_multiple_of(4), 0);
        frame
    };
    let frame = [&[0x88, 0x01][..], &[0; 22], &[0x80, 0], &subframe(3), &subframe(10)].concat();
    let mut found = Vec::new();
    for cut in 0..=frame.len() {
        found.clear();
        let packet = crate::Packet {
            number: 1,
            at: thalweg_units::Timestamp::default(),
            interface: 0,
            link: LinkType::IEEE802_11,
            original_len: frame.len() as u32,
            dropped_before: 0,
            bytes: &frame[..cut],
        };
        Decoder::default().decode(&packet, |decoded| {
            found.push(match decoded {
                Decoded::Tcp(segment) => segment.payload_len,
                _ => 0,
            });
        });
    }
    assert_eq!(found, [3, 10]);
    assert_eq!(payload_of(LinkType::IEEE802_11, &frame), Some((3, vec![])));
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
        other => panic!("{other:?}"),
    }
}

#[test]
fn datagrams_are_told_with_their_payload() {
    let datagram = [&[0x14, 0xe9, 0, 53, 0, 12, 0, 0][..], &[7; 4]].concat();
    let v6 = behind(&[17, 0, 5, 2, 0, 0, 1, 0], &datagram);
    let frames = [
        (LinkType::RAW, ipv4(17, &datagram)),
        (LinkType::ETHERNET, ethernet(0x8100, &behind(&[0, 9, 8, 0], &ipv4(17, &datagram)))),
        (LinkType::RAW, ipv6(0, &v6, v6.len() as u16)),
        (LinkType::RAW, ipv4(4, &ipv4(17, &datagram))),
    ];
    for (link, frame) in frames {
        let Decoded::Udp(found) = decode(link, &frame, frame.len() as u32) else { panic!("{frame:02x?}") };
        assert_eq!((found.source_port, found.destination_port, found.payload_len), (5_353, 53, 4));
        assert_eq!(found.payload(&frame), [7; 4]);
        assert_eq!(found.payload(&frame[..frame.len() - 3]), [7]);
        let cut = &frame[..frame.len() - 9];
        assert!(!matches!(decode(link, cut, frame.len() as u32), Decoded::Udp(_)), "its header is cut");
    }
}

#[test]
fn options_that_are_cut_are_known_to_be() {
    let mut segment = tcp(0);
    segment[12] = 0x70;
    segment.extend([2, 4, 5, 0xb4, 1, 3, 3, 7]);
    let whole = ethernet(0x0800, &ipv4(6, &segment));
    let vlan = ethernet(0x8100, &behind(&[0, 7, 8, 0], &ipv4(6, &segment)));
    for (frame, headers) in [(whole, 54), (vlan, 58)] {
        for cut in headers..=frame.len() {
            let Decoded::Tcp(found) = decode(LinkType::ETHERNET, &frame[..cut], frame.len() as u32) else { panic!() };
            assert_eq!(found.tcp.options.cut, cut < frame.len());
            assert_eq!(found.tcp.options.mss.is_some(), cut >= headers + 4);
        }
    }
}

#[test]
fn what_is_no_tcp_segment_is_told_apart() {
    let other = |link, bytes: &[u8]| match decode(link, bytes, bytes.len() as u32) {
        Decoded::Other(other) => other,
        other => panic!("{other:?}"),
    };
    let ip = ipv4(6, &tcp(5));
    assert_eq!(other(LinkType::IEEE802_11, &wlan([0x08, 0x41], &[], &ip)), Other::Encrypted);
    assert_eq!(other(LinkType::IEEE802_11, &wlan([0x80, 0x00], &[], &ip)), Other::NotIp, "a beacon");
    assert_eq!(other(LinkType::IEEE802_11, &wlan([0x48, 0x01], &[], &[])), Other::NotIp, "no data");
    let damaged = behind(&[0, 0, 9, 0, 2, 0, 0, 0, 0x40], &wlan([0x08, 0x01], &[], &ip));
    assert_eq!(other(LinkType::IEEE802_11_RADIOTAP, &damaged), Other::Malformed, "the radio saw a bad checksum");
    assert_eq!(other(LinkType::ETHERNET, &ethernet(38, &[0x42, 0x42, 3, 0, 0])), Other::NotIp, "spanning tree");
    let ppi_in_ppi = behind(&[0, 0, 8, 0, 192, 0, 0, 0], &[0, 0, 8, 0, 1, 0, 0, 0]);
    assert_eq!(other(LinkType::PPI, &ppi_in_ppi), Other::Malformed);
    assert_eq!(other(LinkType::NFLOG, &[2, 0, 0, 0, 0, 0, 9, 0, 1]), Other::Malformed, "an attribute of no length");
    let nsh_of_nothing = ethernet(0x894f, &[0x0f, 0xc0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(other(LinkType::ETHERNET, &nsh_of_nothing), Other::Malformed);
    let forever = behind(&[0; 12], &[0x81, 0, 0, 1].repeat(40));
    assert_eq!(other(LinkType::ETHERNET, &forever), Other::Malformed, "VLANs without end");
    assert_eq!(other(LinkType(147), &[0; 60]), Other::UnknownLink(LinkType(147)));
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
    fn never_panics_on_damaged_frames(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        length in any::<u32>(),
    ) {
        let links = links().into_iter().map(|(link, frame)| (link, frame, vec![]));
        let samples: Vec<_> = links.chain(tunnels()).collect();
        let (link, frame, _) = which.get(&samples);
        let mut frame = frame.clone();
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        let cut = cut.index(frame.len() + 1);
        let _ = decode(*link, &frame[..cut], length);
        let packet = crate::Packet {
            number: 1,
            at: thalweg_units::Timestamp::default(),
            interface: 0,
            link: *link,
            original_len: length,
            dropped_before: 0,
            bytes: &frame[..cut],
        };
        Decoder::default().decode(&packet, |_| {});
    }
}
