//! What is taken in: a connection's packets, and of them what a sender's analysis asks for, data that left and acknowledgements that arrived.

use std::net::IpAddr;
use units::{SeqNum, Timestamp};
use wire::{Segment, TcpHeader};

/// An end of a connection.
pub(crate) type Endpoint = (IpAddr, u16);

/// A packet of a connection, without its addresses: all of the connection's have the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) at: Timestamp,
    /// Its number in the file.
    pub(crate) number: u64,
    pub(crate) tcp: TcpHeader,
    pub(crate) payload_len: u32,
    /// Of its IP header.
    pub(crate) id: Option<u16>,
    pub(crate) ttl: u8,
    pub(crate) ecn: u8,
    side: u8,
}

impl Packet {
    /// A segment that `side` sent, 0 the client or 1 the server.
    #[inline]
    pub(crate) const fn new(side: usize, at: Timestamp, number: u64, segment: &Segment) -> Self {
        let Segment { ip, tcp, payload_len, .. } = segment;
        Self { at, number, tcp: *tcp, payload_len: *payload_len, id: ip.id, ttl: ip.ttl, ecn: ip.ecn, side: side as u8 }
    }

    /// Which side sent it: 0 the client, 1 the server.
    pub(crate) const fn side(&self) -> usize {
        self.side as usize
    }
}

/// A packet that takes sequence numbers: one with payload, or with the FIN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data {
    /// Nanoseconds since the flow's first packet.
    pub(crate) now: u64,
    pub(crate) number: u64,
    pub(crate) seq: SeqNum,
    /// Of its payload.
    pub(crate) len: u32,
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
    pub(crate) sack: wire::SackBlocks,
    pub(crate) tsval: Option<u32>,
    pub(crate) tsecr: Option<u32>,
    /// Its own number.
    pub(crate) seq: SeqNum,
    /// It carries no data, SYN, FIN or RST.
    pub(crate) pure: bool,
    pub(crate) is_syn: bool,
    pub(crate) ecn_echo: bool,
}
