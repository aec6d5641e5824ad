//! What was fitted to a captured connection, and what a search over remedies tried on it.

use crate::Code;
use crate::flow::Vantage;
use crate::remedy::Change;
use crate::way::Way;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A captured connection, reproduced in the lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureFit {
    /// The capture's path as given.
    pub file: String,
    /// The connection's number in it.
    pub flow: u64,
    /// `ip:port` of the side that connected.
    pub client: String,
    /// `ip:port` of the side that was connected to.
    pub server: String,
    /// Where the capture was taken, seen from the data's sender; the lab's captures are taken there, too.
    pub vantage: Vantage,
    /// Which way the data goes.
    pub direction: Way,
    /// The part of the connection that was reproduced, from its first packet on, in seconds; `None` for all of it.
    #[serde(default)]
    pub first_s: Option<f64>,
    /// The models tried, the one in use first.
    pub models: Vec<FittedModel>,
    /// The one in use as a scenario file, which `thalweg lab run` takes; `None` where none was accepted.
    #[serde(default)]
    pub scenario: Option<String>,
}

/// One model of a path and its hosts, fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedModel {
    /// What it holds for the origin of losses, such as `drop-tail queue`.
    pub name: String,
    /// Its parameters.
    pub parameters: Vec<FittedParameter>,
    /// Runs it was held against, each with another seed, or of a model without chance with another parameter off.
    pub seeds: u32,
    /// Part of these with the capture's verdict.
    #[schemars(range(max = 1))]
    pub same_verdict: f64,
    /// Figures of the capture against those of the runs.
    pub checks: Vec<FitCheck>,
    /// Every figure is within, and half of the runs or more have the same verdict.
    pub accepted: bool,
}

impl FittedModel {
    /// Below this part of runs with the capture's verdict a model is not accepted.
    pub const SAME_VERDICT: f64 = 0.5;

    /// What of the capture the runs do not have: names of figures, or the verdict.
    pub fn not_reproduced(&self) -> Vec<&str> {
        let outside = self.checks.iter().filter(|check| !check.inside).map(|check| check.figure.as_str());
        outside.chain((self.same_verdict < Self::SAME_VERDICT).then_some("the verdict")).collect()
    }
}

/// Another model that the capture fits, with what is to be set if it is the right one. Its parameters are among the models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherFit {
    /// The model's name.
    pub model: String,
    /// The figure as found, on this model.
    #[schemars(extend("minimum" = null))]
    pub before: f64,
    /// What makes it better there; `None` where nothing does that can be set.
    pub set: Option<Candidate>,
    /// The figure with that set.
    #[schemars(extend("minimum" = null))]
    pub after: Option<f64>,
    /// Commands that apply the set.
    pub apply: Vec<String>,
    /// What would tell the two models apart; `None` where both have the same remedy, or none.
    pub test: Option<DistinguishingTest>,
}

/// A set of changes whose figure depends on which of two models is the right one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DistinguishingTest {
    /// The set's name.
    pub set: String,
    /// The figure with it on the model in use.
    #[schemars(extend("minimum" = null))]
    pub in_use: f64,
    /// The figure with it on the other.
    #[schemars(extend("minimum" = null))]
    pub other: f64,
}

/// A parameter of a fitted model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedParameter {
    /// The scenario's key.
    pub key: String,
    /// Its value with unit, as scenarios have it.
    pub value: String,
    /// How it was come by.
    pub origin: Origin,
}

/// How a fitted parameter was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The capture shows it.
    Measured,
    /// Adjusted until the lab's captures show what the capture shows.
    Calibrated,
    /// The capture bounds it at most.
    Assumed,
}

impl Origin {
    /// The name it has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Calibrated => "calibrated",
            Self::Assumed => "assumed",
        }
    }
}

/// A figure of the capture, and what the runs of a fitted model have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitCheck {
    /// The figure's name, with its unit at the end as figures of runs have it.
    pub figure: String,
    /// The capture's.
    #[schemars(extend("minimum" = null))]
    pub capture: f64,
    /// The median of the runs.
    #[schemars(extend("minimum" = null))]
    pub median: f64,
    /// The least that is accepted: the runs' least, less a quarter of their range (of logarithms) and the figure's resolution.
    #[schemars(extend("minimum" = null))]
    pub least: f64,
    /// The most that is accepted.
    #[schemars(extend("minimum" = null))]
    pub most: f64,
    /// Whether the capture's is between.
    pub inside: bool,
}

/// A set of changes that was tried on the fitted path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// What it is called in the proof.
    pub name: String,
    /// The causes it answers.
    pub codes: Vec<Code>,
    /// What it sets.
    pub changes: Vec<Change>,
    /// How many times better it was than nothing changed, in each round of the search that it was in: medians of paired seeds.
    pub ratios: Vec<f64>,
    /// The same on paths that differ from the fitted one, where it came so far.
    #[serde(default)]
    pub corners: Vec<Corner>,
}

/// A set of changes that is not proposed, since its congestion control takes more from a CUBIC flow than another CUBIC flow does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rejected {
    /// The set, and its gain.
    pub set: Candidate,
    /// The congestion control.
    pub congestion: String,
    /// What that does to a CUBIC flow on the same path.
    pub rival: Rival,
    /// Commands that apply the set, for a path that no others use.
    pub apply: Vec<String>,
}

/// A path that differs from the fitted one in one parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Corner {
    /// The parameter: `rate`, `rtt`, `loss` or `queue`.
    #[schemars(extend("enum" = ["rate", "rtt", "loss", "queue"]))]
    pub parameter: String,
    /// What it was multiplied by.
    pub factor: f64,
    /// How many times better the candidate is there.
    pub ratio: f64,
}

/// What a remedy does to a CUBIC flow that shares the path.
///
/// Source: Ware et al., "Beyond Jain's Fairness Index: Setting the Bar For The Deployment of Congestion Control Algorithms",
/// HotNets 2019.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rival {
    /// Rate of the CUBIC flow alone, in bits per second.
    pub alone_bps: f64,
    /// Its rate beside another CUBIC flow.
    pub beside_cubic_bps: f64,
    /// Its rate beside a flow with the remedy.
    pub beside_remedy_bps: f64,
    /// The part of its rate that the other CUBIC flow takes.
    #[schemars(extend("minimum" = null))]
    pub harm_of_cubic: f64,
    /// The part of its rate that the flow with the remedy takes.
    #[schemars(extend("minimum" = null))]
    pub harm_of_remedy: f64,
    /// Jain's index over the two rates with the remedy: 1 is even.
    pub jain: f64,
    /// The remedy takes no more than CUBIC does, to five hundredths.
    pub accepted: bool,
}
