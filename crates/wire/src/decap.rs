//! From a frame's start to the TCP segment in it, or to an ICMP error about one, through VLANs, MPLS and tunnels.

use crate::bytes::{be16, be32};
use crate::fragments::Piece;
use crate::icmp;
use crate::ip::{self, IpFacts};
use crate::link_header::{labelled, llc, nsh, ppp, ppp_frame};
use crate::next_header::{MPLS, Next, PPPOE_SESSION};
use crate::segment::{Datagram, Decoded, Other, Segment, Tag, Tags, TooBig};
use crate::tcp::TcpHeader;
use crate::tunnel;

/// Most headers between the frame's start and TCP: an overlay in an overlay, each with VLANs, is under half of it.
const MOST_LAYERS: usize = 24;

const MOST_EXTENSIONS: usize = 8;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
const GRE: u8 = 47;
const MPLS_IN_IP: u8 = 137;

/// Where the subframe at `at` has its payload: two addresses and a length before it. `None` when there is none, or it is cut.
pub(crate) fn subframe(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    const HEADER: usize = 14;
    let len = usize::from(be16(bytes, at + 12)?);
    let end = at + HEADER + len;
    (len > 0 && end <= bytes.len()).then_some((at + HEADER, end))
}

/// Finds the segment in what begins at `at` as `next` says, in a frame of which the wire had `wire_len` bytes and that came through
/// the networks of `tags`. At a fragment of IP the way ends: that is given in `piece`.
pub(crate) fn decapsulate(
    bytes: &[u8],
    wire_len: usize,
    mut at: usize,
    mut next: Next,
    mut tags: Tags,
    piece: &mut Option<Piece>,
) -> Result<Decoded, Other> {
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
            Next::EtherType(MPLS | 0x8848) => {
                // Labels are left out: the two directions of one connection have different ones.
                let label = be32(rest, 0).ok_or(Other::Malformed)?;
                at += 4;
                if label & 0x100 != 0 {
                    let (skip, inner) = labelled(bytes.get(at..).ok_or(Other::Malformed)?)?;
                    at += skip;
                    next = inner;
                }
            }
            Next::EtherType(0x0800 | 0x86dd) => next = Next::Ip,
            Next::EtherType(PPPOE_SESSION) => {
                // Six bytes, then the PPP protocol.
                next = ppp(be16(rest, 6).ok_or(Other::Malformed)?)?;
                at += 8;
            }
            Next::EtherType(0x880b) => {
                let (skip, inner) = ppp_frame(rest)?;
                at += skip;
                next = inner;
            }
            // 802.3: up to 1,500 it is a length, and LLC follows; Linux's cooked captures have 4 for that.
            Next::EtherType(0..=1_500) | Next::Llc => {
                let (skip, inner) = llc(rest)?;
                at += skip;
                next = inner;
            }
            Next::EtherType(0x6558) => next = Next::Ethernet,
            Next::EtherType(0x894f) | Next::Nsh => {
                let (skip, inner) = nsh(rest)?;
                at += skip;
                next = inner;
            }
            Next::EtherType(_) | Next::Subframes => return Err(Other::NotIp),
            Next::Ip => {
                let layer = ip::parse(rest, end.saturating_sub(at)).ok_or(Other::Malformed)?;
                at += layer.at;
                end = at + layer.len;
                if let Some(part) = layer.part {
                    *piece = Some(Piece::new(&layer, part, at, tags));
                    return Err(Other::Fragment);
                }
                let rest = bytes.get(at..).ok_or(Other::Malformed)?;
                let inner = match carried(rest, layer.len, layer.protocol, layer.facts, tags)? {
                    Carried::Tcp(segment) => {
                        return Ok(Decoded::Tcp(Segment { payload_at: moved(segment.payload_at, at), ..segment }));
                    }
                    Carried::Udp(datagram) => {
                        return Ok(Decoded::Udp(Datagram { payload_at: moved(datagram.payload_at, at), ..datagram }));
                    }
                    Carried::TooBig(error) => return Ok(Decoded::TooBig(error)),
                    Carried::Inner(inner) => inner,
                };
                tags.push(inner.tag);
                at += inner.at;
                next = inner.next;
            }
        }
    }
    Err(Other::Malformed)
}

