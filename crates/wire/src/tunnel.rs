//! Tunnels that carry IP within GRE or UDP.

use crate::bytes::{be16, be32};
use crate::next_header::{MPLS, Next};
use crate::segment::Tag;

/// Where a tunnel's inner packet begins, and what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inner {
    /// Offset from the start of the tunnel's own header.
    pub(crate) at: usize,
    pub(crate) next: Next,
    /// The tunnel, with the same identity in both directions.
    pub(crate) tag: Tag,
}

/// Reads a GRE header of version 0, or of version 1 carrying PPP, and ERSPAN's behind it; `None` for others.
///
/// Source: RFC 2784, RFC 2890, RFC 1701 for source routes; RFC 2637 for version 1; draft-foschiano-erspan.
pub(crate) fn gre(bytes: &[u8]) -> Option<Inner> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    let flags = be16(bytes, 0)?;
    let ether_type = be16(bytes, 2)?;
    let has = |bits: u16| usize::from(flags & bits != 0) * 4;
    match flags & 7 {
        0 => {
            // Where there are routes, there is room for a checksum too.
            let key_at = 4 + has(CHECKSUM | ROUTING);
            let mut at = key_at + has(KEY) + has(SEQUENCE);
            if flags & ROUTING != 0 {
                at = behind_routes(bytes, at)?;
            }
            match ether_type {
                // Type I has no header of its own, and no sequence number in GRE's.
                0x88be if flags & SEQUENCE == 0 => Some(Inner { at, next: Next::Ethernet, tag: Tag::Erspan(0) }),
                0x88be => erspan(bytes, at, 8, Next::Ethernet),
                0x22eb => {
                    // What kind of frame it is; a platform's own subheader of eight bytes is announced by the last bit.
                    let next = match bytes.get(at + 10)? >> 2 & 0x1f {
                        0 => Next::Ethernet,
                        2 => Next::Ip,
                        _ => return None,
                    };
                    let more = usize::from(bytes.get(at + 11)? & 1) * 8;
                    erspan(bytes, at, 12 + more, next)
                }
                _ => {
                    let id = if flags & KEY != 0 { be32(bytes, key_at)? } else { 0 };
                    Some(Inner { at, next: Next::EtherType(ether_type), tag: Tag::Gre(id) })
                }
            }
        }
        1 => Some(Inner { at: 8 + has(SEQUENCE) + has(0x0080), next: Next::EtherType(ether_type), tag: Tag::Gre(0) }),
        _ => None,
    }
}

/// Steps over source routes: of each the address family, an offset and the length; one of neither ends them.
fn behind_routes(bytes: &[u8], mut at: usize) -> Option<usize> {
    const MOST: usize = 16;
    for _ in 0..MOST {
        let (family, len) = (be16(bytes, at)?, usize::from(*bytes.get(at + 3)?));
        at += 4 + len;
        if family == 0 && len == 0 {
            return Some(at);
        }
    }
    None
}

fn erspan(bytes: &[u8], at: usize, len: usize, next: Next) -> Option<Inner> {
    let session = be16(bytes, at + 2)? & 0x03ff;
    Some(Inner { at: at + len, next, tag: Tag::Erspan(session) })
}

/// Reads the header of an overlay behind a UDP header; `None` for other datagrams.
///
/// Source: RFC 7348 §5 for VXLAN (and 8472, Linux's older default); draft-ietf-nvo3-vxlan-gpe §3; RFC 8926 §3 for GENEVE;
/// RFC 7510 §3 for MPLS; 3GPP TS 29.281 §5 for GTP-U.
pub(crate) fn overlay(udp: &[u8]) -> Option<Inner> {
    const HEADER: usize = 8;
    const PORT_VXLAN: u16 = 4789;
    const PORT_VXLAN_OLD: u16 = 8472;
    const PORT_VXLAN_GPE: u16 = 4790;
    const PORT_GENEVE: u16 = 6081;
    const PORT_MPLS: u16 = 6635;
    const PORT_GTP: u16 = 2152;
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
                (true, 5) => Next::EtherType(MPLS),
                _ => return None,
            };
            Some(Inner { at: HEADER + 8, next, tag: Tag::Vxlan(network()?) })
        }
        PORT_GENEVE if udp.get(HEADER)? & 0xc0 == 0 => {
            let options = usize::from(udp.get(HEADER)? & 0x3f) * 4;
            let next = Next::EtherType(be16(udp, HEADER + 2)?);
            Some(Inner { at: HEADER + 8 + options, next, tag: Tag::Geneve(network()?) })
        }
        PORT_MPLS => Some(Inner { at: HEADER, next: Next::EtherType(MPLS), tag: Tag::MplsInIp }),
        PORT_GTP => Some(Inner { at: HEADER + gtp(udp.get(HEADER..)?)?, next: Next::Ip, tag: Tag::Gtp }),
        _ => None,
    }
}

/// Length of a GTP-U header before a user's packet; `None` for other messages.
fn gtp(bytes: &[u8]) -> Option<usize> {
    const USER_PACKET: u8 = 255;
    const MOST_EXTENSIONS: usize = 8;
    let flags = *bytes.first()?;
    // Version 1, and GTP rather than the charging protocol GTP'.
    if flags & 0xf0 != 0x30 || *bytes.get(1)? != USER_PACKET {
        return None;
    }
    // A sequence number, an N-PDU number and the kind of the next extension header: all three where any is.
    if flags & 0x07 == 0 {
        return Some(8);
    }
    let mut at = 12;
    let mut kind = if flags & 0x04 != 0 { *bytes.get(11)? } else { 0 };
    for _ in 0..MOST_EXTENSIONS {
        if kind == 0 {
            return Some(at);
        }
        // In units of four bytes; the last byte is the next one's kind.
        let len = usize::from(*bytes.get(at)?) * 4;
        at += len;
        kind = *bytes.get(at.checked_sub(1)?).filter(|_| len > 0)?;
    }
    None
}
