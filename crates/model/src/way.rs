//! The directions of a connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Client to server.
    Up,
    /// Server to client.
    Down,
}

impl Way {
    /// The name it has in JSON and in scenarios.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}
