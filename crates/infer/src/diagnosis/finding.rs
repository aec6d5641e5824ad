//! What a rule is, and what it found.

use crate::diagnosis::facts::Facts;
use crate::observe::counted::Counted;
use thalweg_model::{Cause, Code, Occurrences, Sights};

/// Gains below this are not worth a change: run-to-run spread of a bulk transfer on a quiet path is of this size.
///
/// Below it the verdict is `nothing-to-gain`.
pub(crate) const MIN_GAIN: f64 = 1.05;

/// The weight of a cause that lets nothing through, and the largest that is reported. JSON has no infinity (RFC 8259 §6).
pub(crate) const MAX_WEIGHT: f64 = 1e6;

/// A rule: judges the facts for one cause.
pub(crate) type Rule = fn(&Facts<'_>) -> Option<Judged>;

/// What a rule found.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) cause: Cause,
    pub(crate) share: f64,
    /// What the causes are ranked by: how many times faster without it, even where that is only a bound.
    pub(crate) weight: f64,
    /// How many times faster without it, where it is known.
    pub(crate) gain: Option<f64>,
    pub(crate) depends_on: Option<Code>,
    /// It slows bursts down: it comes before the pauses between them, which are the program's own.
    pub(crate) in_bursts: bool,
}

impl Judged {
    /// A finding with a known gain, or none, that is ranked by `weight` alone.
    pub(crate) const fn new(cause: Cause, share: f64, weight: f64, gain: Option<f64>) -> Self {
        Self { cause, share, weight, gain, depends_on: None, in_bursts: false }
    }
}

/// The packets that show a fact: of each its number, and its time in nanoseconds since the connection's first.
pub(crate) fn sights(seen: &[(u64, u64)]) -> Sights {
    Sights { packets: seen.iter().map(|one| one.0).collect(), time_s: seen.first().map(|one| one.1 as f64 / 1e9) }
}

/// The same of what was counted.
pub(crate) fn counted(counted: &Counted) -> Occurrences {
    occurrences(counted.count, &counted.first)
}

/// How often something happened, and the packets that show it.
pub(crate) fn occurrences(count: u64, seen: &[(u64, u64)]) -> Occurrences {
    Occurrences { count, sights: sights(seen) }
}
