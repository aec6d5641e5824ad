//! From a captured frame to the TCP segment in it, through VLANs, MPLS and tunnels.

use crate::bytes::{be16, be32};
use crate::{IpFacts, LinkType, TcpHeader, ip, tunnel};

/// Most headers between the frame's start and TCP: an overlay in an overlay, each with VLANs, is under half of it.
const MOST_LAYERS: usize = 24;

const TCP: u8 = 6;
const UDP: u8 = 17;
const GRE: u8 = 47;

/// A virtual network a segment travelled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tag {
    /// A VLAN by its number; priority tags (number 0) are not told.
    Vlan(u16),
    /// IP in IP (RFC 2003, RFC 4213).
    IpInIp,
    /// GRE with its key, 0 where it has none.
    Gre(u32),
    /// VXLAN with its network identifier.
    Vxlan(u32),
}

/// The virtual networks around a segment, outermost first; those past the fourth are not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tags([Option<Tag>; 4]);

impl Tags {
    /// The tags, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = Tag> + '_ {
        self.0.iter().flatten().copied()
    }

    fn push(&mut self, tag: Tag) {
        if let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(tag);
        }
    }
}

/// A TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its IP header.
    pub ip: IpFacts,
    /// Its TCP header.
    pub tcp: TcpHeader,
    /// The virtual networks around it.
    pub tags: Tags,
    /// Bytes of payload on the wire, whether captured or not.
    pub payload_len: u32,
}

/// Why a packet holds no TCP segment to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Other {
    /// The link type is not known here.
    UnknownLink,
    /// Not IP: ARP, LLDP and the like.
    NotIp,
    /// IP with another protocol.
    NotTcp,
    /// A fragment of IP that is not its first.
    Fragment,
    /// Headers that are cut or contradict themselves.
    Malformed,
}

/// What a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// TCP.
    Tcp(Segment),
    /// Something else.
    Other(Other),
}

/// Finds the TCP segment in a packet that had `original_len` bytes on the wire and begins as `link` says.
pub fn decode(link: LinkType, bytes: &[u8], original_len: u32) -> Decoded {
    let wire_len = (original_len as usize).max(bytes.len());
    match walk(link, bytes, wire_len) {
        Ok(segment) => Decoded::Tcp(segment),
        Err(other) => Decoded::Other(other),
    }
}

#[derive(Debug, Clone, Copy)]
enum Next {
    Ethernet,
    EtherType(u16),
    Ip,
}

