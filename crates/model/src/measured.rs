//! What of a connection remedies are reckoned from.

use crate::remedy::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a connection shows of its path and its hosts; 0 where it does not show it.
///
/// All of it is about the direction that carried more payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// The rate that the path allows, payload bits per second; `None` where it never showed itself.
    pub capacity_bps: Option<f64>,
    /// The rate that a fiftieth of the payload arrived at or above, over trains of segments, bits per second: at times at least the path
    /// delivered so fast. `None` where no train was long enough.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fastest_bps: Option<f64>,
    /// The rate that four of the short trains among the first 256 segments arrived at or above, bits per second: the first ten segments leave at once,
    /// whatever limits the sender later. `None` where no four segments arrived one after the other.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_bps: Option<f64>,
    /// The least MTU that ICMP errors about the connection's data name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub link_mtu_bytes: Option<u32>,
    /// Payload of a full segment.
    pub segment_bytes: u64,
    /// The longest payload known to have arrived in one packet.
    pub delivered_segment_bytes: u64,
    /// Most that was in flight.
    pub flight_max_bytes: u64,
    /// Largest window the receiver advertised.
    pub window_max_bytes: u64,
    /// About what the sender's socket buffer is to hold, where its program waits for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub send_buffer_bytes: Option<u64>,
    /// Stretches of data with silence of the sender between.
    pub bursts: u64,
    /// The side whose small writes waited for delayed acknowledgements, where some did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nagle_side: Option<Side>,
}
