//! Figures of a receive window that is full.

use super::figures::{Occurrences, Sights};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a path holds in a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathHolds {
    /// Rate of the path.
    pub rate_bps: f64,
    /// The bandwidth-delay product.
    pub bytes: f64,
    /// Delays that vary bunch packets up, so that both are lower bounds.
    pub at_least: bool,
}

/// A receive window that was full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FullWindow {
    /// The window when it was full, on average.
    pub window_bytes: f64,
    /// Least round trip.
    pub rtt_min_s: f64,
    /// The largest window that was advertised.
    pub largest_bytes: u64,
    /// The packet that advertised it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub largest: Option<Sights>,
    /// Packets that filled the window to within one segment.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub filled: Option<Occurrences>,
    /// What the path holds, where its rate is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<PathHolds>,
    /// The window scale, where data told it and no SYN did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub found_scale: Option<u8>,
}
