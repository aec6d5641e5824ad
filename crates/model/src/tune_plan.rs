//! What `thalweg tune plan` proposes, and `thalweg tune apply` takes.

use crate::remedy::Setting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The document of `thalweg tune plan --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TunePlan {
    /// `thalweg.tune-plan/1`.
    pub schema: String,
    /// What it is for: a purpose, or the file of a diagnosis.
    pub purpose: String,
    /// Release of the kernel it is for, where it is known.
    pub kernel: Option<String>,
    /// What it is expected to gain, and where that is from; `None` for a purpose, which has nothing to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedGain>,
    /// How the values came about, step by step.
    pub arithmetic: Vec<PlanStep>,
    /// What to set, the narrowest scope first; each setting once.
    pub changes: Vec<PlannedChange>,
    /// What was looked at and is enough as it is.
    pub enough: Vec<String>,
    /// What to know before it is applied: memory that does not suffice, what no setting mends.
    pub warnings: Vec<String>,
}

impl TunePlan {
    /// The schema's name.
    pub const SCHEMA: &str = "thalweg.tune-plan/1";
}

/// What a plan is expected to gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedGain {
    /// The figure that gets better, such as `goodput_steady_bps`.
    pub figure: String,
    /// Its value as found; `None` where only the ratio is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = null))]
    pub before: Option<f64>,
    /// Its value with the changes; `None` where only the ratio is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = null))]
    pub after: Option<f64>,
    /// How many times better.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub ratio: f64,
    /// Runs that measured it, or that it is an estimate.
    pub source: String,
}

/// One step of the arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What is computed.
    pub what: String,
    /// How, with its numbers.
    pub how: String,
    /// The result, with its unit.
    pub result: String,
}

/// How far a change reaches, the narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// One program's sockets.
    Socket,
    /// Connections over one route.
    Route,
    /// Every connection of the network namespace.
    Namespace,
    /// Every connection of the host.
    Host,
}

/// One change of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedChange {
    /// How far it reaches.
    pub reach: Reach,
    /// What is set.
    pub setting: Setting,
    /// The route's destination, for a route's attribute: `default`, or a prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteTarget>,
    /// What it is now; `None` where it is not set or not known.
    pub from: Option<String>,
    /// What it is to be.
    pub to: String,
    /// Why that much.
    pub why: String,
    /// What can go wrong, or what it costs others.
    pub risk: String,
}

/// A route that an attribute is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteTarget {
    /// `default`, or an address and the bits of its prefix.
    pub to: String,
    /// Gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// Preference.
    #[serde(default)]
    pub metric: u64,
    /// Type of service of the packets that take it; 0 is any.
    #[serde(default)]
    pub tos: u8,
    /// It is of IPv6.
    #[serde(default)]
    pub ipv6: bool,
    /// It goes away by itself, as those that a router announced.
    #[serde(default)]
    pub expires: bool,
    /// The route without its attributes of TCP as words of an `ip route` command; `None` where it is not known, or has a part that is not
    /// written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Attributes it has, which a command that replaces it has to repeat.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, String>,
}
