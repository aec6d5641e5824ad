//! What to set, and how to undo it.

use crate::diagnosis::Code;
use serde::{Deserialize, Serialize};

/// A host of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one that connects.
    Client,
    /// The one that is connected to.
    Server,
}

/// How freely a remedy may be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// Harms nothing else on the host.
    Safe,
    /// Changes what other connections of the host do, too.
    NeedsThought,
}

/// Settings that mend a cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// The cause it mends.
    pub code: Code,
    /// One sentence: what is done and why that much.
    pub reason: String,
    /// What to set.
    pub changes: Vec<Change>,
    /// How freely.
    pub applicability: Applicability,
    /// What it would not help.
    pub wont_help: String,
}

/// One setting of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Which host.
    pub side: Side,
    /// What is set.
    pub setting: Setting,
    /// What it was; `None` where it was not set or is not known.
    pub from: Option<String>,
    /// What it is to be.
    pub to: String,
}

/// Something that can be set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// A sysctl, by its dotted name.
    Sysctl(String),
    /// A metric of the route to the other host, by its `ip route` name.
    Route(String),
    /// An option of the program's sockets, by its scenario name.
    Socket(String),
}
