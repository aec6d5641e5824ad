//! Lengths of time, in nanoseconds.

use crate::quantity::{ParseError, print, scaled, serde_as_text, split};
use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use std::time::Duration;

/// A length of time, exact to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of `seconds`, rounded to the nanosecond; zero for a negative or non-finite number.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self(scaled(seconds, 1e9).unwrap_or(0))
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Milliseconds, with fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds, with fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time by which this is longer than `other`; zero if it is not.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// As the standard library's type.
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl Add for Span {
    type Output = Self;

    /// The sum, at most the longest span that can be represented.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl FromStr for Span {
    type Err = ParseError;

    /// Reads `35.7ms`, `250 us`, `10s`, `2min`, `1h`, `17ns`; `0` needs no unit.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let advised = |advice: String| ParseError { text: text.to_owned(), what: "a time", advice };
        let error = || advised("write it as 35ms or 1.5s".to_owned());
        let (number, unit) = split(text).ok_or_else(error)?;
        if unit.eq_ignore_ascii_case("m") {
            return Err(advised(format!("'{unit}' is no unit of time: write {number}ms or {number}min")));
        }
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" | "sec" => 1e9,
            "min" => 60e9,
            "h" => 3_600e9,
            "" if number == 0.0 => 1.0,
            _ => return Err(error()),
        };
        scaled(number, scale).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0 as f64, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
    }
}

serde_as_text!(Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        for (text, nanos, printed) in [
            ("35.7ms", 35_700_000, "35.7ms"),
            ("250us", 250_000, "250us"),
            ("2min", 120_000_000_000, "120s"),
            ("0", 0, "0ns"),
        ] {
            let span: Span = text.parse().expect(text);
            assert_eq!((span, span.to_string().as_str()), (Span(nanos), printed), "{text}");
        }
        for text in ["", "35", "-5ms", "soon", "5m"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert_eq!(
            "5m".parse::<Span>().map_err(|error| error.to_string()),
            Err("'5m' is not a time; 'm' is no unit of time: write 5ms or 5min".to_owned())
        );
    }
}
