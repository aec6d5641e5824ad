//! Figures of the causes that are no part of the data phase: the connection's whole life has them.

use super::figures::{Occurrences, Sights};
use crate::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thalweg_units::figures::count;

/// How a connection opened late, or did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "opened", rename_all = "snake_case")]
pub enum Opening {
    /// It waited for the lookup of the server's name.
    Lookup {
        /// From the first query to the answer.
        seconds: f64,
        /// Queries that were sent again.
        again: u64,
    },
    /// It opened late.
    Late {
        /// From the first SYN to the ACK of the SYN-ACK.
        seconds: f64,
        /// Challenge ACKs that answered a SYN.
        challenged: u64,
        /// SYNs that were sent again, where some were.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        syn: Option<SentAgain>,
        /// SYN-ACKs that were sent again, where some were.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        syn_ack: Option<SentAgain>,
        /// What the first SYN asked for, and the one that was answered did not, where there is such a thing.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        left_out: Option<SynRequest>,
    },
    /// A reset answered the SYN.
    Refused(Sights),
    /// Nothing answered the SYN.
    Unanswered {
        /// SYNs that were sent again, with the first SYN.
        again: Occurrences,
        /// From the first to the last.
        seconds: f64,
    },
    /// Nothing answered the SYN-ACK.
    Unconfirmed {
        /// SYN-ACKs that were sent again, with the SYN.
        again: Occurrences,
        /// From the first to the last.
        seconds: f64,
    },
}

/// What a SYN can ask for besides a connection, and what is left out when it is sent again, since some devices discard such SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SynRequest {
    /// Explicit congestion notification (RFC 3168 §6.1.1.1).
    Ecn,
    /// TCP Fast Open, by data or a cookie (RFC 7413 §4.1.3).
    FastOpen,
}

/// One packet of the handshake that was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentAgain {
    /// How often.
    #[schemars(range(min = 1))]
    pub times: u64,
    /// When it was sent first, in seconds since the connection's first packet.
    pub first_s: f64,
    /// And last.
    pub last_s: f64,
}

/// A listener without room.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FullAcceptQueue {
    /// For how long.
    pub seconds: f64,
    /// SYN-ACKs that were sent again.
    pub syn_acks_again: u64,
    /// Data packets of the client that were sent again.
    pub data_again: u64,
}

/// A request that came with a retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LostRequest {
    /// For how long it was not acknowledged.
    pub seconds: f64,
    /// How often it was sent again.
    pub again: u64,
}

/// Time in which nothing but a program was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramWait {
    /// For how long.
    pub seconds: f64,
    /// Requests that got a response.
    pub answered: u64,
    /// How much of it lies within the TLS handshake.
    pub tls_s: f64,
    /// It lasts to the end of the capture, beyond the connection's last packet.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub to_end: bool,
}

/// The reset that ended a connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResetSeen {
    /// The side whose address it carries.
    pub by: Side,
    /// Something else sent it.
    pub foreign: bool,
    /// A request was outstanding.
    pub asked: bool,
    /// When, in seconds since the connection's first packet.
    pub at_s: f64,
    /// Silence before what it answers.
    pub idle_s: f64,
    /// Its side had closed the connection before, by a FIN.
    pub closed: bool,
    /// Its packet.
    #[serde(flatten)]
    pub sights: Sights,
}

/// A silence that lasts to the end of the capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastSilence {
    /// The side that fell silent.
    pub side: Side,
    /// Its latest packet, in seconds since the connection's first.
    pub since_s: f64,
    /// Silence of both sides after that packet, before the other side sent something that got no answer.
    pub idle_s: f64,
    /// From then to the end.
    pub seconds: f64,
    /// Packets that the other side sent again, or keep-alives.
    pub unanswered: u64,
    /// The first of them.
    #[serde(flatten)]
    pub sights: Sights,
}

/// So many times: `once`, `3 times`.
pub(super) fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number as f64)) }
}
