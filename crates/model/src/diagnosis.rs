//! Why a connection was no faster.

use crate::cause::{Cause, Code, Context, Evidence};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// Where the time of a data phase went: shares of it that add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// The sending program had nothing to send.
    pub application: f64,
    /// The receiver's window was full.
    pub receive_window: f64,
    /// The sender's socket buffer was full.
    pub send_buffer: f64,
    /// The congestion window was still growing from its start.
    pub slow_start: f64,
    /// The congestion window was full, held down by earlier loss or by its own growth.
    pub congestion_window: f64,
    /// The path delivered all it can.
    pub path_rate: f64,
    /// Losses were being repaired by fast recovery.
    pub loss_recovery: f64,
    /// Nothing moved until a retransmission timer or a tail loss probe fired.
    pub timeout: f64,
    /// The receiving program let its window close.
    pub reader: f64,
}

impl Limits {
    /// The shares with the names JSON gives them.
    pub const fn named(&self) -> [(&'static str, f64); 9] {
        [
            ("application", self.application),
            ("receive_window", self.receive_window),
            ("send_buffer", self.send_buffer),
            ("slow_start", self.slow_start),
            ("congestion_window", self.congestion_window),
            ("path_rate", self.path_rate),
            ("loss_recovery", self.loss_recovery),
            ("timeout", self.timeout),
            ("reader", self.reader),
        ]
    }

    /// The sum of the shares: 1, or 0 for a flow without a data phase.
    pub fn total(&self) -> f64 {
        self.named().iter().map(|(_, share)| share).sum()
    }
}

/// The cause that costs most.
///
/// As JSON it also has `code`, `claim` and `evidence`: the cause's name and its sentences.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Verdict {
    /// The cause, with its figures.
    pub cause: Cause,
    /// Its share of the data phase, or of the connection's life ([`Code::is_of_life`]).
    pub share: f64,
    /// How much faster the flow would be without it; 1 is no gain, `None` where it cannot be told.
    pub gain: Option<f64>,
    /// What causes are ranked by: how many times faster without it, or a bound of that where it cannot be told.
    #[serde(default)]
    pub weight: Option<f64>,
    /// What else the verdict rests on.
    #[serde(default)]
    pub context: Vec<Context>,
}

impl Verdict {
    /// A verdict that rests on its cause's figures alone.
    pub const fn new(cause: Cause, share: f64, gain: Option<f64>) -> Self {
        Self { cause, share, gain, weight: None, context: Vec::new() }
    }

    /// The cause's name.
    pub const fn code(&self) -> Code {
        self.cause.code()
    }

    /// The cause in a sentence or two, with its figures.
    pub fn claim(&self) -> String {
        self.cause.claim(self.share)
    }

    /// What the claim rests on.
    pub fn evidence(&self) -> Vec<Evidence> {
        evidence(&self.cause, &self.context)
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        document(self, None, serializer)
    }
}

/// Something else worth knowing about a flow.
///
/// As JSON it also has `code`, `claim` and `evidence`, as [`Verdict`] has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Finding {
    /// The cause, its share and its gain.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The cause this is a symptom of.
    #[serde(default)]
    pub depends_on: Option<Code>,
}

impl Finding {
    /// The cause's name.
    pub const fn code(&self) -> Code {
        self.verdict.code()
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        document(&self.verdict, self.depends_on, serializer)
    }
}

fn evidence(cause: &Cause, context: &[Context]) -> Vec<Evidence> {
    let context = context.iter().flat_map(|context| context.evidence(cause.code()));
    cause.evidence().into_iter().chain(context).collect()
}

/// Writes a verdict, or a finding, with its sentences.
fn document<S: Serializer>(verdict: &Verdict, depends_on: Option<Code>, serializer: S) -> Result<S::Ok, S::Error> {
    let Verdict { cause, share, gain, weight, context } = verdict;
    let mut written = serializer.serialize_struct("Verdict", 9)?;
    written.serialize_field("code", &cause.code())?;
    written.serialize_field("share", share)?;
    written.serialize_field("claim", &verdict.claim())?;
    written.serialize_field("gain", gain)?;
    if let Some(weight) = weight {
        written.serialize_field("weight", weight)?;
    }
    if let Some(depends_on) = depends_on {
        written.serialize_field("depends_on", &depends_on)?;
    }
    written.serialize_field("evidence", &verdict.evidence())?;
    written.serialize_field("cause", cause)?;
    if !context.is_empty() {
        written.serialize_field("context", context)?;
    }
    written.end()
}
