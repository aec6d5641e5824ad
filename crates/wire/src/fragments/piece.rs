//! One fragment of an IP packet.

use crate::ip::{IpFacts, Layer, Part};
use crate::segment::Tags;
use std::net::IpAddr;

/// A fragment, by its IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(super) key: Key,
    pub(super) part: Part,
    pub(crate) facts: IpFacts,
    pub(crate) protocol: u8,
    /// Where in the frame what it carries begins.
    pub(crate) at: usize,
    pub(crate) len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) id: u32,
    /// A part of the key over IPv4 alone (RFC 791 §3.2); over IPv6 the first fragment's counts.
    pub(super) protocol: u8,
    pub(super) tags: Tags,
}

impl Piece {
    /// The fragment whose IP header is `layer`; what it carries is at `at` in the frame.
    pub(crate) fn new(layer: &Layer, part: Part, at: usize, tags: Tags) -> Self {
        let Layer { facts, protocol, len, .. } = *layer;
        let (source, destination) = (facts.source, facts.destination);
        let in_key = if source.is_ipv4() { protocol } else { 0 };
        Self { key: Key { source, destination, id: part.id, protocol: in_key, tags }, part, facts, protocol, at, len }
    }

    pub(crate) const fn is_first(&self) -> bool {
        self.part.offset == 0
    }

    pub(crate) const fn tags(&self) -> Tags {
        self.key.tags
    }
}
