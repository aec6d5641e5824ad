//! Tunnels that carry IP within GRE or UDP.

use crate::Tag;
use crate::begin::Next;
use crate::bytes::{be16, be32};

/// Where a tunnel's inner packet begins, and what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inner {
    /// Offset from the start of the tunnel's own header.
    pub(crate) at: usize,
    pub(crate) next: Next,
    /// The tunnel, told the same in both directions.
    pub(crate) tag: Tag,
}

/// Reads a GRE header of version 0, or of version 1 carrying PPP, and ERSPAN's behind it; `None` for others.
///
/// Source: RFC 2784, RFC 2890; RFC 2637 for version 1; draft-foschiano-erspan.
pub(crate) fn gre(bytes: &[u8]) -> Option<Inner> {
    let flags = be16(bytes, 0)?;
    let ether_type = be16(bytes, 2)?;
    let has = |bit: u16| usize::from(flags & bit != 0) * 4;
    match flags & 7 {
        0 => {
            let checksum = has(0x8000);
            let key = has(0x2000);
            let at = 4 + checksum + key + has(0x1000);
            match ether_type {
                // Type I has no header of its own, and no sequence number in GRE's.
                0x88be if flags & 0x1000 == 0 => Some(Inner { at, next: Next::Ethernet, tag: Tag::Erspan(0) }),
                0x88be => erspan(bytes, at, 8),
                0x22eb => {
                    // A platform's own subheader of eight bytes is announced by the last bit.
                    let more = usize::from(bytes.get(at + 11)? & 1) * 8;
                    erspan(bytes, at, 12 + more)
                }
                _ => {
                    let id = if key > 0 { be32(bytes, 4 + checksum)? } else { 0 };
                    Some(Inner { at, next: Next::EtherType(ether_type), tag: Tag::Gre(id) })
                }
            }
        }
        1 => Some(Inner { at: 8 + has(0x1000) + has(0x0080), next: Next::EtherType(ether_type), tag: Tag::Gre(0) }),
        _ => None,
    }
}

fn erspan(bytes: &[u8], at: usize, len: usize) -> Option<Inner> {
    let session = be16(bytes, at + 2)? & 0x03ff;
    Some(Inner { at: at + len, next: Next::Ethernet, tag: Tag::Erspan(session) })
}

/// Reads the header of an overlay behind a UDP header; `None` for other datagrams.
///
/// Source: RFC 7348 §5 for VXLAN (and 8472, Linux's older default); draft-ietf-nvo3-vxlan-gpe §3; RFC 8926 §3 for GENEVE.
pub(crate) fn overlay(udp: &[u8]) -> Option<Inner> {
    const HEADER: usize = 8;
    const PORT_VXLAN: u16 = 4789;
    const PORT_VXLAN_OLD: u16 = 8472;
    const PORT_VXLAN_GPE: u16 = 4790;
    const PORT_GENEVE: u16 = 6081;
    let network = || be32(udp, HEADER + 4).map(|word| word >> 8);
    match be16(udp, 2)? {
        PORT_VXLAN | PORT_VXLAN_OLD if udp.get(HEADER)? & 0x08 != 0 => {
            Some(Inner { at: HEADER + 8, next: Next::Ethernet, tag: Tag::Vxlan(network()?) })
        }
        PORT_VXLAN_GPE if udp.get(HEADER)? & 0x08 != 0 => {
            let next = match (udp.get(HEADER)? & 0x04 != 0, udp.get(HEADER + 3)?) {
                (false, _) | (true, 3) => Next::Ethernet,
                (true, 1 | 2) => Next::Ip,
                (true, 4) => Next::Nsh,
                (true, 5) => Next::EtherType(0x8847),
                _ => return None,
            };
            Some(Inner { at: HEADER + 8, next, tag: Tag::Vxlan(network()?) })
        }
        PORT_GENEVE if udp.get(HEADER)? & 0xc0 == 0 => {
            let options = usize::from(udp.get(HEADER)? & 0x3f) * 4;
            let next = Next::EtherType(be16(udp, HEADER + 2)?);
            Some(Inner { at: HEADER + 8 + options, next, tag: Tag::Geneve(network()?) })
        }
        _ => None,
    }
}
