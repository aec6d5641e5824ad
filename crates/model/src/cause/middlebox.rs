//! Figures of the causes that lie on the path: what firewalls and routers do to TCP.

use super::figures::Occurrences;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A window that a middlebox takes for smaller than it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnscaledEdge {
    /// The largest window field, in bytes if it were not scaled.
    pub field_bytes: u64,
    /// The largest window that the receiver advertised.
    pub window_bytes: u64,
    /// Times that nothing beyond the field arrived although it had been sent.
    pub stops: u64,
}

/// Blocks of selective acknowledgements about data that was never sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignBlocks {
    /// Those, and the first acknowledgements that have them.
    pub blocks: Occurrences,
    /// All blocks.
    pub of: u64,
}
