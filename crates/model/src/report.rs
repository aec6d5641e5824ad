//! What a run, a diagnosis or a fix reports; the JSON documents are these types.

use crate::fit::{Candidate, CaptureFit, OtherFit, Rejected, Rival};
use crate::flow::Flow;
use crate::live_path::LiveReport;
use crate::metric::Metrics;
use crate::remedy::{Change, Remedy};
use crate::{Code, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What `thalweg lab run` reports, schema `thalweg.lab/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabReport {
    /// `thalweg.lab/1`.
    pub schema: String,
    /// The scenario's name.
    pub scenario: String,
    /// What the scenario is about.
    pub about: String,
    /// Release of the kernel it ran on; of several, all, with commas between.
    pub kernel: String,
    /// `virtual` or `live`.
    #[schemars(extend("enum" = ["virtual", "live"]))]
    pub engine: String,
    /// Seed of the first repeat.
    pub seed: u64,
    /// Repeats of each arm, seeded `seed`, `seed + 1`, ….
    #[schemars(range(min = 1))]
    pub repeats: u32,
    /// Real time it took; of two runs of one seed in virtual time the one field that differs.
    pub wall_s: f64,
    /// Time the experiments took by their own clocks, all arms and repeats added: virtual, or with the live engine real time.
    pub virtual_s: f64,
    /// What is compared.
    pub arms: Vec<ArmReport>,
    /// Runs that gave no result; they count in no figure.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failed: Vec<FailedRun>,
    /// The scenario's expectations, and whether they were met.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub expect: Vec<Outcome>,
    /// Where this is one part of a run that was divided: what joining the parts takes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shard: Option<Shard>,
}

/// A run that gave no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedRun {
    /// Its arm.
    pub arm: String,
    /// Its seed.
    pub seed: u64,
    /// What failed, one sentence.
    pub why: String,
}

/// A part of a run that was divided over machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// Which part, from 1 on.
    #[schemars(range(min = 1))]
    pub index: u32,
    /// Of how many.
    #[schemars(range(min = 1))]
    pub of: u32,
    /// Names of all arms of the whole run, in their order.
    #[schemars(length(min = 1))]
    pub arms: Vec<String>,
    /// What the scenario expects of the whole run.
    pub expect: Vec<Expected>,
    /// The runs of this part, in their order.
    pub runs: Vec<RunFigures>,
}

/// An expectation that is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// `arm/figure`.
    pub metric: String,
    /// The bound.
    pub wanted: String,
}

/// Whether an expectation was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// `arm/figure`.
    pub metric: String,
    /// The bound, as it was written.
    pub wanted: String,
    /// What was measured.
    pub got: String,
    /// Whether that is within the bound.
    pub met: bool,
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunFigures {
    /// Its arm's place among all.
    pub arm: usize,
    /// Which repeat of the arm, from 0 on.
    pub repeat: u32,
    /// Time it took by its own clock.
    pub virtual_s: f64,
    /// Its figures.
    pub metrics: Metrics,
}

/// How an arm's figure differs from its baseline's, repeats paired by their seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The median of the paired differences, in the figure's unit.
    #[schemars(extend("minimum" = null))]
    pub difference: f64,
    /// The arm's median over the baseline's; `None` where that is 0.
    #[schemars(extend("minimum" = null))]
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the median difference; `None` where there is one pair.
    #[schemars(extend("minimum" = null))]
    pub ci95: Option<[f64; 2]>,
    /// Whether the difference may be chance; `None` where there are too few pairs to tell.
    pub within_noise: Option<bool>,
}

/// A repeat far from the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// The figure.
    pub metric: String,
    /// The repeat's seed.
    pub seed: u64,
    /// Its value.
    #[schemars(extend("minimum" = null))]
    pub value: f64,
}

/// One arm of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmReport {
    /// Its name.
    pub name: String,
    /// Release of the kernel it ran on.
    pub kernel: String,
    /// Its place in the scenario's matrix: what each key was set to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub matrix: BTreeMap<String, String>,
    /// The arm it is compared with; `None` for one that others are compared with.
    pub baseline: Option<String>,
    /// What was set, as the kernel reads it back.
    pub settings: SettingsReport,
    /// What was measured.
    pub metrics: Metrics,
    /// How that differs from the baseline, by the figures' whole names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub differences: BTreeMap<String, Difference>,
    /// Repeats outside Tukey's fences. They are in the medians and intervals like any other.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub outliers: Vec<Outlier>,
    /// One-second intervals of a stream; of the first repeat.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub intervals: Vec<Interval>,
    /// Why it was no faster, costliest first; of the first repeat.
    pub diagnosis: Vec<DiagnosisLine>,
    /// The capture's file name within the run's folder; of the first repeat.
    pub capture: Option<String>,
    /// The socket samples' file name within the run's folder; of the first repeat.
    pub samples: Option<String>,
    /// How true its runs were, where they were in real time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub live: Option<LiveReport>,
}

impl LabReport {
    /// The arm of that name.
    pub fn arm(&self, name: &str) -> Option<&ArmReport> {
        self.arms.iter().find(|arm| arm.name == name)
    }
}

/// Settings as read back from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsReport {
    /// Of the client.
    pub client: HostReport,
    /// Of the server.
    pub server: HostReport,
    /// The emulated path, one line for each queueing discipline.
    pub path: Vec<String>,
}

/// One host's settings as read back from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostReport {
    /// Sysctls: those asked for, and the buffers and congestion control in any case.
    pub sysctl: BTreeMap<String, String>,
    /// Metrics of the route to the other host.
    pub route: BTreeMap<String, String>,
    /// Options of the workload's first socket.
    pub socket: BTreeMap<String, String>,
}

/// One interval of a stream, as iperf3 prints it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its start, in seconds since the client began to connect.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Payload the receiver read in it.
    pub bytes: u64,
    /// The rate that makes.
    pub goodput_bps: f64,
    /// Segments the sender sent again in it.
    pub retransmits: u64,
    /// The sender's congestion window at its end, in segments.
    pub cwnd_packets: u32,
    /// The sender's smoothed round-trip time at its end.
    pub rtt_ms: f64,
}

/// A cause, in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosisLine {
    /// The cause.
    pub code: Code,
    /// Its share of the data phase.
    #[schemars(range(max = 1))]
    pub share: f64,
    /// How much faster it would be without.
    pub gain: Option<f64>,
    /// One sentence, with the figures.
    pub claim: String,
}

impl From<&Verdict> for DiagnosisLine {
    fn from(verdict: &Verdict) -> Self {
        Self { code: verdict.code(), share: verdict.share, gain: verdict.gain, claim: verdict.claim() }
    }
}

/// What `thalweg lab compare` reports, schema `thalweg.compare/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareReport {
    /// `thalweg.compare/1`.
    pub schema: String,
    /// What was compared; the first is what the others are compared with.
    #[schemars(length(min = 2))]
    pub reports: Vec<ComparedReport>,
    /// What besides the figures differs between them, one sentence each.
    pub notes: Vec<String>,
    /// An entry for each arm and report it was found in besides the first.
    pub arms: Vec<ArmComparison>,
}

/// A report that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedReport {
    /// Its file as given.
    pub file: String,
    /// Its scenario.
    pub scenario: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Seed of its first repeat.
    pub seed: u64,
    /// Its repeats.
    pub repeats: u32,
}

