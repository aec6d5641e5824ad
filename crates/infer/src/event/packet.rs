//! A connection's packets, as they were captured.

use std::net::IpAddr;
use std::sync::Arc;
use thalweg_units::{SeqNum, Timestamp};
use thalweg_wire::{Flags, Message, Options, Payload, SackBlocks, Segment, TlsRecords};

/// An end of a connection.
pub(crate) type Endpoint = (IpAddr, u16);

/// The name lookup that a connection waited for; times are in nanoseconds since the epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NameLookup {
    pub(crate) name: String,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    /// Queries sent again.
    pub(crate) again: u32,
}

/// What a packet's payload begins with, and what came before its connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct PayloadFront {
    pub(crate) records: TlsRecords,
    pub(crate) message: Option<Arc<Message>>,
    /// Of the SYN of a connection that waited for one.
    pub(crate) lookup: Option<Arc<NameLookup>>,
}

impl PayloadFront {
    pub(crate) fn new(payload: Payload) -> Self {
        Self { records: payload.records, message: payload.message.map(Arc::new), lookup: None }
    }
}

/// What few packets have.
#[derive(Debug, Default)]
struct Rare {
    /// All options, where there are any but timestamps.
    options: Option<Options>,
    message: Option<Arc<Message>>,
    lookup: Option<Arc<NameLookup>>,
}

/// A packet of a connection, without its addresses: all of the connection's have the same. It takes one line of the cache.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Packet {
    pub(crate) at: Timestamp,
    /// Its number in the file.
    pub(crate) number: u64,
    rare: Option<Box<Rare>>,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    pub(crate) payload_len: u32,
    /// TSval and TSecr.
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) window: u16,
    pub(crate) checksum: u16,
    /// Identification, time to live and ECN field of its IP header.
    pub(crate) id: Option<u16>,
    pub(crate) ttl: u8,
    pub(crate) ecn: u8,
    pub(crate) flags: Flags,
    pub(crate) records: TlsRecords,
    side: u8,
}

/// The longest alert: a header, an initialisation vector, two bytes, a tag of 48 bytes and padding to 16 (RFC 5246 §6.2.3.2).
const ALERT_MAX: u32 = 5 + 16 + 64;

const _: () = assert!(size_of::<Packet>() == 64, "a packet takes one line of the cache");

impl Packet {
    /// A segment that `side` sent, 0 the client or 1 the server.
    #[inline]
    pub(crate) fn new(side: usize, at: Timestamp, number: u64, segment: &Segment, payload: &PayloadFront) -> Self {
        let Segment { ip, tcp, payload_len, .. } = segment;
        let options = (!tcp.options.are_plain()).then_some(tcp.options);
        Self {
            at,
            number,
            rare: if options.is_none() && payload.message.is_none() && payload.lookup.is_none() {
                None
            } else {
                let PayloadFront { message, lookup, .. } = payload.clone();
                Some(Box::new(Rare { options, message, lookup }))
            },
            seq: tcp.seq,
            ack: tcp.ack,
            payload_len: *payload_len,
            timestamps: tcp.options.timestamps,
            window: tcp.window,
            checksum: tcp.checksum,
            id: ip.id,
            ttl: ip.ttl,
            ecn: ip.ecn,
            flags: tcp.flags,
            records: payload.records,
            side: side as u8,
        }
    }

    /// Some word of it. What this and the two below give is of no use; that they read brings it into the cache.
    pub(crate) const fn word(&self) -> u64 {
        self.number
    }

    /// Some word of its options.
    pub(crate) fn rare_word(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| u64::from(rare.options.is_some()) ^ u64::from(rare.message.is_some()))
    }

    /// Some word of its message.
    pub(crate) fn message_word(&self) -> u64 {
        self.message().map_or(0, |message| u64::from(matches!(**message, Message::Responses(_))))
    }

    /// Frees what it holds in memory of its own.
    pub(crate) fn release(&mut self) {
        self.rare = None;
    }

    /// Which side sent it: 0 the client, 1 the server.
    pub(crate) const fn side(&self) -> usize {
        self.side as usize
    }

    /// Whether it looks as a segment that `side` sent does at every tap.
    pub(crate) fn is_of(&self, side: usize, segment: &Segment) -> bool {
        let Segment { tcp, payload_len, .. } = segment;
        (self.side(), self.seq, self.ack, self.payload_len, self.flags)
            == (side, tcp.seq, tcp.ack, *payload_len, tcp.flags)
    }

    /// Whether all it carries is an alert of TLS, which announces the end: no data of a program (RFC 8446 §6.1).
    pub(crate) const fn is_alert(&self) -> bool {
        self.records.0 == TlsRecords::ALERT && self.payload_len <= ALERT_MAX
    }

    /// Its options; timestamps are in [`Self::timestamps`] alone where it has no others.
    pub(crate) fn options(&self) -> Option<&Options> {
        self.rare.as_ref()?.options.as_ref()
    }

    /// The name lookup that its connection waited for.
    pub(crate) fn lookup(&self) -> Option<&Arc<NameLookup>> {
        self.rare.as_ref()?.lookup.as_ref()
    }

    /// The message that its payload begins with or completes.
    pub(crate) fn message(&self) -> Option<&Arc<Message>> {
        self.rare.as_ref()?.message.as_ref()
    }

    pub(crate) fn sack(&self) -> SackBlocks {
        self.options().map_or_else(SackBlocks::default, |options| options.sack)
    }
}
