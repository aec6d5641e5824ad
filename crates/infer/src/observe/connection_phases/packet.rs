//! What of a packet counts for the phases of its connection and for how that ends.

use thalweg_units::SeqNum;
use thalweg_wire::Flags;

/// A packet of either side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PhasePacket {
    /// Nanoseconds since the connection's first packet.
    pub(crate) now: u64,
    pub(crate) number: u64,
    /// 0 the client, 1 the server.
    pub(crate) side: usize,
    pub(crate) flags: Flags,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) payload_len: u32,
    pub(crate) ttl: u8,
    pub(crate) ip_id: Option<u16>,
    /// The time before it belongs to a TLS handshake.
    pub(crate) is_tls_handshake: bool,
}
