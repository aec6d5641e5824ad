//! Scenarios: a path, a workload, settings, and the arms that are compared.

use crate::expect::Expectation;
use crate::path::Path;
use crate::settings::HostSettings;
use crate::topology::Topology;
use crate::workload::{Cross, Workload};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// An experiment with everything that is compared in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is about, one line.
    pub about: String,
    /// The kernels it asks for; none takes the default, several are compared.
    pub kernels: Vec<String>,
    /// What is compared, the baseline first: each `[[arm]]` at each point of the matrix. Never empty.
    pub arms: Vec<Arm>,
    /// What is expected of the figures.
    pub expect: Vec<Expectation>,
}

/// One of the things compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// Its name: its own and its place in the matrix, as in `cubic, initcwnd 10`.
    pub name: String,
    /// Its own name; empty where the scenario has no `[[arm]]` and a matrix.
    pub own: String,
    /// Its place in the matrix: what each key is set to, in the order the keys were written.
    pub matrix: Vec<(String, String)>,
    /// The arm it is compared with; `None` for one that others are compared with.
    pub baseline: Option<String>,
    /// What is run.
    pub experiment: Experiment,
}

impl Arm {
    /// An arm that is in no matrix and is compared with none.
    pub fn new(name: impl Into<String>, experiment: Experiment) -> Self {
        let name = name.into();
        Self { own: name.clone(), name, matrix: Vec::new(), baseline: None, experiment }
    }
}

/// A path, a workload and both hosts' settings: all that one run needs besides a seed and a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Which hosts there are.
    pub topology: Topology,
    /// The path between the hosts.
    pub path: Path,
    /// What they do over it.
    pub workload: Workload,
    /// What others do over it meanwhile.
    pub cross: Vec<Cross>,
    /// Every client's settings.
    pub client: HostSettings,
    /// The server's settings.
    pub server: HostSettings,
}

impl Scenario {
    /// Keeps the arms that `names` choose, each by its whole name or by its own, and what is expected of them.
    ///
    /// # Errors
    /// The first name that chooses none; the scenario is as it was.
    pub fn keep<'a>(&mut self, names: &'a [String]) -> Result<(), &'a str> {
        let chosen = |arm: &Arm, name: &str| arm.name == name || (arm.own == name && !name.is_empty());
        if let Some(unknown) = names.iter().find(|name| !self.arms.iter().any(|arm| chosen(arm, name))) {
            return Err(unknown);
        }
        self.arms.retain(|arm| names.iter().any(|name| chosen(arm, name)));
        self.name_baselines();
        let kept: Vec<&str> = self.arms.iter().map(|arm| arm.name.as_str()).collect();
        self.expect.retain(|line| line.arms().all(|arm| kept.contains(&arm)));
        Ok(())
    }

    /// Says of each arm which one it is compared with: with the first at the same point of the matrix where there are
    /// several arms, so that one thing differs; else with the first point.
    pub fn name_baselines(&mut self) {
        let several = self.arms.iter().any(|arm| arm.own != self.arms[0].own);
        // By its place in the matrix, as there may be very many arms.
        let mut first: HashMap<Vec<(String, String)>, String> = HashMap::new();
        for arm in &mut self.arms {
            let point = if several { arm.matrix.clone() } else { Vec::new() };
            arm.baseline = match first.entry(point) {
                Entry::Vacant(vacant) => {
                    vacant.insert(arm.name.clone());
                    None
                }
                Entry::Occupied(baseline) => Some(baseline.get().clone()),
            };
        }
    }
}
