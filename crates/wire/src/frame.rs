//! What a captured packet is: the TCP segments in it, or why there is none.

use crate::begin::{Next, begin};
use crate::filter::Filter;
use crate::fragments::Fragments;
use crate::plain::plain;
use crate::walk::{subframe, walk, whole};
use crate::{IpFacts, LinkType, Packet, TcpHeader};
use thalweg_units::Timestamp;

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
    /// MPLS in IP or in UDP (RFC 4023, RFC 7510).
    MplsInIp,
    /// GTP-U; its endpoints are numbered for each direction, so they are not told.
    Gtp,
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

    pub(crate) fn push(&mut self, tag: Tag) {
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
    UnknownLink(LinkType),
    /// Not IP: ARP, LLDP and the like.
    NotIp,
    /// IP with another protocol.
    NotTcp,
    /// An 802.11 frame that is encrypted.
    Encrypted,
    /// A fragment of IP that is not its first, and cannot be joined to what it belongs to.
    Fragment,
    /// A fragment of an 802.11 frame that is not its first: the IP header in that one has the whole packet's length.
    FrameRest,
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
    /// TCP of packets before, in fragments, whose rest is not waited for any longer.
    Late(Late),
    /// Something else.
    Other(Other),
}

/// As much as is known of a segment whose packet's last fragments did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// What is known, from its front on.
    pub segment: Segment,
    /// When the latest of its fragments was seen.
    pub at: Timestamp,
    /// That fragment's number in the file.
    pub number: u64,
    /// And its interface, an index into [`crate::Capture::interfaces`].
    pub interface: u32,
}

/// Finds the TCP segment in a packet that had `original_len` bytes on the wire and begins as `link` says.
///
/// It knows nothing of the packets before: a later fragment of IP is [`Other::Fragment`], of a first one the segment has what that
/// carries, and of several segments in one 802.11 frame the first is found. [`Decoder`] does better.
pub fn decode(link: LinkType, bytes: &[u8], original_len: u32) -> Decoded {
    let wire_len = (original_len as usize).max(bytes.len());
    let mut piece = None;
    let result = begin(link, bytes).and_then(|(at, next)| match next {
        Next::Subframes => {
            let (from, to) = subframe(bytes, at).ok_or(Other::Malformed)?;
            walk(&bytes[..to], to, from, Next::Llc, Tags::default(), &mut piece)
        }
        next => walk(bytes, wire_len, at, next, Tags::default(), &mut piece),
    });
    decoded(match piece {
        Some(piece) if piece.is_first() => {
            whole(bytes.get(piece.at..).unwrap_or_default(), piece.len, piece.protocol, piece.facts, piece.tags())
        }
        _ => result,
    })
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
    /// There is no filter, and no fragment waits: a plain segment is told as it is.
    is_free: bool,
}

impl Decoder {
    /// A decoder that tells only the segments that `filter` wants, if there is one.
    pub fn with_filter(filter: Option<Filter>) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Tells `each` what the packet is: nearly always one call, several for an 802.11 frame that joins several.
    ///
    /// Nothing is told of a fragment of IP until its packet is whole, or the rest is not waited for any longer: then what is known
    /// is told as [`Decoded::Late`].
    #[inline]
    pub fn decode(&mut self, packet: &Packet<'_>, mut each: impl FnMut(Decoded)) {
        let segment = if packet.link == LinkType::ETHERNET { plain(packet.bytes) } else { None };
        match segment {
            Some(segment) if self.is_free => each(Decoded::Tcp(segment)),
            segment => self.decode_any(packet, segment, each),
        }
    }

    fn decode_any(&mut self, packet: &Packet<'_>, segment: Option<Segment>, mut each: impl FnMut(Decoded)) {
        let filter = self.filter.as_ref();
        let mut each = |decoded| each(wanted(decoded, filter));
        if self.fragments.may_be_due(packet.at) {
            self.fragments.tell_due(packet.at, &mut each);
        }
        match segment {
            Some(segment) => each(Decoded::Tcp(segment)),
            None => any_kind(packet, &mut self.fragments, each),
        }
        self.is_free = self.filter.is_none() && !self.fragments.are_waiting();
    }

    /// Tells `each` what is known of packets whose last fragments did not come; to be called when the capture is over.
    pub fn finish(&mut self, mut each: impl FnMut(Decoded)) {
        let filter = self.filter.as_ref();
        self.fragments.finish(|decoded| each(wanted(decoded, filter)));
    }
}

/// What is told where a filter may want only some segments.
fn wanted(decoded: Decoded, filter: Option<&Filter>) -> Decoded {
    match (&decoded, filter) {
        (Decoded::Tcp(segment) | Decoded::Late(Late { segment, .. }), Some(filter)) if !filter.matches(segment) => {
            Decoded::Other(Other::Unwanted)
        }
        _ => decoded,
    }
}

/// Decodes a packet of any kind.
fn any_kind(packet: &Packet<'_>, fragments: &mut Fragments, mut each: impl FnMut(Decoded)) {
    let bytes = packet.bytes;
    let wire_len = (packet.original_len as usize).max(bytes.len());
    let mut tell = |bytes: &[u8], wire_len: usize, at: usize, next: Next| {
        let mut piece = None;
        let result = walk(bytes, wire_len, at, next, Tags::default(), &mut piece);
        match piece {
            None => each(decoded(result)),
            Some(piece) => fragments.handle(packet, &piece, bytes.get(piece.at..).unwrap_or_default(), &mut each),
        }
    };
    match begin(packet.link, bytes) {
        Ok((at, Next::Subframes)) => {
            let mut at = at;
            let mut found = 0;
            while let Some((from, to)) = subframe(bytes, at) {
                tell(&bytes[..to], to, from, Next::Llc);
                found += 1;
                at += (to - at).next_multiple_of(4);
            }
            if found == 0 {
                each(Decoded::Other(Other::Malformed));
            }
        }
        Ok((at, next)) => tell(bytes, wire_len, at, next),
        Err(other) => each(Decoded::Other(other)),
    }
}

#[cfg(test)]
impl Decoder {
    pub(crate) fn fragments_known(&self) -> usize {
        self.fragments.len()
    }
}

#[cfg(test)]
mod tests;
