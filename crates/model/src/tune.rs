//! What `thalweg tune show` reports.

use schemars::JsonSchema;
use serde::Serialize;

/// The document of `thalweg tune show --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TuneShow {
    /// `thalweg.tune-show/1`.
    pub schema: &'static str,
    /// Where the settings were read: `this host`, a file, or `stdin`.
    pub source: String,
    /// Release of the kernel, such as `6.12`, where it is known.
    pub kernel: Option<String>,
    /// Sysctls, routes and sockets that were read.
    pub read: TuneRead,
    /// What is wrong, or good to know, traps first.
    pub findings: Vec<TuneFinding>,
    /// Settings that differ from the kernel's default and have no finding of their own.
    pub differences: Vec<TuneDifference>,
}

/// How much was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TuneRead {
    /// TCP's sysctls.
    pub sysctls: usize,
    /// Sysctls that are not TCP's, and were passed over.
    pub other_sysctls: usize,
    /// Routes.
    pub routes: usize,
    /// Connections.
    pub sockets: usize,
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// It does harm, or does not do what it is there for.
    Trap,
    /// It does what it is there for; something about it is easily overlooked.
    Note,
}

/// One finding about a setting.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TuneFinding {
    /// Its kind, such as `vendor-name`.
    pub code: &'static str,
    /// How much it matters.
    pub weight: Weight,
    /// The setting.
    pub setting: String,
    /// Its value; empty where there is none.
    pub value: String,
    /// The line it was read from, where it was read from a text.
    #[schemars(range(min = 1))]
    pub line: Option<usize>,
    /// What is the matter, in a sentence.
    pub says: String,
    /// Why that is so, with the arithmetic.
    pub why: String,
    /// What to set, or to leave out; `None` where nothing has to be done.
    pub set: Option<String>,
}

/// A setting that is not at its default.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TuneDifference {
    /// The setting.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// The default on that kernel, or the defaults of all where the kernel is not known.
    pub default: String,
    /// What it means.
    pub about: String,
}
