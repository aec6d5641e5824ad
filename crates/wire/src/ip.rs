//! IPv4 and IPv6 headers, as far as TCP analysis needs them.
//!
//! Source: RFC 791; RFC 8200; RFC 2675 (jumbograms) and Linux BIG TCP for packets past 65,535 bytes.

use crate::bytes::{be16, be32};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The fields of an IP header that concern a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpFacts {
    /// Sent from.
    pub source: IpAddr,
    /// Sent to.
    pub destination: IpAddr,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// ECN field: 0 not capable, 1 and 2 capable, 3 congestion experienced (RFC 3168 §5).
    pub ecn: u8,
    /// Identification; IPv4 alone has one in every header.
    pub id: Option<u16>,
}

/// What an IP header carries, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer {
    pub(crate) facts: IpFacts,
    pub(crate) protocol: u8,
    /// Offset of what is carried.
    pub(crate) at: usize,
    /// Its length on the wire.
    pub(crate) len: usize,
    /// Which part of a packet it is, where that is in several.
    pub(crate) part: Option<Part>,
}

/// A fragment's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) id: u32,
    /// Where its bytes belong in the whole payload.
    pub(crate) offset: u32,
    /// Others follow.
    pub(crate) more: bool,
}

/// Reads the IP header at the start of `bytes`, of which the wire had `wire_len`; `None` when it is cut or impossible.
pub(crate) fn parse(bytes: &[u8], wire_len: usize) -> Option<Layer> {
    match bytes.first()? >> 4 {
        4 => parse_v4(bytes, wire_len),
        6 => parse_v6(bytes, wire_len),
        _ => None,
    }
}

fn parse_v4(bytes: &[u8], wire_len: usize) -> Option<Layer> {
    let fixed: &[u8; 20] = bytes.first_chunk()?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    if header < 20 {
        return None;
    }
    // A host that hands segmentation to its network card captures packets before they have a length, or ones too long for it.
    let total = match usize::from(be16(fixed, 2)?) {
        0 => wire_len,
        total => total,
    };
    let fragment = be16(fixed, 6)? & 0x3fff;
    let part = (fragment != 0).then(|| Part {
        id: u32::from(be16(fixed, 4).unwrap_or(0)),
        offset: u32::from(fragment & 0x1fff) * 8,
        more: fragment & 0x2000 != 0,
    });
    let address = |at: usize| be32(fixed, at).map(|n| IpAddr::V4(Ipv4Addr::from(n)));
    Some(Layer {
        facts: IpFacts {
            source: address(12)?,
            destination: address(16)?,
            ttl: fixed[8],
            ecn: fixed[1] & 3,
            id: be16(fixed, 4),
        },
        protocol: fixed[9],
        at: header,
        len: total.checked_sub(header)?,
        part,
    })
}

fn parse_v6(bytes: &[u8], wire_len: usize) -> Option<Layer> {
    const HEADER: usize = 40;
    let fixed: &[u8; HEADER] = bytes.first_chunk()?;
    let address = |at: usize| {
        fixed.get(at..).and_then(|b| b.first_chunk::<16>()).map(|octets| IpAddr::V6(Ipv6Addr::from(*octets)))
    };
    let facts =
        IpFacts { source: address(8)?, destination: address(24)?, ttl: fixed[7], ecn: (fixed[1] >> 4) & 3, id: None };
    let mut payload = usize::from(be16(fixed, 4)?);
    if payload == 0 {
        payload = wire_len.saturating_sub(HEADER);
    }
    let mut protocol = fixed[6];
    let mut at = HEADER;
    let mut part = None;
    // A chain longer than eight is no packet of a working host; RFC 8200 §4.1 expects each header once.
    for _ in 0..8 {
        if protocol == 44 {
            let place = be16(bytes, at + 2)?;
            // A lone fragment is whole (RFC 6946).
            part = (place & 0xfff9 != 0).then_some(Part {
                id: be32(bytes, at + 4)?,
                offset: u32::from(place & 0xfff8),
                more: place & 1 != 0,
            });
            protocol = *bytes.get(at)?;
            at += 8;
            // What follows is for whoever puts the parts together.
            if part.is_some() {
                break;
            }
            continue;
        }
        if !matches!(protocol, 0 | 43 | 51 | 60 | 135 | 139 | 140) {
            break;
        }
        let (next, length) = extension(protocol, bytes.get(at..)?)?;
        if protocol == 0
            && let Some(jumbo) = jumbo_length(bytes.get(at + 2..bytes.len().min(at + length))?)
        {
            payload = jumbo;
        }
        protocol = next;
        at += length;
    }
    Some(Layer { facts, protocol, at, len: (HEADER + payload).checked_sub(at)?, part })
}

/// Steps over an extension header: what follows it, and its length; `None` for what is none, or cut.
pub(crate) fn extension(protocol: u8, bytes: &[u8]) -> Option<(u8, usize)> {
    let (next, length) = (*bytes.first()?, usize::from(*bytes.get(1)?));
    match protocol {
        // Hop-by-hop, routing, destination options, mobility, HIP, shim6: in units of 8 bytes, the first not counted.
        0 | 43 | 60 | 135 | 139 | 140 => Some((next, (length + 1) * 8)),
        // Authentication header: in units of 4 bytes, less 2 (RFC 4302 §2.2).
        51 => Some((next, (length + 2) * 4)),
        _ => None,
    }
}

/// The length in a jumbo payload option (RFC 2675 §2), where `options` hold one.
fn jumbo_length(mut options: &[u8]) -> Option<usize> {
    loop {
        match *options.first()? {
            0 => options = options.get(1..)?,
            0xc2 => return be32(options, 2).and_then(|length| usize::try_from(length).ok()),
            _ => options = options.get(2 + usize::from(*options.get(1)?)..)?,
        }
    }
}