/// Finds the segment in what IP carries, `len` bytes on the wire of which `bytes` are the first.
pub(crate) fn decapsulate_ip_payload(
    bytes: &[u8],
    len: usize,
    protocol: u8,
    facts: IpFacts,
    mut tags: Tags,
) -> Result<Segment, Other> {
    match carried(bytes, len, protocol, facts, tags)? {
        Carried::Tcp(segment) => Ok(Segment { payload_at: 0, ..segment }),
        // No error is so long that it comes in fragments, and no datagram that is looked at.
        Carried::TooBig(_) | Carried::Udp(_) => Err(Other::NotTcp),
        Carried::Inner(inner) => {
            tags.push(inner.tag);
            match decapsulate(bytes, len, inner.at, inner.next, tags, &mut None)? {
                Decoded::Tcp(segment) => Ok(Segment { payload_at: 0, ..segment }),
                _ => Err(Other::NotTcp),
            }
        }
    }
}

/// A place in what begins at `at`, as a place in the packet.
fn moved(place: u16, at: usize) -> u16 {
    u16::try_from(at + usize::from(place)).unwrap_or(0)
}

/// What IP carries.
enum Carried {
    Tcp(Segment),
    Udp(Datagram),
    TooBig(TooBig),
    Inner(tunnel::Inner),
}

fn carried(bytes: &[u8], len: usize, protocol: u8, facts: IpFacts, tags: Tags) -> Result<Carried, Other> {
    let (mut protocol, mut at) = (protocol, 0);
    // Authentication, and the headers of IPv6 behind that of a fragment; of these there are a few at most.
    for _ in 0..MOST_EXTENSIONS {
        let is_other = matches!(protocol, TCP | UDP | ICMP_V6 | GRE | MPLS_IN_IP | 4 | 41)
            || (facts.source.is_ipv4() && protocol != 51);
        let Some((next, length)) = bytes.get(at..).filter(|_| !is_other).and_then(|rest| ip::extension(protocol, rest))
        else {
            break;
        };
        (protocol, at) = (next, at + length);
    }
    let rest = bytes.get(at..).ok_or(Other::Malformed)?;
    let inner = match protocol {
        TCP => {
            let tcp = TcpHeader::parse(rest).ok_or(Other::Malformed)?;
            let payload = len.checked_sub(at + usize::from(tcp.header_len)).ok_or(Other::Malformed)?;
            let payload_len = u32::try_from(payload).map_err(|_| Other::Malformed)?;
            let payload_at = u16::try_from(at + usize::from(tcp.header_len)).unwrap_or(0);
            return Ok(Carried::Tcp(Segment { ip: facts, tcp, tags, payload_len, payload_at }));
        }
        4 | 41 => tunnel::Inner { at: 0, next: Next::Ip, tag: Tag::IpInIp },
        GRE => tunnel::gre(rest).ok_or(Other::NotTcp)?,
        UDP => match tunnel::overlay(rest) {
            Some(inner) => inner,
            None => return datagram(rest, len, at, facts).map(Carried::Udp).ok_or(Other::NotTcp),
        },
        // RFC 4023 §2.
        MPLS_IN_IP => tunnel::Inner { at: 0, next: Next::EtherType(MPLS), tag: Tag::MplsInIp },
        ICMP | ICMP_V6 => {
            let error = icmp::too_big(rest, protocol == ICMP_V6, tags).ok_or(Other::NotTcp)?;
            return Ok(Carried::TooBig(error));
        }
        _ => return Err(Other::NotTcp),
    };
    Ok(Carried::Inner(tunnel::Inner { at: at + inner.at, ..inner }))
}

/// The datagram in a payload of IP of `len` bytes, which begins at `at` with `bytes` (RFC 768).
fn datagram(bytes: &[u8], len: usize, at: usize, ip: IpFacts) -> Option<Datagram> {
    const HEADER: usize = 8;
    Some(Datagram {
        ip,
        source_port: be16(bytes, 0)?,
        destination_port: be16(bytes, 2)?,
        payload_len: u32::try_from(len.checked_sub(at + HEADER)?).ok()?,
        payload_at: moved(HEADER as u16, at),
    })
}
