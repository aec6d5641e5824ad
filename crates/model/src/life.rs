//! The whole life of a connection: where its time went, and what was sent again in both directions.

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
    /// The first reset.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reset: Option<ConnectionReset>,
    /// A failure that costs more than the transfer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<Failure>,
}

/// What failed in the life of a connection, apart from its data phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// SYNs or SYN-ACKs were lost, and connecting is most of the connection's life.
    ConnectingLoss,
    /// The listener's accept queue was full for most of the connection's life.
    AcceptQueue,
    /// A request was sent again, and most of the connection's life it was not acknowledged.
    RequestLost,
    /// Something other than the host with its address reset the connection.
    ForeignReset,
}

impl Life {
    /// The failure that these phases, counts and reset show.
    pub fn find_failure(&self) -> Option<Failure> {
        /// A phase that is most of the whole costs more than all others together.
        const MOST: f64 = 0.5;
        let (phases, resent) = (&self.phases, &self.resent);
        let is_most = |seconds: f64| seconds > MOST * phases.total_s();
        if self.reset.is_some_and(|reset| reset.is_foreign()) {
            Some(Failure::ForeignReset)
        } else if is_most(phases.accept_queue_s) {
            Some(Failure::AcceptQueue)
        } else if is_most(phases.connecting_s) && resent.syn + resent.syn_ack > 0 {
            Some(Failure::ConnectingLoss)
        } else if is_most(phases.request_s) && resent.data_up > 0 {
            Some(Failure::RequestLost)
        } else {
            None
        }
    }

    /// Seconds that the failure cost; 0 without one, and for a reset, whose cost the capture does not show.
    pub const fn lost_s(&self) -> f64 {
        match self.failure {
            Some(Failure::ConnectingLoss) => self.phases.connecting_s,
            Some(Failure::AcceptQueue) => self.phases.accept_queue_s,
            Some(Failure::RequestLost) => self.phases.request_s,
            Some(Failure::ForeignReset) | None => 0.0,
        }
    }
}

/// Seconds of each phase; their sum is the connection's duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LifePhases {
    /// From the first SYN to the ACK of the SYN-ACK.
    pub connecting_s: f64,
    /// The client has an open connection, and the accept queue of the server's listener is full.
    pub accept_queue_s: f64,
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
    pub const fn named(&self) -> [(&'static str, f64); 7] {
        [
            ("connecting", self.connecting_s),
            ("accept queue", self.accept_queue_s),
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
    /// Data came from the same address after it: a host that resets a connection sends no more (RFC 9293 §3.5.2).
    pub followed_by_data: bool,
}

impl ConnectionReset {
    /// Whether something other than the host with this address sent it: its TTL is not the host's, or the host goes on.
    pub fn is_foreign(&self) -> bool {
        self.followed_by_data || self.usual_ttl.is_some_and(|usual| usual != self.ttl)
    }
}
