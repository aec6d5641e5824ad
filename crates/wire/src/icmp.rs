//! ICMP errors that name the MTU of a link, and the TCP segment that was too long for it.
//!
//! Source: RFC 792 and RFC 1191 §4 (destination unreachable, fragmentation needed); RFC 4443 §3.2 (packet too big).

use crate::bytes::{be16, be32};
use crate::ip;
use crate::segment::{Segment, Tags, TooBig};
use crate::tcp::{Flags, Options, TcpHeader};
use thalweg_units::SeqNum;

const TCP: u8 = 6;
/// The ICMP header; the packet that it is about follows.
const HEADER: usize = 8;
/// Linux quotes as much of an IPv6 packet as fits into 1,280 bytes, routers at least the ports and the sequence number (RFC 792).
const QUOTED: usize = 8;

/// Reads the error that begins with `bytes`; `None` for another message, or one that is not about TCP.
pub(crate) fn too_big(bytes: &[u8], is_v6: bool, tags: Tags) -> Option<TooBig> {
    let mtu = match (is_v6, bytes.first()?, bytes.get(1)?) {
        (false, 3, 4) => u32::from(be16(bytes, 6)?),
        (true, 2, _) => be32(bytes, 4)?,
        _ => return None,
    };
    let quote = bytes.get(HEADER..)?;
    let layer = ip::parse(quote, quote.len())?;
    if layer.protocol != TCP || layer.part.is_some_and(|part| part.offset > 0) {
        return None;
    }
    let front = quote.get(layer.at..)?.get(..QUOTED)?;
    let tcp = TcpHeader {
        source_port: be16(front, 0)?,
        destination_port: be16(front, 2)?,
        seq: SeqNum::new(be32(front, 4)?),
        ack: SeqNum::new(0),
        flags: Flags::default(),
        window: 0,
        checksum: 0,
        header_len: TcpHeader::MIN_LEN as u8,
        options: Options::default(),
    };
    Some(TooBig { segment: Segment { ip: layer.facts, tcp, tags, payload_len: 0, payload_at: 0 }, mtu })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error about a segment of 1,500 bytes from port 40001 to 443.
    fn error(kind: u8, code: u8, mtu: u16, protocol: u8) -> Vec<u8> {
        let mut bytes = vec![kind, code, 0, 0, 0, 0];
        bytes.extend(mtu.to_be_bytes());
        bytes.extend([0x45, 0, 0x05, 0xdc, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 77, 0, 2, 10, 77, 9, 9]);
        bytes.extend([0x9c, 0x41, 0x01, 0xbb, 0, 0, 0, 7]);
        bytes
    }

    #[test]
    fn the_quoted_segment_and_the_mtu_are_read() {
        let found = too_big(&error(3, 4, 1_420, TCP), false, Tags::default()).expect("an error");
        assert_eq!(
            (found.mtu, found.segment.tcp.source_port, found.segment.tcp.destination_port),
            (1_420, 40_001, 443)
        );
        assert_eq!(found.segment.ip.source.to_string(), "10.77.0.2");
        assert_eq!(found.segment.tcp.seq, SeqNum::new(7));
    }

    #[test]
    fn other_messages_and_cut_ones_are_none() {
        for (kind, code, protocol) in [(3, 3, TCP), (11, 0, TCP), (3, 4, 17)] {
            assert_eq!(too_big(&error(kind, code, 1_420, protocol), false, Tags::default()), None);
        }
        let whole = error(3, 4, 1_420, TCP);
        for len in 0..whole.len() {
            assert_eq!(too_big(&whole[..len], false, Tags::default()), None, "{len}");
        }
    }
}
