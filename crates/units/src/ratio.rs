//! Parts of a whole.

use crate::quantity::{ParseError, serde_as_text, split};
use std::fmt;
use std::str::FromStr;

/// A part of a whole, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ratio(f64);

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);

    /// A ratio; `None` outside 0 to 1.
    pub fn new(ratio: f64) -> Option<Self> {
        (0.0..=1.0).contains(&ratio).then_some(Self(ratio))
    }

    /// The part, between 0 and 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Ratio {
    type Err = ParseError;

    /// Reads `0.1%` or `0.001`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError {
            text: text.to_owned(),
            what: "a part between 0% and 100%",
            advice: "write it as 0.1% or 0.001".to_owned(),
        };
        let (number, unit) = split(text).ok_or_else(error)?;
        let ratio = match unit {
            "%" => number / 100.0,
            "" => number,
            _ => return Err(error()),
        };
        Self::new(ratio).ok_or_else(error)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.10}", self.0 * 100.0);
        write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

serde_as_text!(Ratio);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_of_two_hundred_percent_is_refused() {
        assert_eq!("0.1%".parse::<Ratio>().map(Ratio::get), Ok(0.001));
        assert_eq!("100%".parse::<Ratio>().map(Ratio::get), Ok(1.0));
        for text in ["200%", "-1%", "2", "x"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }
}
