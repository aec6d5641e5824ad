//! What passes between the engine and its guest: a plan in, an outcome out.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use thalweg_model::{Experiment, Interval, LiveReport, Metrics, SettingsReport};
use thalweg_units::{Seed, Span};

/// File the plan is in, within the guest's folder.
pub(crate) const PLAN_FILE: &str = "plan.json";
/// File the outcome is in.
pub(crate) const OUTCOME_FILE: &str = "outcome.json";
/// File the capture is in.
pub(crate) const CAPTURE_FILE: &str = "capture.pcapng";
/// File the socket samples are in.
pub(crate) const SAMPLES_FILE: &str = "samples.csv";
/// What the names of users' programs' logs end in; before that, the host's name.
pub(crate) const LOG_SUFFIX: &str = ".log";
/// What a console line that tells of progress begins with.
pub(crate) const PROGRESS_MARK: &str = "thalweg-progress";

/// At which ends packets are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CaptureEnds {
    /// At both, as two interfaces of one file.
    #[default]
    Both,
    /// At the client only.
    Client,
    /// At the server only.
    Server,
    /// Nowhere.
    Off,
}

impl CaptureEnds {
    /// Whether there is a capture at the client and at the server.
    pub(crate) const fn at(self) -> (bool, bool) {
        match self {
            Self::Both => (true, true),
            Self::Client => (true, false),
            Self::Server => (false, true),
            Self::Off => (false, false),
        }
    }
}

/// What is recorded during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOptions {
    /// Where packets are captured.
    pub capture: CaptureEnds,
    /// How often `tcp_info` is sampled, in virtual time; `None` for never.
    pub samples: Option<Span>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { capture: CaptureEnds::Both, samples: Some(Span::from_millis(10)) }
    }
}

/// What carries the packets, and by which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Clock {
    /// A lab kernel's disciplines, in its virtual time.
    #[default]
    Virtual,
    /// The emulator, on this host's kernel.
    Real,
}

impl Clock {
    fn is_virtual(&self) -> bool {
        *self == Self::Virtual
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) experiment: Experiment,
    pub(crate) seed: Seed,
    pub(crate) options: RunOptions,
    #[serde(skip_serializing_if = "Clock::is_virtual", default)]
    pub(crate) clock: Clock,
    /// Sysctls that all arms have alike: in real time a run goes on without those that the host refuses.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", default)]
    pub(crate) alike: BTreeSet<String>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Outcome {
    /// It ran.
    Done(Box<Measured>),
    /// It could not be set up or broke off; why, in one sentence.
    Failed(String),
}

/// What a run measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) settings: SettingsReport,
    pub(crate) metrics: Metrics,
    pub(crate) intervals: Vec<Interval>,
    /// What a reader should know, one sentence each.
    pub(crate) notes: Vec<String>,
    /// From boot to halt, or in real time from the workload's start to its end.
    pub(crate) virtual_s: f64,
    /// Packets the capture rings had no room for.
    pub(crate) capture_dropped: u32,
    /// How true the run was, where it was in real time.
    pub(crate) live: Option<LiveReport>,
}