fn walk(link: LinkType, bytes: &[u8], wire_len: usize) -> Result<Segment, Other> {
    let (mut at, mut next) = begin(link, bytes)?;
    let mut tags = Tags::default();
    // What remains on the wire from `at`, by the innermost length field so far.
    let mut end = wire_len;
    for _ in 0..MOST_LAYERS {
        let rest = bytes.get(at..).ok_or(Other::Malformed)?;
        match next {
            Next::Ethernet => {
                next = Next::EtherType(be16(rest, 12).ok_or(Other::Malformed)?);
                at += 14;
            }
            // 802.1Q, 802.1ad, and the older tags of QinQ switches.
            Next::EtherType(0x8100 | 0x88a8 | 0x9100 | 0x9200) => {
                let vlan = be16(rest, 0).ok_or(Other::Malformed)? & 0x0fff;
                if vlan != 0 {
                    tags.push(Tag::Vlan(vlan));
                }
                next = Next::EtherType(be16(rest, 2).ok_or(Other::Malformed)?);
                at += 4;
            }
            Next::EtherType(0x8847 | 0x8848) => {
                // Labels are not told: the two directions of one connection have different ones.
                let label = be32(rest, 0).ok_or(Other::Malformed)?;
                at += 4;
                if label & 0x100 != 0 {
                    // What follows the bottom of the stack is told by its first nibble alone (RFC 4385 §3, RFC 4928).
                    next = match bytes.get(at).ok_or(Other::Malformed)? >> 4 {
                        4 | 6 => Next::Ip,
                        0 => {
                            at += 4;
                            Next::Ethernet
                        }
                        _ => return Err(Other::NotIp),
                    };
                }
            }
            Next::EtherType(0x0800 | 0x86dd) => next = Next::Ip,
            Next::EtherType(0x8864) => {
                // PPPoE session: six bytes, then the PPP protocol (RFC 2516 §4).
                next = ppp(be16(rest, 6).ok_or(Other::Malformed)?)?;
                at += 8;
            }
            Next::EtherType(0x880b) => {
                let (skip, inner) = ppp_frame(rest)?;
                at += skip;
                next = inner;
            }
            Next::EtherType(0x6558) => next = Next::Ethernet,
            Next::EtherType(_) => return Err(Other::NotIp),
            Next::Ip => {
                let layer = ip::parse(rest, end.saturating_sub(at)).ok_or(Other::Malformed)?;
                if layer.later_fragment {
                    return Err(Other::Fragment);
                }
                at += layer.at;
                end = at + layer.len;
                let rest = bytes.get(at..).ok_or(Other::Malformed)?;
                match layer.protocol {
                    TCP => {
                        let tcp = TcpHeader::parse(rest).ok_or(Other::Malformed)?;
                        let payload = layer.len.checked_sub(usize::from(tcp.header_len)).ok_or(Other::Malformed)?;
                        let payload_len = u32::try_from(payload).map_err(|_| Other::Malformed)?;
                        return Ok(Segment { ip: layer.facts, tcp, tags, payload_len });
                    }
                    4 | 41 => {
                        tags.push(Tag::IpInIp);
                        next = Next::Ip;
                    }
                    GRE => {
                        let inner = tunnel::gre(rest).ok_or(Other::NotTcp)?;
                        tags.push(Tag::Gre(inner.id));
                        at += inner.at;
                        next = Next::EtherType(inner.ether_type);
                    }
                    UDP => {
                        let inner = tunnel::vxlan(rest).ok_or(Other::NotTcp)?;
                        tags.push(Tag::Vxlan(inner.id));
                        at += inner.at;
                        next = Next::EtherType(inner.ether_type);
                    }
                    _ => return Err(Other::NotTcp),
                }
            }
        }
    }
    Err(Other::Malformed)
}

/// Steps over the link header.
fn begin(link: LinkType, bytes: &[u8]) -> Result<(usize, Next), Other> {
    match link {
        LinkType::ETHERNET => Ok((0, Next::Ethernet)),
        LinkType::RAW_BSD | LinkType::RAW_OPENBSD | LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => {
            Ok((0, Next::Ip))
        }
        LinkType::LINUX_SLL => Ok((16, Next::EtherType(be16(bytes, 14).ok_or(Other::Malformed)?))),
        LinkType::LINUX_SLL2 => Ok((20, Next::EtherType(be16(bytes, 0).ok_or(Other::Malformed)?))),
        LinkType::NULL | LinkType::LOOP => {
            let family = be32(bytes, 0).ok_or(Other::Malformed)?;
            // The capturing host's byte order is not told, and families are small numbers: 2 is IPv4 everywhere; IPv6 is
            // 10 on Linux and 24, 28 or 30 on the BSDs.
            let family = if family > 0xffff { family.swap_bytes() } else { family };
            if matches!(family, 2 | 10 | 24 | 28 | 30) { Ok((4, Next::Ip)) } else { Err(Other::NotIp) }
        }
        LinkType::PPP | LinkType::PPP_HDLC => ppp_frame(bytes),
        _ => Err(Other::UnknownLink),
    }
}

/// Steps over a PPP header with or without HDLC-like framing (RFC 1662 §3.1) and with protocol compression (RFC 1661 §6.5).
fn ppp_frame(bytes: &[u8]) -> Result<(usize, Next), Other> {
    let framing = if be16(bytes, 0).ok_or(Other::Malformed)? == 0xff03 { 2 } else { 0 };
    let first = *bytes.get(framing).ok_or(Other::Malformed)?;
    if first & 1 == 1 {
        return ppp(u16::from(first)).map(|next| (framing + 1, next));
    }
    let protocol = be16(bytes, framing).ok_or(Other::Malformed)?;
    ppp(protocol).map(|next| (framing + 2, next))
}

const fn ppp(protocol: u16) -> Result<Next, Other> {
    match protocol {
        0x0021 | 0x0057 => Ok(Next::Ip),
        _ => Err(Other::NotIp),
    }
}

#[cfg(test)]
mod tests;
