//! What messages between two hosts met.

use crate::load::Percentiles;
use crate::way::Way;
use schemars::JsonSchema;
use serde::Serialize;
use thalweg_units::Span;

/// The document of `thalweg load topics --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopicsReport {
    /// `thalweg.load-topics/1`.
    pub schema: &'static str,
    /// The server's address and port.
    pub peer: String,
    /// For how long messages were published, in seconds.
    pub duration_s: f64,
    /// How well the hosts' clocks are known.
    pub clock: TopicsClock,
    /// The topics, in order.
    pub topics: Vec<TopicReport>,
    /// What of the scenario was left out.
    pub notes: Vec<String>,
}

/// How well the hosts' clocks are known. Every latency may be wrong by the uncertainty, all of one direction by the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TopicsClock {
    /// The shortest round trip in which the server's clock was read, in milliseconds.
    pub rtt_ms: f64,
    /// Half of it: what the latencies may be wrong by at most, which is the case if all of the round trip is in one direction.
    pub uncertainty_ms: f64,
    /// By how much the server's clock gains on this host's, in parts per million.
    #[schemars(extend("minimum" = null))]
    pub drift_ppm: f64,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopicReport {
    /// Its name.
    pub name: String,
    /// The direction of its messages.
    pub way: Way,
    /// From one message to the next.
    #[schemars(with = "String")]
    pub period: Span,
    /// How late a message may be whole at the subscriber; without one in the scenario, the period.
    #[schemars(with = "String")]
    pub deadline: Span,
    /// Messages that were published.
    pub messages: u64,
    /// Messages that were not whole at the subscriber when the test ended.
    pub lost: u64,
    /// Messages that came after their deadline.
    pub late: u64,
    /// From when a message was due until it was whole at the subscriber, in milliseconds; `None` if none came.
    pub latency_ms: Option<Percentiles>,
    /// Its connection, as the publisher's kernel has it at the end.
    pub connection: TopicConnection,
}

/// A topic's connection.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopicConnection {
    /// The publisher's congestion control.
    pub congestion: String,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` if the publisher's kernel does not say, as before Linux 6.7.
    pub timeouts: Option<u64>,
    /// The retransmission timeout, in milliseconds.
    pub rto_ms: f64,
    /// The smoothed round-trip time, in milliseconds.
    pub rtt_ms: f64,
    /// The least round-trip time, in milliseconds.
    pub min_rtt_ms: f64,
    /// The congestion window, in packets.
    pub cwnd_packets: u64,
    /// The most that waited in the publisher because the socket had no room, in bytes.
    pub backlog_max_bytes: u64,
}
