//! Decodes captured packets: the TCP segments in each, or why there is none.

use crate::application::DNS_PORT;
use crate::decap::{decapsulate, decapsulate_ip_payload, subframe};
use crate::fast_path::plain_tcp;
use crate::filter::Filter;
use crate::fragments::Fragments;
use crate::link::LinkType;
use crate::link_header::skip_link_header;
use crate::next_header::Next;
use crate::packet::Packet;
use crate::segment::{Datagram, Decoded, Late, Other, Segment, Tags, TooBig};

/// Finds the TCP segment in a packet that had `original_len` bytes on the wire and begins as `link` says.
///
/// It knows nothing of the packets before: a later fragment of IP is [`Other::Fragment`], of a first one the segment has what that
/// carries, and of several segments in one 802.11 frame the first is found. [`Decoder`] does better.
pub fn decode(link: LinkType, bytes: &[u8], original_len: u32) -> Decoded {
    let wire_len = (original_len as usize).max(bytes.len());
    let mut piece = None;
    let result = skip_link_header(link, bytes).and_then(|(at, next)| match next {
        Next::Subframes => {
            let (from, to) = subframe(bytes, at).ok_or(Other::Malformed)?;
            decapsulate(&bytes[..to], to, from, Next::Llc, Tags::default(), &mut piece)
        }
        next => decapsulate(bytes, wire_len, at, next, Tags::default(), &mut piece),
    });
    decoded(match piece {
        Some(piece) if piece.is_first() => decapsulate_ip_payload(
            bytes.get(piece.at..).unwrap_or_default(),
            piece.len,
            piece.protocol,
            piece.facts,
            piece.tags(),
        )
        .map(Decoded::Tcp),
        _ => result,
    })
}

fn decoded(result: Result<Decoded, Other>) -> Decoded {
    result.unwrap_or_else(Decoded::Other)
}

/// Finds the TCP segments of a capture's packets, one packet after the other.
#[derive(Debug, Default)]
pub struct Decoder {
    fragments: Fragments,
    filter: Option<Filter>,
    /// There is no filter, and no fragment waits: a plain segment is reported as it is.
    is_free: bool,
}

impl Decoder {
    /// A decoder that reports only the segments that match `filter`, if there is one.
    pub fn with_filter(filter: Option<Filter>) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Calls `each` with what the packet is: once for nearly all packets, several times for an 802.11 frame that aggregates several.
    ///
    /// A fragment of IP is not reported until its packet is whole, or until the rest is no longer waited for: then the known part is
    /// reported as [`Decoded::Late`].
    #[inline]
    pub fn decode(&mut self, packet: &Packet<'_>, mut each: impl FnMut(Decoded)) {
        let segment = if packet.link == LinkType::ETHERNET { plain_tcp(packet.bytes) } else { None };
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

/// What is reported if a filter selects segments.
fn wanted(decoded: Decoded, filter: Option<&Filter>) -> Decoded {
    match (&decoded, filter) {
        (
            Decoded::Tcp(segment) | Decoded::Late(Late { segment, .. }) | Decoded::TooBig(TooBig { segment, .. }),
            Some(filter),
        ) if !filter.matches(segment) => Decoded::Other(Other::Unwanted),
        (Decoded::Udp(datagram), Some(filter)) if !is_wanted(datagram, filter) => Decoded::Other(Other::NotTcp),
        _ => decoded,
    }
}

/// Whether a filter wants a datagram, as if it were TCP. Queries of names belong to whatever connection follows them.
fn is_wanted(datagram: &Datagram, filter: &Filter) -> bool {
    let ip = &datagram.ip;
    [datagram.source_port, datagram.destination_port].contains(&DNS_PORT)
        || filter.matches_connection((ip.source, datagram.source_port), (ip.destination, datagram.destination_port))
}

/// Decodes a packet of any kind.
fn any_kind(packet: &Packet<'_>, fragments: &mut Fragments, mut each: impl FnMut(Decoded)) {
    let bytes = packet.bytes;
    let wire_len = (packet.original_len as usize).max(bytes.len());
    let mut tell = |bytes: &[u8], wire_len: usize, at: usize, next: Next| {
        let mut piece = None;
        let result = decapsulate(bytes, wire_len, at, next, Tags::default(), &mut piece);
        match piece {
            None => each(decoded(result)),
            Some(piece) => fragments.handle(packet, &piece, bytes.get(piece.at..).unwrap_or_default(), &mut each),
        }
    };
    match skip_link_header(packet.link, bytes) {
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
