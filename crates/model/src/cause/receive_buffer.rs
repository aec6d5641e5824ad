//! Figures of a receive buffer that overruns.

use super::figures::Occurrences;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A receive buffer that was full of data out of order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverrunBuffer {
    /// Acknowledgements that end before data which was selectively acknowledged, and the first of them.
    pub dropped: Occurrences,
    /// Bytes sent again that had been selectively acknowledged.
    pub again_bytes: u64,
    /// Segments that reached a tap beside the receiver and were neither acknowledged nor kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refused: Option<u64>,
    /// The least window in those acknowledgements.
    pub window_bytes: u64,
    /// The largest window of all.
    pub window_max_bytes: u64,
    /// Mean payload of the segments.
    pub segment_bytes: f64,
}
