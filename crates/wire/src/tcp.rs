//! TCP headers with all their options.
//!
//! Source: RFC 9293 §3.1; options by their own RFCs below.

use crate::bytes::{be16, be32};
use thalweg_units::SeqNum;

/// The control bits of a TCP header.
///
/// Source: RFC 9293 §3.1; CWR and ECE from RFC 3168.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement field is significant.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer field is significant.
    pub const URG: u8 = 0x20;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;

    /// Whether all of `bits` are set.
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits == bits
    }
}

/// Up to four selective acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(SeqNum, SeqNum); 4],
    count: u8,
}

impl SackBlocks {
    /// Blocks given as (left edge, right edge); those past the fourth are dropped.
    pub fn new(blocks: &[(SeqNum, SeqNum)]) -> Self {
        let mut sack = Self::default();
        for &(left, right) in blocks {
            sack.push(left, right);
        }
        sack
    }

    /// The blocks in the header's order: the first holds what arrived last, or a duplicate (RFC 2018 §4, RFC 2883 §4).
    pub fn as_slice(&self) -> &[(SeqNum, SeqNum)] {
        &self.blocks[..usize::from(self.count)]
    }

    fn push(&mut self, left: SeqNum, right: SeqNum) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = (left, right);
            self.count += 1;
        }
    }
}

/// The options of a TCP header that say something about the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Maximum segment size (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale as sent; values over 14 count as 14 (RFC 7323 §2.3).
    pub window_scale: Option<u8>,
    /// Selective acknowledgements are permitted (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Selective acknowledgements (RFC 2018 §3).
    pub sack: SackBlocks,
    /// TSval and TSecr (RFC 7323 §3.2).
    pub timestamps: Option<(u32, u32)>,
    /// The length of the cookie in a Fast Open option; 0 asks for one (RFC 7413 §4.1.1).
    pub fast_open: Option<u8>,
    /// The subtype of a Multipath TCP option: 0 `MP_CAPABLE`, 1 `MP_JOIN` (RFC 8684 §3 and §8.2).
    pub multipath: Option<u8>,
    /// The capture holds some of the header's options only.
    pub cut: bool,
}

impl Options {
    /// Whether there is none but timestamps, as in most packets, as far as the capture shows.
    #[inline]
    pub const fn are_plain(&self) -> bool {
        let Self { mss, window_scale, sack_permitted, sack, timestamps: _, fast_open, multipath, cut } = self;
        let agrees = mss.is_some() || window_scale.is_some() || *sack_permitted || fast_open.is_some();
        !agrees && sack.count == 0 && multipath.is_none() && !*cut
    }

    /// Reads options up to the first that is malformed or cut.
    pub fn parse(mut bytes: &[u8]) -> Self {
        let mut options = Self::default();
        while let Some(&kind) = bytes.first() {
            match kind {
                0 => break,
                1 => {
                    bytes = &bytes[1..];
                    continue;
                }
                _ => {}
            }
            let Some(&length) = bytes.get(1) else { break };
            let Some(value) = bytes.get(2..usize::from(length)) else { break };
            match kind {
                2 => options.mss = be16(value, 0),
                3 => options.window_scale = value.first().map(|&shift| shift.min(14)),
                4 => options.sack_permitted = true,
                5 => {
                    for block in value.chunks_exact(8) {
                        if let (Some(left), Some(right)) = (be32(block, 0), be32(block, 4)) {
                            options.sack.push(SeqNum::new(left), SeqNum::new(right));
                        }
                    }
                }
                8 => options.timestamps = be32(value, 0).zip(be32(value, 4)),
                30 => options.multipath = value.first().map(|first| first >> 4),
                34 => options.fast_open = Some(length - 2),
                // The experimental kind Linux used for Fast Open before 34 was assigned (RFC 7413 §4.1.1, magic 0xF989).
                254 if be16(value, 0) == Some(0xf989) => options.fast_open = Some(length - 4),
                _ => {}
            }
            bytes = &bytes[usize::from(length)..];
        }
        options
    }
}

/// A TCP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpHeader {
    /// Port it was sent from.
    pub source_port: u16,
    /// Port it was sent to.
    pub destination_port: u16,
    /// Sequence number of the first byte (of the SYN where there is one).
    pub seq: SeqNum,
    /// Next byte expected of the other side; significant with the ACK bit.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: Flags,
    /// Window field as sent, not scaled.
    pub window: u16,
    /// Checksum as sent; a sender that leaves it to its network card shows another on its own captures than on the wire.
    pub checksum: u16,
    /// Length of header and options, in bytes.
    pub header_len: u8,
    /// Its options.
    pub options: Options,
}

impl TcpHeader {
    /// Length of a header without options, in bytes.
    pub const MIN_LEN: usize = 20;

    /// Reads a header; `None` when it is cut or its length field is impossible.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let fixed: &[u8; Self::MIN_LEN] = bytes.first_chunk()?;
        let header_len = (fixed[12] >> 4) * 4;
        if usize::from(header_len) < Self::MIN_LEN {
            return None;
        }
        // Options may be cut by the snapshot length: read what is there.
        let options = &bytes[Self::MIN_LEN..bytes.len().min(usize::from(header_len))];
        Some(Self {
            source_port: be16(fixed, 0)?,
            destination_port: be16(fixed, 2)?,
            seq: SeqNum::new(be32(fixed, 4)?),
            ack: SeqNum::new(be32(fixed, 8)?),
            flags: Flags(fixed[13]),
            window: be16(fixed, 14)?,
            checksum: be16(fixed, 16)?,
            header_len,
            options: Options { cut: bytes.len() < usize::from(header_len), ..Options::parse(options) },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_option() {
        let bytes = [
            2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7, 34, 2, 30, 3, 0x10, 5, 18, 0, 0, 0, 10,
            0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, 40,
        ];
        let options = Options::parse(&bytes);
        assert_eq!((options.mss, options.window_scale, options.sack_permitted), (Some(1460), Some(7), true));
        assert_eq!((options.timestamps, options.fast_open, options.multipath), (Some((1, 2)), Some(0), Some(1)));
        let n = SeqNum::new;
        assert_eq!(options.sack.as_slice(), [(n(10), n(20)), (n(30), n(40))]);
    }

    #[test]
    fn options_that_do_not_advance_end_the_list() {
        assert_eq!(Options::parse(&[8, 0, 0, 0]), Options::default());
        assert_eq!(Options::parse(&[8, 1, 0, 0]), Options::default());
        assert_eq!(Options::parse(&[2, 4, 1]), Options::default());
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = TcpHeader::parse(&bytes);
        }
    }
}
