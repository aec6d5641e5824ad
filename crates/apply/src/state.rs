//! How far an application is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far an application is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its writes are under way, or were broken off.
    Applying,
    /// All is written and checked; it is undone unless somebody confirms.
    Unconfirmed,
    /// It stays.
    Confirmed,
    /// All is as it was.
    RolledBack,
    /// Undone, except for what somebody else changed since, or could not be restored.
    PartlyRolledBack,
}

impl State {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Applying => "unfinished",
            Self::Unconfirmed => "unconfirmed",
            Self::Confirmed => "confirmed",
            Self::RolledBack => "rolled back",
            Self::PartlyRolledBack => "partly rolled back",
        }
    }

    /// Whether somebody still has to confirm or undo it.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Applying | Self::Unconfirmed)
    }
}
