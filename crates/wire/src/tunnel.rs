//! Tunnels that carry IP within IP, GRE or UDP.

use crate::bytes::{be16, be32};

/// Where a tunnel's inner packet begins, and what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inner {
    /// Offset from the start of the tunnel's own header.
    pub(crate) at: usize,
    /// Its EtherType; 0x6558 for an Ethernet frame.
    pub(crate) ether_type: u16,
    /// Number of the tunnel, the same in both directions.
    pub(crate) id: u32,
}

/// Reads a GRE header of version 0, or of version 1 carrying PPP; `None` for others.
///
/// Source: RFC 2784, RFC 2890; RFC 2637 for version 1.
pub(crate) fn gre(bytes: &[u8]) -> Option<Inner> {
    let flags = be16(bytes, 0)?;
    let ether_type = be16(bytes, 2)?;
    let version = flags & 7;
    let has = |bit: u16| usize::from(flags & bit != 0) * 4;
    match version {
        0 => {
            let checksum = has(0x8000);
            let key = has(0x2000);
            let id = if key > 0 { be32(bytes, 4 + checksum)? } else { 0 };
            Some(Inner { at: 4 + checksum + key + has(0x1000), ether_type, id })
        }
        1 => Some(Inner { at: 8 + has(0x1000) + has(0x0080), ether_type, id: 0 }),
        _ => None,
    }
}

/// Reads a VXLAN header behind a UDP header to port 4789 (RFC 7348 §5) or Linux's older default 8472; `None` for other datagrams.
pub(crate) fn vxlan(udp: &[u8]) -> Option<Inner> {
    if !matches!(be16(udp, 2)?, 4789 | 8472) || *udp.get(8)? & 0x08 == 0 {
        return None;
    }
    Some(Inner { at: 16, ether_type: 0x6558, id: be32(udp, 12)? >> 8 })
}
