//! A packet of a capture file, and the interface it was captured on.

use crate::link::LinkType;
use thalweg_units::Timestamp;

/// Something packets were captured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name, where the file gives one.
    pub name: Option<String>,
    /// What its packets begin with.
    pub link: LinkType,
    /// Most bytes kept of a packet; 0 when not limited.
    pub snaplen: u32,
}

/// One captured packet.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Its number in the file, from 1 as Wireshark counts.
    pub number: u64,
    /// When it was seen.
    pub at: Timestamp,
    /// Index into [`crate::Capture::interfaces`]; what goes on in a further section keeps its first.
    pub interface: u32,
    /// What `bytes` begin with.
    pub link: LinkType,
    /// Bytes it had on the wire.
    pub original_len: u32,
    /// Packets that the capturing program says it lost on this interface since the one before.
    pub dropped_before: u32,
    /// What the file keeps of it.
    pub bytes: &'a [u8],
}

/// Where a record was found in the buffer's last consumed bytes; the borrow of the packet itself is made afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) at: Timestamp,
    pub(crate) interface: u32,
    pub(crate) original_len: u32,
    pub(crate) dropped_before: u32,
    /// Bytes consumed after the packet's last byte.
    pub(crate) after: usize,
    pub(crate) len: usize,
}
