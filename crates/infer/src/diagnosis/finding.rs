//! What a rule is, and what it found.

use crate::diagnosis::facts::Facts;
use thalweg_model::{Code, Evidence};

/// Gains below this are not worth a change: run-to-run spread of a bulk transfer on a quiet path is of this size.
///
/// Below it the verdict is `nothing-to-gain`.
pub(crate) const MIN_GAIN: f64 = 1.05;

/// The weight of what lets nothing through, and the most that is told.
pub(crate) const MAX_WEIGHT: f64 = 1e6;

/// A rule: one cause.
pub(crate) struct Rule {
    pub(crate) code: Code,
    pub(crate) judge: fn(&Facts<'_>) -> Option<Judged>,
}

/// What a rule found.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) share: f64,
    /// By what the causes are ranked: how many times faster without it, even where that is only a bound.
    pub(crate) weight: f64,
    /// How many times faster without it, where it can be told.
    pub(crate) gain: Option<f64>,
    pub(crate) claim: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) depends_on: Option<Code>,
}

/// A fact without packets to point at.
pub(crate) fn fact(text: String) -> Evidence {
    Evidence { text, packets: Vec::new(), time_s: None }
}

/// A fact that the packets of `sights` (number and nanoseconds) show.
pub(crate) fn seen(text: String, sights: &[(u64, u64)]) -> Evidence {
    Evidence { text, packets: sights.iter().map(|s| s.0).collect(), time_s: sights.first().map(|s| s.1 as f64 / 1e9) }
}
