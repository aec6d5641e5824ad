//! A segment's headers, written again between other addresses: what an analysis needs of a packet, and nothing else of it.

use crate::ip::IpFacts;
use crate::segment::Segment;
use crate::tcp::{Options, TcpHeader};
use std::net::IpAddr;

/// Most bytes of TCP options (RFC 9293 §3.1).
const MOST_OPTIONS: usize = 40;
const TCP: u8 = 6;

impl Segment {
    /// Its IP and TCP headers as sent from `source` to `destination`, and the packet's length on the wire with the payload, which is not
    /// written. Nor are extension headers, unknown options, and what a Fast Open cookie says. Both addresses are of one family.
    #[must_use]
    pub fn headers(&self, source: IpAddr, destination: IpAddr) -> (Vec<u8>, u32) {
        let tcp = tcp_header(&self.tcp);
        let carried = tcp.len() as u32 + self.payload_len;
        let mut bytes = ip_header(&self.ip, source, destination, carried);
        let length = bytes.len() as u32 + carried;
        bytes.extend_from_slice(&tcp);
        (bytes, length)
    }
}

/// Packets over 65,535 bytes have length 0 (Linux BIG TCP).
fn ip_header(ip: &IpFacts, source: IpAddr, destination: IpAddr, carried: u32) -> Vec<u8> {
    let length = |bytes: u32| u16::try_from(bytes).unwrap_or(0).to_be_bytes();
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut bytes = vec![0x45, ip.ecn];
            bytes.extend(length(20 + carried));
            bytes.extend(ip.id.unwrap_or(0).to_be_bytes());
            bytes.extend([0, 0, ip.ttl, TCP, 0, 0]);
            bytes.extend(source.octets());
            bytes.extend(destination.octets());
            bytes
        }
        (source, destination) => {
            let octets = |address: IpAddr| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            };
            let mut bytes = vec![0x60, ip.ecn << 4, 0, 0];
            bytes.extend(length(carried));
            bytes.extend([TCP, ip.ttl]);
            bytes.extend(octets(source));
            bytes.extend(octets(destination));
            bytes
        }
    }
}

fn tcp_header(tcp: &TcpHeader) -> Vec<u8> {
    let options = options(&tcp.options);
    let length = TcpHeader::MIN_LEN + options.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(tcp.source_port.to_be_bytes());
    bytes.extend(tcp.destination_port.to_be_bytes());
    bytes.extend(tcp.seq.get().to_be_bytes());
    bytes.extend(tcp.ack.get().to_be_bytes());
    bytes.extend([(length as u8 / 4) << 4, tcp.flags.0]);
    bytes.extend(tcp.window.to_be_bytes());
    bytes.extend(tcp.checksum.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(options);
    bytes
}

fn options(options: &Options) -> Vec<u8> {
    let mut all = Vec::new();
    let mut option = |kind: u8, value: &[u8]| {
        if all.len() + 2 + value.len() <= MOST_OPTIONS {
            all.extend([kind, value.len() as u8 + 2]);
            all.extend_from_slice(value);
        }
    };
    if let Some(mss) = options.mss {
        option(2, &mss.to_be_bytes());
    }
    if let Some(scale) = options.window_scale {
        option(3, &[scale]);
    }
    if options.sack_permitted {
        option(4, &[]);
    }
    if let Some((value, echo)) = options.timestamps {
        option(8, &[value.to_be_bytes(), echo.to_be_bytes()].concat());
    }
    let blocks = options.sack.as_slice();
    if !blocks.is_empty() {
        let edges = blocks.iter().flat_map(|(left, right)| [left.get(), right.get()]);
        option(5, &edges.flat_map(u32::to_be_bytes).collect::<Vec<_>>());
    }
    if let Some(cookie) = options.fast_open {
        option(34, &vec![0; usize::from(cookie)]);
    }
    if let Some(subtype) = options.multipath {
        option(30, &[subtype << 4, 0]);
    }
    // Up to whole words: the end of the list, and what is behind it.
    all.resize(all.len().next_multiple_of(4), 0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Flags, SackBlocks};
    use crate::{Decoded, LinkType, Tags, decode};
    use proptest::prelude::*;
    use thalweg_units::SeqNum;

    proptest! {
        /// What is written is read again as it was, between the other addresses.
        #[test]
        fn headers_are_read_as_they_were(
            (v6, flags, numbers, payload) in (any::<bool>(), any::<u8>(), any::<[u32; 4]>(), prop_oneof![0u32..3_000, 60_000u32..200_000]),
            (mss, scale, permitted) in (any::<Option<u16>>(), proptest::option::of(0u8..15), any::<bool>()),
            (timestamps, blocks) in (any::<Option<(u32, u32)>>(), 0usize..4),
        ) {
            let [source, destination]: [IpAddr; 2] = match v6 {
                true => ["2001:db8::1".parse().expect("v6"), "2001:db8::2".parse().expect("v6")],
                false => ["192.0.2.1".parse().expect("v4"), "192.0.2.2".parse().expect("v4")],
            };
            let [seq, ack, left, right] = numbers.map(SeqNum::new);
            let options = match blocks {
                0 => Options { mss, window_scale: scale, sack_permitted: permitted, timestamps, ..Options::default() },
                _ => Options { timestamps, sack: SackBlocks::new(&[(left, right); 3][..blocks]), ..Options::default() },
            };
            let segment = Segment {
                ip: IpFacts { source, destination, ttl: 57, ecn: 2, id: (!v6).then_some(7) },
                tcp: TcpHeader {
                    source_port: 40_000, destination_port: 443, seq, ack, flags: Flags(flags), window: 501, checksum: 9,
                    header_len: 20, options,
                },
                tags: Tags::default(),
                payload_len: payload,
            };
            let (bytes, length) = segment.headers(source, destination);
            let Decoded::Tcp(mut read) = decode(LinkType::RAW, &bytes, length) else { panic!("{bytes:?}") };
            prop_assert_eq!(usize::from(read.tcp.header_len) + if v6 { 40 } else { 20 }, bytes.len());
            read.tcp.header_len = 20;
            prop_assert_eq!(read, segment);
        }
    }
}
