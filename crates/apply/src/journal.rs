//! What was changed, from what to what.

use crate::state::State;
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
    /// Files that have its sysctls for the next boots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persisted: Vec<String>,
}

impl Journal {
    /// The schema's name.
    pub const SCHEMA: &str = "thalweg.tune-journal/1";
}