/// One arm in two reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmComparison {
    /// Its name.
    pub name: String,
    /// The report that is compared with the first.
    pub file: String,
    /// The figure that leads, by its whole name; `None` where both have none.
    pub leading: Option<String>,
    /// By how many percent the leading figure is worse, whether or not by chance; 0 where it is not.
    pub worse_percent: f64,
    /// Whether it is worse by more than was allowed, and that not within noise.
    pub failed: bool,
    /// Every figure both have, by its whole name.
    pub metrics: BTreeMap<String, FigureComparison>,
}

/// One figure of an arm in two reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureComparison {
    /// Its median in the first report.
    #[schemars(extend("minimum" = null))]
    pub base: f64,
    /// Its median in the other.
    #[schemars(extend("minimum" = null))]
    pub value: f64,
    /// Seeds both have; of 0 pairs the medians are compared.
    pub pairs: u32,
    /// How the other differs from the first.
    #[serde(flatten)]
    pub difference: Difference,
}

/// What `thalweg diagnose` reports, schema `thalweg.diagnose/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnoseReport {
    /// `thalweg.diagnose/1`.
    pub schema: String,
    /// One for each file.
    pub captures: Vec<CaptureReport>,
}

/// One capture file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureReport {
    /// Its path as given.
    pub file: String,
    /// Packets read.
    pub packets: u64,
    /// Bytes those packets had on the wire.
    pub bytes: u64,
    /// Whether the file ends within a record.
    pub truncated: bool,
    /// What was cut, skipped or not TCP, one sentence each.
    pub notes: Vec<String>,
    /// The TCP connections, costliest first; each by itself, so that to put ten thousands in order moves none.
    pub flows: Vec<Box<Flow>>,
}

/// A figure before and after a fix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixFigure {
    /// Its whole name.
    pub metric: String,
    /// Its value as found.
    #[schemars(extend("minimum" = null))]
    pub before: f64,
    /// Its value with the remedy.
    #[schemars(extend("minimum" = null))]
    pub after: f64,
}

/// What `thalweg fix` reports, schema `thalweg.fix/1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixReport {
    /// `thalweg.fix/1`.
    pub schema: String,
    /// The cause, with its figures.
    pub cause: DiagnosisLine,
    /// Other causes that stand, as far as the diagnosis or the search shows them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub also: Vec<DiagnosisLine>,
    /// What was set to mend it; `None` where no setting can.
    pub remedy: Option<Remedy>,
    /// What the gain takes besides, where a host has less: a limit that did not hold yet leaves nothing in a capture. To be raised only where it is
    /// lower.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub needs: Vec<Change>,
    /// Commands that apply it.
    pub apply: Vec<String>,
    /// Commands that undo it.
    pub undo: Vec<String>,
    /// The figure compared.
    pub metric: String,
    /// Its value as found.
    #[schemars(extend("minimum" = null))]
    pub before: f64,
    /// Its value with the remedy; `None` where there was none to prove.
    #[schemars(extend("minimum" = null))]
    pub after: Option<f64>,
    /// How many times better, whichever way is better for the figure.
    #[schemars(extend("minimum" = null))]
    pub ratio: Option<f64>,
    /// The figures of each part and topic, as found and with the remedy.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub figures: Vec<FixFigure>,
    /// The captured connection and the path fitted to it, where a capture was to be fixed.
    #[serde(default)]
    pub capture: Option<Box<CaptureFit>>,
    /// What was tried on the fitted path, the remedy first.
    #[serde(default)]
    pub search: Vec<Candidate>,
    /// What the remedy does to a CUBIC flow on the same path, where it changes how the sender competes.
    #[serde(default)]
    pub rival: Option<Rival>,
    /// What would be better, and takes too much from others to be proposed, in the order of its finding.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rejected: Vec<Rejected>,
    /// Other models that the capture fits, where another remedy may be right.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub other_fits: Vec<OtherFit>,
    /// Why nothing was fitted, searched or proven, or what the proof leaves open; one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
    /// The runs that prove it; `None` where nothing was run.
    pub proof: Option<LabReport>,
}
