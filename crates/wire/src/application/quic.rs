//! Long headers of QUIC: which packets a datagram has, as far as they are plain.
//!
//! Source: RFC 9000 §12.2 and §17.2; RFC 9369 §3.2 (version 2); RFC 8999 §5.1.

use crate::bytes::{be16, be32};

/// Version 2 numbers its packet types from Retry on.
const VERSION_2: u32 = 0x6b33_43cf;
/// Packets in a datagram that are looked at.
const PACKETS_MAX: usize = 8;
const ID_MAX: usize = 20;

/// Packets of QUIC in a datagram, a bit for each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuicPackets(pub u8);

impl QuicPackets {
    /// The first packet of a side.
    pub const INITIAL: u8 = 1;
    /// Early data of the client.
    pub const ZERO_RTT: u8 = 2;
    /// The handshake, encrypted with keys that an Initial of the other side agreed.
    pub const HANDSHAKE: u8 = 4;
    /// The server asks the client to begin again with a token.
    pub const RETRY: u8 = 8;
    /// A short header: data, if a connection is known to be there. Anything may look like that.
    pub const ONE_RTT: u8 = 16;

    /// Whether one of `kinds` is among them.
    pub const fn has(self, kinds: u8) -> bool {
        self.0 & kinds != 0
    }

    /// The packets that a datagram's payload begins with, as far as it is captured.
    pub fn read(bytes: &[u8]) -> Self {
        let (mut found, mut rest) = (Self::default(), bytes);
        for _ in 0..PACKETS_MAX {
            match rest.first() {
                Some(first) if first & 0xc0 == 0xc0 => {}
                Some(first) if first & 0xc0 == 0x40 => {
                    found.0 |= Self::ONE_RTT;
                    break;
                }
                _ => break,
            }
            let Some((kind, length)) = long_header(rest) else { break };
            found.0 |= kind;
            rest = length.and_then(|length| rest.get(length..)).unwrap_or_default();
        }
        found
    }
}

/// The kind of the packet that begins with a long header, and its length if that is there.
fn long_header(bytes: &[u8]) -> Option<(u8, Option<usize>)> {
    let version = be32(bytes, 1)?;
    // Version 1, version 2, and the drafts that have the same header.
    let is_known = matches!(version, 1 | VERSION_2 | 0xff00_001d..=0xff00_0022);
    let number = if version == VERSION_2 { (bytes[0] >> 4).wrapping_sub(1) & 3 } else { bytes[0] >> 4 & 3 };
    let kind =
        [QuicPackets::INITIAL, QuicPackets::ZERO_RTT, QuicPackets::HANDSHAKE, QuicPackets::RETRY][number as usize];
    let to = after_id(bytes, 5)?;
    let from = after_id(bytes, to)?;
    is_known.then(|| (kind, length(bytes, from, kind)))
}

fn after_id(bytes: &[u8], at: usize) -> Option<usize> {
    let length = usize::from(*bytes.get(at)?);
    (length <= ID_MAX).then_some(at + 1 + length)
}

fn length(bytes: &[u8], at: usize, kind: u8) -> Option<usize> {
    let at = match kind {
        QuicPackets::RETRY => return None,
        QuicPackets::INITIAL => {
            let (token, at) = number(bytes, at)?;
            at.checked_add(token)?
        }
        _ => at,
    };
    let (length, at) = number(bytes, at)?;
    at.checked_add(length)
}

/// A number of variable length, and where it ends (RFC 9000 §16).
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(at)?;
    match first >> 6 {
        0 => Some((usize::from(first), at + 1)),
        1 => Some((usize::from(be16(bytes, at)? & 0x3fff), at + 2)),
        2 => Some(((be32(bytes, at)? & 0x3fff_ffff) as usize, at + 4)),
        // No datagram is so long.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet of a version with this type and so many bytes behind its length.
    fn packet(version: u32, kind: u8, length: u16) -> Vec<u8> {
        let mut bytes = vec![0xc0 | kind << 4];
        bytes.extend(version.to_be_bytes());
        bytes.extend([4, 1, 2, 3, 4, 2, 5, 6]);
        let is_initial = kind == u8::from(version == VERSION_2);
        bytes.extend(&[1, 9][..if is_initial { 2 } else { 0 }]);
        bytes.extend((0x4000 | length).to_be_bytes());
        bytes.resize(bytes.len() + usize::from(length), 7);
        bytes
    }

    #[test]
    fn the_packets_of_a_datagram_are_told() {
        use QuicPackets as Q;
        let flight = [packet(1, 0, 100), packet(1, 2, 200), vec![0x41; 30]].concat();
        assert_eq!(Q::read(&flight).0, Q::INITIAL | Q::HANDSHAKE | Q::ONE_RTT);
        assert_eq!(
            Q::read(&[packet(VERSION_2, 1, 100), packet(VERSION_2, 3, 9)].concat()).0,
            Q::INITIAL | Q::HANDSHAKE
        );
        assert_eq!(Q::read(&packet(1, 1, 100)).0, Q::ZERO_RTT);
        assert_eq!(Q::read(&packet(1, 3, 100)).0, Q::RETRY);
        // Cut behind the header.
        assert_eq!(Q::read(&packet(1, 0, 1_200)[..30]).0, Q::INITIAL);
        for other in [&packet(7, 0, 100)[..], &[0x80; 40], &[0xc0, 0, 0, 0, 1, 21], &[]] {
            assert_eq!(Q::read(other).0, 0, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(first in 0xc0u8.., bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = QuicPackets::read(&[&[first, 0, 0, 0, 1][..], &bytes].concat());
            let _ = QuicPackets::read(&bytes);
        }
    }
}
