//! What was changed, from what to what.

use crate::target::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The document of `thalweg tune log --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TuneLog {
    /// `thalweg.tune-log/1`.
    pub schema: &'static str,
    /// The applications, oldest first.
    pub applications: Vec<Journal>,
}

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

/// One setting of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What is set.
    pub target: Target,
    /// What was read before the first write.
    pub before: String,
    /// What is written.
    pub after: String,
}

/// One application: what `thalweg tune apply --json` and `thalweg tune confirm --json` print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// `thalweg.tune-journal/1`.
    pub schema: String,
    /// Its name.
    pub id: String,
    /// What the plan was for.
    pub purpose: String,
    /// Seconds since 1970 when it began.
    pub at_s: u64,
    /// Seconds since 1970 when it is undone unless confirmed.
    pub deadline_s: Option<u64>,
    /// The boot it was made in; a later one has its own settings.
    pub boot_id: String,
    /// The network namespace it was made in.
    pub namespace: u64,
    /// How far it is.
    pub state: State,
    /// What it sets, in the order of its writes.
    pub entries: Vec<Entry>,
    /// What else happened to it, one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Journal {
    /// The schema's name.
    pub const SCHEMA: &str = "thalweg.tune-journal/1";
}
