//! What to set, and how to undo it.

use crate::Code;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A host of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one that connects.
    Client,
    /// The one that is connected to.
    Server,
}

impl Side {
    /// The name it has in JSON and in scenarios.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// The host at the other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// How freely a remedy may be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Applicability {
    /// Harms nothing else on the host.
    Safe,
    /// Changes what other connections of the host do, too.
    NeedsThought,
    /// Is to be done on the other host than the one beside which was measured.
    OtherSide,
}

/// What mends a cause: settings, or, where no setting does, what else there is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// The cause it mends.
    pub code: Code,
    /// One sentence: what is done and why that much.
    pub reason: String,
    /// What to set; nothing where no setting of these hosts mends it.
    pub changes: Vec<Change>,
    /// Commands that set it, one a line, each with the host it is for; empty where another part of the report has them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub commands: Vec<String>,
    /// The kernels it is for, where the hosts' are not known and it is not for all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernels: Option<Kernels>,
    /// How freely.
    pub applicability: Applicability,
    /// What it would not help.
    pub wont_help: String,
    /// What else to know before it is set: what it costs, what goes with it, another way to the same.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

/// A range of Linux releases, such as those from 6.6 on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernels {
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// The first that is not among them any more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<String>,
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.before) {
            (Some(from), Some(before)) => write!(f, "Linux {from} and later, before {before}"),
            (Some(from), None) => write!(f, "Linux {from} and later"),
            (None, Some(before)) => write!(f, "Linux before {before}"),
            (None, None) => f.write_str("every Linux"),
        }
    }
}

/// One setting of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Which host.
    pub side: Side,
    /// What is set.
    pub setting: Setting,
    /// What it was; `None` where it was not set or is not known.
    pub from: Option<String>,
    /// What it is to be; `auto` leaves it to the kernel.
    pub to: String,
}

impl Change {
    /// Whether both are about one setting of one host.
    #[must_use]
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.side == other.side && self.setting == other.setting
    }
}

/// Something that can be set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// A sysctl, by its dotted name.
    Sysctl(String),
    /// A metric of the route to the other host, by its `ip route` name.
    Route(String),
    /// An option of the program's sockets, by its scenario name.
    Socket(String),
}

impl Setting {
    /// The name as its kind has it: of a sysctl, a route's metric or a socket option.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Sysctl(name) | Self::Route(name) | Self::Socket(name) => name,
        }
    }
}
