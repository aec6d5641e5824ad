//! The fragments of IP packets: their payload is counted whole, though the first alone has the TCP header.
//!
//! Nothing waits for anything: each fragment is told as a segment of its own as soon as the first one is known. What is kept of one
//! packet are its first fragment's headers and the places of its fragments, of the last few hundred packets in parts.

use crate::frame::{Decoded, Other, Segment, Tags};
use crate::ip::{Layer, Part};
use crate::{Flags, Packet};
use std::collections::VecDeque;
use std::net::IpAddr;
use units::Timestamp;

/// Packets in parts that are known at a time; the oldest is forgotten for the next.
const MOST_PACKETS: usize = 256;
/// Fragments of one packet; the largest IP packet has 45 at Ethernet's length.
const MOST_PARTS: usize = 64;
/// Seconds after which an identification may be used anew: Linux's `ip_frag_time` and `IP6_FRAG_TIMEOUT`.
const LIFE_S: f64 = 30.0;

/// A fragment, as far as the IP header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    key: Key,
    part: Part,
    len: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    id: u32,
    tags: Tags,
}

impl Piece {
    /// `None` when it carries no TCP.
    pub(crate) fn new(layer: &Layer, part: Part, tags: Tags) -> Option<Self> {
        let key = Key { source: layer.facts.source, destination: layer.facts.destination, id: part.id, tags };
        let len = u32::try_from(layer.len).ok()?;
        (layer.protocol == 6).then_some(Self { key, part, len })
    }
}

#[derive(Debug)]
struct Known {
    interface: u32,
    key: Key,
    at: Timestamp,
    /// The first fragment's segment.
    first: Option<Segment>,
    /// Offset and length of each fragment.
    parts: Vec<(u32, u32)>,
}

/// Packets whose fragments are arriving.
#[derive(Debug, Default)]
pub(crate) struct Fragments(VecDeque<Known>);

impl Fragments {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes a fragment in; `result` is what stands in it, the segment if it is the first.
    pub(crate) fn handle(
        &mut self,
        packet: &Packet<'_>,
        piece: Piece,
        result: Result<Segment, Other>,
        mut each: impl FnMut(Decoded),
    ) {
        let Piece { key, part, len } = piece;
        let is_first = part.offset == 0;
        let is_same = |known: &Known| {
            known.key == key && known.interface == packet.interface && packet.at.seconds_since(known.at).abs() < LIFE_S
        };
        let index = match self.0.iter().rposition(is_same) {
            Some(index) => index,
            None => {
                if self.0.len() >= MOST_PACKETS {
                    self.0.pop_front();
                }
                let known = Known { interface: packet.interface, key, at: packet.at, first: None, parts: Vec::new() };
                self.0.push_back(known);
                self.0.len() - 1
            }
        };
        let known = &mut self.0[index];
        let is_copy = known.parts.contains(&(part.offset, len));
        if !is_copy && known.parts.len() < MOST_PARTS {
            known.parts.push((part.offset, len));
        }
        match (result, known.first) {
            (Ok(segment), _) => {
                known.first = Some(segment);
                each(Decoded::Tcp(segment));
                if !is_copy && is_first {
                    // Those that came before it.
                    for &(offset, len) in known.parts.iter().filter(|(offset, _)| *offset > 0) {
                        each(Decoded::Tcp(behind(&segment, offset, len)));
                    }
                }
            }
            (Err(Other::Fragment), Some(first)) if !is_copy && part.offset >= u32::from(first.tcp.header_len) => {
                each(Decoded::Tcp(behind(&first, part.offset, len)));
            }
            // Told when the first one arrives.
            (Err(other), _) => each(Decoded::Other(other)),
        }
    }
}

/// What a later fragment carries, as a segment.
fn behind(first: &Segment, offset: u32, len: u32) -> Segment {
    let mut segment = *first;
    let syn = u32::from(first.tcp.flags.has(Flags::SYN));
    segment.tcp.seq = first.tcp.seq.add(syn + offset.saturating_sub(u32::from(first.tcp.header_len)));
    segment.tcp.flags = Flags(first.tcp.flags.0 & Flags::ACK);
    segment.payload_len = len;
    segment
}

#[cfg(test)]
mod tests;
