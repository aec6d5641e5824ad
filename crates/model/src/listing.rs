//! What the commands that list or explain something print.

use crate::{Code, LiveHostsReport, LivePathReport};
use schemars::JsonSchema;
use serde::Serialize;

/// The document of `thalweg explain --json`: every verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeList {
    /// `thalweg.codes/1`.
    pub schema: &'static str,
    /// The verdicts, in the order of the documentation.
    pub codes: Vec<CodeMeaning>,
}

/// A verdict in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeMeaning {
    /// Its name.
    pub code: Code,
    /// The first sentence of its page.
    pub meaning: String,
}

/// The document of `thalweg explain CODE --json`: the page of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodePage {
    /// `thalweg.code/1`.
    pub schema: &'static str,
    /// Its name.
    pub code: Code,
    /// The whole page, as a terminal shows it.
    pub text: String,
    /// The section "What it means", in one line as all that follow.
    pub what_it_means: String,
    /// The section "Why it is slow".
    pub why_it_is_slow: String,
    /// The section "Evidence".
    pub evidence: String,
    /// The section "How to confirm".
    pub how_to_confirm: String,
    /// The section "What to set".
    pub what_to_set: String,
    /// The section "Source".
    pub source: String,
}

/// The document of `thalweg lab list --json`: the built-in scenarios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ScenarioList {
    /// `thalweg.scenarios/1`.
    pub schema: &'static str,
    /// The scenarios, by theme.
    pub scenarios: Vec<ListedScenario>,
}

/// A built-in scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedScenario {
    /// Its name, which `thalweg lab run` and `thalweg fix` take.
    pub name: String,
    /// The theme it is listed under.
    pub theme: String,
    /// What it is about.
    pub about: String,
    /// Names of its arms.
    pub arms: Vec<String>,
}

/// The document of `thalweg lab kernel list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelList {
    /// `thalweg.kernels/1`.
    pub schema: &'static str,
    /// The lab kernels that are installed, newest release first.
    pub kernels: Vec<ListedKernel>,
}

/// An installed lab kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedKernel {
    /// Its release, such as `6.12.117`.
    pub release: String,
    /// Release and hash: distinguishes two kernels of one release.
    pub id: String,
    /// The program that boots it.
    pub path: String,
    /// Its timer frequency, in hertz.
    #[schemars(range(min = 1))]
    pub hz: u32,
    /// Whether this version of the program would build the same one.
    pub current: bool,
}

/// The document of `thalweg lab kernel build --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuiltKernel {
    /// `thalweg.kernel-build/1`.
    pub schema: &'static str,
    /// The kernel's release, such as `6.12.117`.
    pub release: String,
    /// Release and hash: distinguishes two kernels of one release.
    pub id: String,
    /// The program that boots it.
    pub path: String,
}

/// The document of `thalweg path list --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PathList {
    /// `thalweg.paths/1`.
    pub schema: &'static str,
    /// The paths that run on this host, each as `thalweg path --json` reports it.
    pub paths: Vec<LivePathReport>,
    /// The hosts that are up.
    pub hosts: Vec<LiveHostsReport>,
}
