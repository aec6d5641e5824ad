//! The whole life of a connection: where its time went, and what was sent again in both directions.

use crate::cause::Code;
use crate::remedy::Side;
use crate::way::Way;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The life of a connection, from its first packet to its last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Life {
    /// Where the time went.
    pub phases: LifePhases,
    /// What was sent again, both ways.
    pub resent: Resent,
    /// Shares of the phases; they add up to 1.
    pub shares: LifeShares,
    /// The share of the whole that the verdict's cause took.
    #[schemars(range(max = 1))]
    pub verdict_share: f64,
    /// The first reset.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reset: Option<ConnectionReset>,
    /// The side that fell silent, if one did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub silence: Option<Silence>,
    /// How the connection failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failure>,
}

/// How a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// A reset answered the SYN.
    Refused,
    /// Nothing answered the SYN, though it was sent again.
    NoAnswer,
    /// Something other than the host with its address reset the connection.
    ForeignReset,
    /// The server reset the connection before an exchange was over.
    Reset,
    /// One side fell silent, and the other sent again until the end.
    VanishedPeer,
}

impl Life {
    /// Seconds that the verdict's cause, `code`, took of the life; 0 where that is one of the data phase, or waiting for the client: it costs
    /// nobody but the client. A black hole costs its silence, since nothing may arrive at all: then there is no data phase.
    pub fn lost_s(&self, code: Code) -> f64 {
        let costs = code.is_of_life() && code != Code::WaitingForClient || code == Code::PathMtuBlackHole;
        if costs { (self.verdict_share * self.phases.total_s()).max(0.0) } else { 0.0 }
    }
}

/// Seconds of each phase; their sum is the connection's duration and the name lookup before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LifePhases {
    /// The name lookup before the connection, where the capture has it.
    pub lookup_s: f64,
    /// From the first SYN to the ACK of the SYN-ACK.
    pub connecting_s: f64,
    /// The client has an open connection, and the accept queue of the server's listener is full.
    pub accept_queue_s: f64,
    /// From the ClientHello to the end of the TLS handshake.
    pub tls_s: f64,
    /// A request is not acknowledged: on its way, lost or sent again.
    pub request_s: f64,
    /// A request is acknowledged, and no byte of the response has come.
    pub waiting_server_s: f64,
    /// No request is outstanding.
    pub waiting_client_s: f64,
    /// Responses and uploads.
    pub transfer_s: f64,
    /// After the first FIN or RST.
    pub close_s: f64,
}

impl LifePhases {
    /// The phases in their order, in seconds, with the names that reports print.
    pub const fn named(&self) -> [(&'static str, f64); 9] {
        [
            ("name lookup", self.lookup_s),
            ("connecting", self.connecting_s),
            ("accept queue", self.accept_queue_s),
            ("TLS handshake", self.tls_s),
            ("request", self.request_s),
            ("waiting for the server", self.waiting_server_s),
            ("waiting for the client", self.waiting_client_s),
            ("transfer", self.transfer_s),
            ("close", self.close_s),
        ]
    }

    /// The sum of the phases, in seconds.
    pub fn total_s(&self) -> f64 {
        self.named().iter().map(|(_, seconds)| seconds).sum()
    }
}

impl LifePhases {
    /// The phases as shares of their sum; all zero if that is.
    pub fn shares(&self) -> LifeShares {
        let total = self.total_s();
        let share = |seconds: f64| if total > 0.0 { seconds / total } else { 0.0 };
        LifeShares {
            lookup: share(self.lookup_s),
            connecting: share(self.connecting_s),
            accept_queue: share(self.accept_queue_s),
            tls: share(self.tls_s),
            request: share(self.request_s),
            waiting_server: share(self.waiting_server_s),
            waiting_client: share(self.waiting_client_s),
            transfer: share(self.transfer_s),
            close: share(self.close_s),
        }
    }
}

/// Shares of a connection's life: [`LifePhases`] as parts of their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LifeShares {
    /// Share of `lookup_s` in the whole.
    #[schemars(range(max = 1))]
    pub lookup: f64,
    /// Share of `connecting_s` in the whole.
    #[schemars(range(max = 1))]
    pub connecting: f64,
    /// Share of `accept_queue_s` in the whole.
    #[schemars(range(max = 1))]
    pub accept_queue: f64,
    /// Share of `tls_s` in the whole.
    #[schemars(range(max = 1))]
    pub tls: f64,
    /// Share of `request_s` in the whole.
    #[schemars(range(max = 1))]
    pub request: f64,
    /// Share of `waiting_server_s` in the whole.
    #[schemars(range(max = 1))]
    pub waiting_server: f64,
    /// Share of `waiting_client_s` in the whole.
    #[schemars(range(max = 1))]
    pub waiting_client: f64,
    /// Share of `transfer_s` in the whole.
    #[schemars(range(max = 1))]
    pub transfer: f64,
    /// Share of `close_s` in the whole.
    #[schemars(range(max = 1))]
    pub close: f64,
}

