//! Points in time.

use crate::Span;
use std::fmt;

/// A point in time: nanoseconds since 1970-01-01 UTC, as capture files give it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The point `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero when `earlier` is later, as happens in captures whose clock was stepped.
    pub const fn since(self, earlier: Self) -> Span {
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Seconds since `earlier`, negative when it is later.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        (i128::from(self.0) - i128::from(earlier.0)) as f64 / 1e9
    }
}

impl fmt::Display for Timestamp {
    /// Seconds since the epoch, to the nanosecond.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
