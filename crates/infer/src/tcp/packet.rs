//! What of its packets a sender's analysis asks for: data that left, and acknowledgements that arrived.

use thalweg_units::SeqNum;
use thalweg_wire::SackBlocks;

/// A packet that takes sequence numbers: one with payload, or with the FIN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    /// Nanoseconds since the flow's first packet.
    pub(crate) now: u64,
    pub(crate) number: u64,
    pub(crate) seq: SeqNum,
    /// Of its payload.
    pub(crate) len: u32,
    /// That is an alert of TLS, and no data.
    pub(crate) is_alert: bool,
    /// It ends what a program wrote.
    pub(crate) ends_write: bool,
    /// It is the last one: a FIN takes a sequence number after the payload.
    pub(crate) fin: bool,
    pub(crate) tsval: Option<u32>,
    pub(crate) tsecr: Option<u32>,
    pub(crate) ip_id: Option<u16>,
}

/// What a packet of the receiver tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack {
    /// When it reaches the sender, in nanoseconds since the flow's first packet.
    pub(crate) now: u64,
    pub(crate) number: u64,
    pub(crate) ack: SeqNum,
    /// In bytes where the scale is known.
    pub(crate) window: u64,
    /// The window field, which the scale makes that of.
    pub(crate) window_field: u16,
    pub(crate) sack: SackBlocks,
    pub(crate) tsval: Option<u32>,
    pub(crate) tsecr: Option<u32>,
    /// Its own number, and the length of its payload.
    pub(crate) seq: SeqNum,
    pub(crate) payload: u32,
    /// It carries no data, SYN, FIN or RST.
    pub(crate) pure: bool,
    /// Its number was used before: it asks for an answer (RFC 9293 §3.8.4).
    pub(crate) asks: bool,
    pub(crate) is_syn: bool,
    pub(crate) ecn_echo: bool,
}
