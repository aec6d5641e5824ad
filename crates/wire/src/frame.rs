//! From a captured frame to the TCP segment in it, through VLANs, MPLS and tunnels.

use crate::begin::{Next, PPPOE_SESSION, begin, llc, nsh, ppp, ppp_frame};
use crate::bytes::{be16, be32};
use crate::filter::Filter;
use crate::fragments::{Fragments, Piece};
use crate::plain::plain;
use crate::{IpFacts, LinkType, Packet, TcpHeader, ip, tunnel};

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
    /// GENEVE with its network identifier.
    Geneve(u32),
    /// ERSPAN with its session, 0 for type I, which has none.
    Erspan(u16),
}

/// The virtual networks around a segment, outermost first; those past the fourth are not told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tags([Option<Tag>; 4]);

impl Tags {
    /// The tags, outermost first.
    pub fn iter(&self) -> impl Iterator<Item = Tag> + '_ {
        self.0.iter().flatten().copied()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
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
    /// An 802.11 frame that is encrypted.
    Encrypted,
    /// A fragment of IP, or of 802.11, that is not its first, and cannot be joined to what it belongs to.
    Fragment,
    /// Headers that are cut or contradict themselves.
    Malformed,
    /// TCP that the decoder's filter does not want.
    Unwanted,
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
///
/// It knows nothing of the packets before: a later fragment of IP is [`Other::Fragment`], and of several segments in one 802.11
/// frame the first is found. [`Decoder`] does better.
pub fn decode(link: LinkType, bytes: &[u8], original_len: u32) -> Decoded {
    let wire_len = (original_len as usize).max(bytes.len());
    let result = begin(link, bytes).and_then(|(at, next)| match next {
        Next::Subframes => {
            let (from, to) = subframe(bytes, at).ok_or(Other::Malformed)?;
            walk(&bytes[..to], to, from, Next::Llc, &mut None)
        }
        next => walk(bytes, wire_len, at, next, &mut None),
    });
    decoded(result)
}

fn decoded(result: Result<Segment, Other>) -> Decoded {
    match result {
        Ok(segment) => Decoded::Tcp(segment),
        Err(other) => Decoded::Other(other),
    }
}

/// Finds the TCP segments of a capture's packets, one packet after the other.
#[derive(Debug, Default)]
pub struct Decoder {
    fragments: Fragments,
    filter: Option<Filter>,
}

impl Decoder {
    /// A decoder that tells only the segments that `filter` wants, if there is one.
    pub fn with_filter(filter: Option<Filter>) -> Self {
        Self { fragments: Fragments::default(), filter }
    }

    /// Tells `each` what the packet is: nearly always one call, several for an 802.11 frame that joins several.
    ///
    /// A later fragment of IP is told as a segment of its own, with the TCP header of the first fragment and the sequence number of
    /// its first byte, whether it comes before or after; so the payload is counted whole.
    #[inline]
    pub fn decode(&mut self, packet: &Packet<'_>, mut each: impl FnMut(Decoded)) {
        let bytes = packet.bytes;
        let wire_len = (packet.original_len as usize).max(bytes.len());
        let filter = self.filter.as_ref();
        if packet.link == LinkType::ETHERNET
            && let Some(segment) = plain(bytes)
        {
            let is_wanted = filter.is_none_or(|filter| filter.matches(&segment));
            return each(if is_wanted { Decoded::Tcp(segment) } else { Decoded::Other(Other::Unwanted) });
        }
        let mut each = |decoded| match (&decoded, filter) {
            (Decoded::Tcp(segment), Some(filter)) if !filter.matches(segment) => each(Decoded::Other(Other::Unwanted)),
            _ => each(decoded),
        };
        let mut piece = None;
        let result = match begin(packet.link, bytes) {
            Ok((at, Next::Subframes)) => return aggregate(bytes, at, each),
            Ok((at, next)) => walk(bytes, wire_len, at, next, &mut piece),
            Err(other) => Err(other),
        };
        match piece {
            None => each(decoded(result)),
            Some(piece) => self.fragments.handle(packet, piece, result, each),
        }
    }
}

#[cfg(test)]
impl Decoder {
    pub(crate) fn fragments_known(&self) -> usize {
        self.fragments.len()
    }
}

/// The subframes of an 802.11 A-MSDU.
fn aggregate(bytes: &[u8], mut at: usize, mut each: impl FnMut(Decoded)) {
    let mut found = 0;
    while let Some((from, to)) = subframe(bytes, at) {
        each(decoded(walk(&bytes[..to], to, from, Next::Llc, &mut None)));
        found += 1;
        at += (to - at).next_multiple_of(4);
    }
    if found == 0 {
        each(Decoded::Other(Other::Malformed));
    }
}

/// Where the subframe at `at` has its payload: two addresses and a length before it. `None` when there is none, or it is cut.
fn subframe(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    const HEADER: usize = 14;
    let len = usize::from(be16(bytes, at + 12)?);
    let end = at + HEADER + len;
    (len > 0 && end <= bytes.len()).then_some((at + HEADER, end))
}

fn walk(
    bytes: &[u8],
    wire_len: usize,
    mut at: usize,
    mut next: Next,
    piece: &mut Option<Piece>,
) -> Result<Segment, Other> {
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
                    *piece = Piece::new(&layer, part, tags);
                    if part.offset > 0 {
                        return Err(Other::Fragment);
                    }
                }
                let rest = bytes.get(at..).ok_or(Other::Malformed)?;
                let inner = match layer.protocol {
                    TCP => {
                        let tcp = TcpHeader::parse(rest).ok_or(Other::Malformed)?;
                        let payload = layer.len.checked_sub(usize::from(tcp.header_len)).ok_or(Other::Malformed)?;
                        let payload_len = u32::try_from(payload).map_err(|_| Other::Malformed)?;
                        return Ok(Segment { ip: layer.facts, tcp, tags, payload_len });
                    }
                    4 | 41 => tunnel::Inner { at: 0, next: Next::Ip, tag: Tag::IpInIp },
                    GRE => tunnel::gre(rest).ok_or(Other::NotTcp)?,
                    UDP => tunnel::overlay(rest).ok_or(Other::NotTcp)?,
                    _ => return Err(Other::NotTcp),
                };
                tags.push(inner.tag);
                at += inner.at;
                next = inner.next;
            }
        }
    }
    Err(Other::Malformed)
}

#[cfg(test)]
mod tests;
