//! What the hosts do over the path.

use crate::flow::Way;
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate, Span};

/// What the hosts do over the path. The client always connects; sizes are TCP payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// One bulk transfer, as iperf3's.
    Stream {
        /// Which way the data goes.
        direction: Way,
        /// When it ends.
        amount: Amount,
    },
    /// Connect, request, response, close, again and again, as netperf's `TCP_CRR`.
    Crr {
        /// Request size.
        request: Bytes,
        /// Response size.
        response: Bytes,
        /// Number of transactions, or for how long to begin new ones.
        amount: Transactions,
    },
    /// A live stream's start: on request the server sends what it has buffered, then goes on at the media's rate.
    Burst {
        /// What the server holds when the viewer comes: the cached group of pictures.
        buffered: Bytes,
        /// The media's rate after that; written 25 times a second.
        rate: Rate,
        /// How much the client takes before it leaves.
        total: Bytes,
        /// Size of the first keyframe, container included.
        keyframe: Bytes,
        /// Byte counts whose arrival is reported besides the keyframe's.
        marks: Vec<Bytes>,
    },
}

/// How much a stream sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Amount {
    /// So many bytes.
    Bytes(Bytes),
    /// As many as it can in this time, counted from the connection's establishment.
    Seconds(Span),
}

/// How many transactions are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transactions {
    /// So many.
    Count(u32),
    /// New ones are begun for so long.
    Seconds(Span),
}