/// The silence of one side to the end of the capture, while the other sent again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Silence {
    /// The side that fell silent.
    pub side: Side,
    /// Its latest packet, in seconds since the connection's first.
    pub since_s: f64,
    /// When the other side first sent something that got no answer.
    pub asked_s: f64,
    /// Packets that the other side sent again, or keep-alives, without an answer.
    pub unanswered: u32,
    /// The first of them.
    #[schemars(range(min = 1))]
    pub packet: u64,
}

/// Packets that were sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resent {
    /// SYNs of the client.
    pub syn: u32,
    /// SYN-ACKs of the server.
    pub syn_ack: u32,
    /// Data packets of the client.
    pub data_up: u64,
    /// Data packets of the server.
    pub data_down: u64,
    /// FINs of the client.
    pub fin_up: u32,
    /// FINs of the server.
    pub fin_down: u32,
}

impl Resent {
    /// The counts in the order of a connection, with the names that reports print.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("SYN", self.syn.into()),
            ("SYN-ACK", self.syn_ack.into()),
            ("data up", self.data_up),
            ("data down", self.data_down),
            ("FIN up", self.fin_up.into()),
            ("FIN down", self.fin_down.into()),
        ]
    }
}

/// A reset.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionReset {
    /// The direction it has: `down` if it carries the server's address as its source.
    pub direction: Way,
    /// Number of its packet in the file.
    pub packet: u64,
    /// Seconds since the connection's first packet.
    pub at_s: f64,
    /// Silence before the latest data packet, in seconds.
    pub idle_s: f64,
    /// Its time to live (hop limit).
    pub ttl: u8,
    /// That of the packet before it from the same address.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usual_ttl: Option<u8>,
    /// Identification of its IP header, and that of the packet before it from the same address, where that address counts its packets and
    /// this one is out of order.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ip_ids: Option<(u16, u16)>,
    /// Data came from the same address after it: a host that resets a connection sends no more (RFC 9293 §3.5.2).
    pub followed_by_data: bool,
    /// It came sooner than anything that the server could send in answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub too_soon: Option<TooSoon>,
}

/// A reset that answers what the server cannot have received yet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TooSoon {
    /// Seconds from the data that it answers.
    pub after_s: f64,
    /// The shortest round trip between the tap and the server, in seconds.
    pub round_trip_s: f64,
}

impl ConnectionReset {
    /// Whether something other than the host with this address sent it: its TTL or its IP identification is not the host's, the host goes on,
    /// or it came too soon. One hop more than usual may be a new route: whatever resets from between the hosts, and begins with their TTL, is nearer.
    pub fn is_foreign(&self) -> bool {
        let is_alike = self.usual_ttl.is_none_or(|usual| [self.ttl, self.ttl.saturating_add(1)].contains(&usual));
        self.followed_by_data || self.ip_ids.is_some() || self.too_soon.is_some() || !is_alike
    }
}
