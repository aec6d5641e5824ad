//! The fast path: an unfragmented TCP segment over IPv4 without options over untagged Ethernet.

use crate::ip::IpFacts;
use crate::segment::{Segment, Tags};
use crate::tcp::{Flags, Options, TcpHeader};
use std::net::{IpAddr, Ipv4Addr};
use thalweg_units::SeqNum;

const ETHERNET: usize = 14;
const IP: usize = 20;
const HEADERS: usize = ETHERNET + IP + TcpHeader::MIN_LEN;
/// Two of padding, then timestamps of ten bytes: what nearly every segment has (RFC 7323 appendix A).
const PADDED_TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// The segment in an Ethernet frame, the same that [`crate::decode`] finds; `None` if the frame needs the general decoder.
#[inline]
pub(crate) fn plain_tcp(bytes: &[u8]) -> Option<Segment> {
    let fixed: &[u8; HEADERS] = bytes.first_chunk()?;
    let is_plain = [fixed[12], fixed[13]] == [8, 0]
        // Version 4, no options; not a fragment; TCP.
        && fixed[14] == 0x45
        && fixed[20] & 0x3f == 0
        && fixed[21] == 0
        && fixed[23] == 6;
    let header_len = fixed[46] >> 4 << 2;
    let u16_at = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let u32_at = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let payload_len = u32::from(u16_at(16)).checked_sub(IP as u32 + u32::from(header_len))?;
    if !is_plain || usize::from(header_len) < TcpHeader::MIN_LEN {
        return None;
    }
    let rest = &bytes[HEADERS..bytes.len().min(ETHERNET + IP + usize::from(header_len))];
    // A capture may end within the options; what it does hold is read.
    let cut = TcpHeader::MIN_LEN + rest.len() < usize::from(header_len);
    let options = match *rest {
        [a, b, c, d, v0, v1, v2, v3, e0, e1, e2, e3] if [a, b, c, d] == PADDED_TIMESTAMPS => {
            let timestamps = (u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3]));
            Options { timestamps: Some(timestamps), cut, ..Options::default() }
        }
        _ => Options { cut, ..Options::parse(rest) },
    };
    Some(Segment {
        ip: IpFacts {
            source: IpAddr::V4(Ipv4Addr::from_bits(u32_at(26))),
            destination: IpAddr::V4(Ipv4Addr::from_bits(u32_at(30))),
            ttl: fixed[22],
            ecn: fixed[15] & 3,
            id: Some(u16_at(18)),
        },
        tcp: TcpHeader {
            source_port: u16_at(34),
            destination_port: u16_at(36),
            seq: SeqNum::new(u32_at(38)),
            ack: SeqNum::new(u32_at(42)),
            flags: Flags(fixed[47]),
            window: u16_at(48),
            checksum: u16_at(50),
            header_len,
            options,
        },
        tags: Tags::default(),
        payload_len,
        payload_at: (ETHERNET + IP) as u16 + u16::from(header_len),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decoded, LinkType, decode};
    use proptest::prelude::*;

    proptest! {
        /// Whatever the bytes, what is found here is what is found the long way.
        #[test]
        fn is_as_the_general_way(
            bytes in proptest::collection::vec(any::<u8>(), 0..90),
            header_len in 4u8..10,
            total in prop_oneof![Just(0u16), 30u16..120],
            timestamps: bool,
            cut in 40usize..90,
        ) {
            let mut bytes = bytes;
            if bytes.len() >= HEADERS {
                (bytes[12], bytes[13], bytes[14], bytes[20], bytes[21], bytes[23]) = (8, 0, 0x45, bytes[20] & 0xc1, bytes[21] & 1, 6);
                bytes[16..18].copy_from_slice(&total.to_be_bytes());
                bytes[46] = header_len << 4;
                if timestamps && bytes.len() >= HEADERS + 4 {
                    bytes[HEADERS..HEADERS + 4].copy_from_slice(&PADDED_TIMESTAMPS);
                }
            }
            bytes.truncate(cut);
            if let Some(segment) = plain_tcp(&bytes) {
                prop_assert_eq!(Decoded::Tcp(segment), decode(LinkType::ETHERNET, &bytes, bytes.len() as u32));
            }
        }
    }

    #[test]
    fn finds_what_is_plain() {
        let mut bytes = vec![0; HEADERS + 12];
        (bytes[12], bytes[14], bytes[17], bytes[23], bytes[46]) = (8, 0x45, 57, 6, 0x80);
        bytes[HEADERS..HEADERS + 4].copy_from_slice(&PADDED_TIMESTAMPS);
        bytes[HEADERS + 7] = 9;
        let segment = plain_tcp(&bytes).expect("plain");
        assert_eq!((segment.payload_len, segment.tcp.options.timestamps), (5, Some((9, 0))));
        bytes[46] = 0x90;
        assert!(plain_tcp(&bytes).expect("plain").tcp.options.cut, "four bytes of options are missing");
        bytes[21] = 1;
        assert_eq!(plain_tcp(&bytes), None, "a fragment");
    }
}
