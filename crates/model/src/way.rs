//! The directions of a connection.

use serde::{Deserialize, Serialize};

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}
