//! The link header a captured packet begins with, by its link type: where what it carries begins, and what that is.
//!
//! Source: the LINKTYPE registry, <https://www.tcpdump.org/linktypes.html>.

use crate::bytes::{be16, be32, le16, le32};
use crate::link::LinkType;
use crate::next_header::{MPLS, Next, PPPOE_SESSION};
use crate::segment::Other;
use crate::wlan;

/// Steps over the link header.
pub(crate) fn skip_link_header(link: LinkType, bytes: &[u8]) -> Result<(usize, Next), Other> {
    match link {
        LinkType::ETHERNET => Ok((0, Next::Ethernet)),
        LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => {
            Ok((0, Next::Ip))
        }
        LinkType::LINUX_SLL => Ok((16, Next::EtherType(be16(bytes, 14).ok_or(Other::Malformed)?))),
        LinkType::LINUX_SLL2 => Ok((20, Next::EtherType(be16(bytes, 0).ok_or(Other::Malformed)?))),
        LinkType::NULL | LinkType::LOOP => {
            let family = be32(bytes, 0).ok_or(Other::Malformed)?;
            // The capture does not state its host's byte order; families are small numbers.
            let family = if family > 0xffff { family.swap_bytes() } else { family };
            address_family(family).map(|next| (4, next))
        }
        LinkType::PPP | LinkType::PPP_HDLC => ppp_frame(bytes),
        LinkType::PPP_WITH_DIR => after(1, ppp_frame(bytes.get(1..).ok_or(Other::Malformed)?)),
        // The byte before HDLC's control says which way the packet went.
        LinkType::PPP_PPPD => match be16(bytes, 0).ok_or(Other::Malformed)? & 0xff {
            0x03 => ppp(be16(bytes, 2).ok_or(Other::Malformed)?).map(|next| (4, next)),
            _ => ppp_frame(bytes),
        },
        LinkType::PPP_ETHER => Ok((0, Next::EtherType(PPPOE_SESSION))),
        LinkType::C_HDLC => Ok((4, Next::EtherType(be16(bytes, 2).ok_or(Other::Malformed)?))),
        LinkType::MPLS => Ok((0, Next::EtherType(MPLS))),
        LinkType::ATM_RFC1483 => Ok((0, Next::Llc)),
        // A frame control byte, of which the upper bits 01 are LLC, and two addresses (ISO 9314-2).
        LinkType::FDDI => match bytes.first().ok_or(Other::Malformed)? & 0xc0 {
            0x40 => Ok((13, Next::Llc)),
            _ => Err(Other::NotIp),
        },
        LinkType::ENC => {
            // An address family in the host's order, then eight bytes.
            let family = le32(bytes, 0).ok_or(Other::Malformed)?;
            address_family(if family > 0xffff { family.swap_bytes() } else { family }).map(|next| (12, next))
        }
        LinkType::PFLOG => {
            let length = usize::from(*bytes.first().ok_or(Other::Malformed)?);
            address_family(u32::from(*bytes.get(1).ok_or(Other::Malformed)?))
                .map(|next| (length.next_multiple_of(4), next))
        }
        LinkType::NFLOG => nflog(bytes),
        LinkType::IEEE802_11 => wlan::data(bytes, false),
        LinkType::IEEE802_11_RADIOTAP => {
            let radio = wlan::radiotap(bytes)?;
            after(radio.len, wlan::data(bytes.get(radio.len..).ok_or(Other::Malformed)?, radio.padded))
        }
        LinkType::IEEE802_11_PRISM | LinkType::IEEE802_11_AVS => {
            let len = wlan::prism(bytes)?;
            after(len, wlan::data(bytes.get(len..).ok_or(Other::Malformed)?, false))
        }
        LinkType::PPI => {
            let len = usize::from(le16(bytes, 2).ok_or(Other::Malformed)?);
            let inner = LinkType(u16::try_from(le32(bytes, 4).ok_or(Other::Malformed)?).map_err(|_| Other::Malformed)?);
            if len < 8 || inner == LinkType::PPI {
                return Err(Other::Malformed);
            }
            after(len, skip_link_header(inner, bytes.get(len..).ok_or(Other::Malformed)?))
        }
        _ => Err(Other::UnknownLink(link)),
    }
}

fn after(skipped: usize, inner: Result<(usize, Next), Other>) -> Result<(usize, Next), Other> {
    inner.map(|(at, next)| (skipped + at, next))
}

/// 2 is IPv4 everywhere; IPv6 is 10 on Linux and 24, 28 or 30 on the BSDs.
const fn address_family(family: u32) -> Result<Next, Other> {
    if matches!(family, 2 | 10 | 24 | 28 | 30) { Ok(Next::Ip) } else { Err(Other::NotIp) }
}

