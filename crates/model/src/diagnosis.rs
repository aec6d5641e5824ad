//! Why a connection was no faster.

use crate::cause::{Cause, Code, Context, Evidence};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// Where the time of a data phase went: shares of it that add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The sending program had nothing to send.
    #[schemars(range(max = 1))]
    pub application: f64,
    /// The receiver's window was full.
    #[schemars(range(max = 1))]
    pub receive_window: f64,
    /// The sender's socket buffer was full.
    #[schemars(range(max = 1))]
    pub send_buffer: f64,
    /// The congestion window was still growing from its start.
    #[schemars(range(max = 1))]
    pub slow_start: f64,
    /// The congestion window was full, held down by earlier loss or by its own growth.
    #[schemars(range(max = 1))]
    pub congestion_window: f64,
    /// The path delivered all it can.
    #[schemars(range(max = 1))]
    pub path_rate: f64,
    /// Losses were being repaired by fast recovery.
    #[schemars(range(max = 1))]
    pub loss_recovery: f64,
    /// Nothing moved until a retransmission timer or a tail loss probe fired.
    #[schemars(range(max = 1))]
    pub timeout: f64,
    /// The receiving program let its window close.
    #[schemars(range(max = 1))]
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
    /// How much faster the flow would be without it, or its bursts ([`Self::is_of_bursts`]); 1 is no gain, `None` where it cannot be told.
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

    /// Whether it makes the bursts slow that a program sends, and not the pauses between them.
    pub const fn is_of_bursts(&self) -> bool {
        matches!(self.cause, Cause::IdleRestart(_))
    }

    /// How much faster all of it would be: less than the bursts, whose pauses stay as long.
    pub fn gain_of_whole(&self) -> Option<f64> {
        let gain = self.gain?;
        Some(if self.is_of_bursts() { 1.0 / (1.0 - self.share * (1.0 - 1.0 / gain.max(1.0))) } else { gain })
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
        Document::new(self, None).serialize(serializer)
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
        Document::new(&self.verdict, self.depends_on).serialize(serializer)
    }
}

fn evidence(cause: &Cause, context: &[Context]) -> Vec<Evidence> {
    let context = context.iter().flat_map(|context| context.evidence(cause.code()));
    cause.evidence().into_iter().chain(context).collect()
}

/// A cause with its figures, and the sentences they make.
#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    /// The cause's name.
    code: Code,
    /// Its share of the data phase, or of the connection's life.
    #[schemars(range(max = 1))]
    share: f64,
    /// The cause in a sentence or two.
    claim: String,
    /// How many times faster the flow would be without it; 1 is no gain, `None` where it cannot be told.
    gain: Option<f64>,
    /// What causes are ranked by: how many times faster without it, or a bound of that where it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<f64>,
    /// The cause this is a symptom of.
    #[serde(skip_serializing_if = "Option::is_none")]
    depends_on: Option<Code>,
    /// What the claim rests on.
    evidence: Vec<Evidence>,
    /// The cause, with the figures that its sentences show.
    cause: &'a Cause,
    /// What else the verdict rests on.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    context: &'a [Context],
}

impl<'a> Document<'a> {
    fn new(verdict: &'a Verdict, depends_on: Option<Code>) -> Self {
        Self {
            code: verdict.code(),
            share: verdict.share,
            claim: verdict.claim(),
            gain: verdict.gain,
            weight: verdict.weight,
            depends_on,
            evidence: verdict.evidence(),
            cause: &verdict.cause,
            context: &verdict.context,
        }
    }
}

impl JsonSchema for Verdict {
    fn schema_name() -> Cow<'static, str> {
        "Verdict".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Document::json_schema(generator);
        let properties = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut);
        properties.map(|properties| properties.remove("depends_on"));
        schema
    }
}

impl JsonSchema for Finding {
    fn schema_name() -> Cow<'static, str> {
        "Finding".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Document::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Occurrences, Restarts, Sights};

    #[test]
    fn bursts_that_are_twice_as_fast_gain_little_beside_their_pauses() {
        let restarted = Occurrences { count: 9, sights: Sights::default() };
        let restarts = Cause::IdleRestart(Restarts { restarted, timing: None });
        let whole = Verdict::new(restarts, 0.2, Some(2.0)).gain_of_whole().expect("a gain");
        assert!((whole - 1.0 / 0.9).abs() < 1e-9, "{whole}");
    }
}
