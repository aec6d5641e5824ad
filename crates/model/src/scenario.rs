//! Scenarios: a path, a workload, settings, and the arms that are compared.

mod read;

use crate::document::{DocumentError, Node};
use crate::expect::Expectation;
use crate::path::Path;
use crate::settings::HostSettings;
use crate::workload::Workload;
use serde::{Deserialize, Serialize};

/// An experiment with everything that is compared in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is about, one line.
    pub about: String,
    /// The kernel it asks for; `None` takes the default.
    pub kernel: Option<String>,
    /// What is compared, the baseline first; never empty.
    pub arms: Vec<Arm>,
    /// What is expected of the figures.
    pub expect: Vec<Expectation>,
}

/// One of the things compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// What is run.
    pub experiment: Experiment,
}

/// A path, a workload and both hosts' settings: all that one run needs besides a seed and a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The path between the hosts.
    pub path: Path,
    /// What they do over it.
    pub workload: Workload,
    /// The client's settings.
    pub client: HostSettings,
    /// The server's settings.
    pub server: HostSettings,
}

impl Scenario {
    /// Reads a scenario from TOML. `name` is what errors call the text; `set` are `(key, value)` pairs laid over every
    /// arm, keys dotted, as `--set path.rtt=100ms` gives them.
    ///
    /// # Errors
    /// [`DocumentError`] with the line of whatever is malformed, unknown or impossible.
    pub fn parse(name: &str, text: &str, set: &[(String, String)]) -> Result<Self, DocumentError> {
        read::scenario(Node::parse(name, text)?, set)
    }
}

#[cfg(test)]
mod tests;