/// Finds the packet among a log message's attributes.
///
/// Source: linux/netfilter/nfnetlink_log.h; lengths are in the capturing host's order, nearly always little-endian.
fn nflog(bytes: &[u8]) -> Result<(usize, Next), Other> {
    const PAYLOAD: u16 = 9;
    let mut at = 4;
    loop {
        let len = usize::from(le16(bytes, at).ok_or(Other::Malformed)?);
        let kind = le16(bytes, at + 2).ok_or(Other::Malformed)? & 0x7fff;
        if len < 4 {
            return Err(Other::Malformed);
        }
        if kind == PAYLOAD {
            return Ok((at + 4, Next::Ip));
        }
        at += len.next_multiple_of(4);
    }
}

/// Steps over a PPP header with or without HDLC-like framing (RFC 1662 §3.1) and with protocol compression (RFC 1661 §6.5).
pub(crate) fn ppp_frame(bytes: &[u8]) -> Result<(usize, Next), Other> {
    let framing = if be16(bytes, 0).ok_or(Other::Malformed)? == 0xff03 { 2 } else { 0 };
    let first = *bytes.get(framing).ok_or(Other::Malformed)?;
    if first & 1 == 1 {
        return ppp(u16::from(first)).map(|next| (framing + 1, next));
    }
    let protocol = be16(bytes, framing).ok_or(Other::Malformed)?;
    ppp(protocol).map(|next| (framing + 2, next))
}

/// What a PPP protocol number stands for.
pub(crate) const fn ppp(protocol: u16) -> Result<Next, Other> {
    match protocol {
        0x0021 | 0x0057 => Ok(Next::Ip),
        // RFC 3032 §4.3.
        0x0281 => Ok(Next::EtherType(MPLS)),
        _ => Err(Other::NotIp),
    }
}

/// Steps over an LLC header, with SNAP where there is one.
///
/// Source: IEEE 802.2; RFC 1042; 0000f8 is 802.1H's bridge tunnel.
pub(crate) fn llc(bytes: &[u8]) -> Result<(usize, Next), Other> {
    let head: &[u8; 3] = bytes.first_chunk().ok_or(Other::Malformed)?;
    match head {
        [0xaa, 0xaa, 0x03] => {
            let organisation = be32(bytes, 2).ok_or(Other::Malformed)? & 0x00ff_ffff;
            match organisation {
                0 | 0xf8 => Ok((8, Next::EtherType(be16(bytes, 6).ok_or(Other::Malformed)?))),
                // RFC 2684 §5.2: a bridged Ethernet frame in ATM, behind two bytes of padding.
                0x80c2 => Ok((10, Next::Ethernet)),
                _ => Err(Other::NotIp),
            }
        }
        // IP by its own service access point.
        [0x06, 0x06, 0x03] => Ok((3, Next::Ip)),
        _ => Err(Other::NotIp),
    }
}

/// Steps over a Network Service Header (RFC 8300 §2.2).
pub(crate) fn nsh(bytes: &[u8]) -> Result<(usize, Next), Other> {
    let len = usize::from(bytes.get(1).ok_or(Other::Malformed)? & 0x3f) * 4;
    if len < 8 {
        return Err(Other::Malformed);
    }
    match bytes.get(3).ok_or(Other::Malformed)? {
        1 | 2 => Ok((len, Next::Ip)),
        3 => Ok((len, Next::Ethernet)),
        4 => Ok((len, Next::Nsh)),
        5 => Ok((len, Next::EtherType(MPLS))),
        _ => Err(Other::NotIp),
    }
}

/// What follows the bottom of a stack of MPLS labels; only its first nibble shows it (RFC 4385 §3, RFC 4928 §3): IP, or a
/// pseudowire's Ethernet frame, with a control word before it or not.
pub(crate) fn labelled(bytes: &[u8]) -> Result<(usize, Next), Other> {
    const CONTROL_WORD: usize = 4;
    // Nothing says whether there is a control word but whether a frame makes sense without.
    let is_frame =
        |at: usize| matches!(be16(bytes, at + 12), Some(0x0800 | 0x0806 | 0x8100 | 0x86dd | 0x8847 | 0x8864 | 0x88a8));
    match bytes.first().ok_or(Other::Malformed)? >> 4 {
        4 | 6 => Ok((0, Next::Ip)),
        0 if is_frame(CONTROL_WORD) || !is_frame(0) => Ok((CONTROL_WORD, Next::Ethernet)),
        _ if is_frame(0) => Ok((0, Next::Ethernet)),
        _ => Err(Other::NotIp),
    }
}
