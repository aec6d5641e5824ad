//! Rates, in bits per second.

use crate::quantity::{ParseError, print, scaled, serde_as_text, split};
use crate::{Bytes, Span};
use std::fmt;
use std::str::FromStr;

/// A data rate in bits per second; decimal prefixes, as the field and `tc` use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bits` per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }

    /// The bandwidth–delay product: what is in flight when `rtt` is filled at this rate.
    pub fn bdp(self, rtt: Span) -> Bytes {
        Bytes::new((self.0 as f64 / 8.0 * rtt.as_secs_f64()).round() as u64)
    }

    /// How long `bytes` take to be sent at this rate; the longest span for a rate of zero.
    pub fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::from_nanos(u64::MAX);
        }
        let nanos = u128::from(bytes.get()) * 8 * 1_000_000_000 / u128::from(self.0);
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads `3gbit`, `100 Mb/s`, `3.4Mbps`, `64kbit`, `10mbyte/s` is not accepted: rates are in bits.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError { text: text.to_owned(), what: "a rate", example: "3gbit or 3.4mbit" };
        let (number, unit) = split(text).ok_or_else(error)?;
        let unit = unit.to_ascii_lowercase();
        let unit = unit.trim_end_matches("/s").trim_end_matches("ps");
        let prefix = unit.strip_suffix("bit").or_else(|| unit.strip_suffix('b')).ok_or_else(error)?;
        let scale = match prefix {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return Err(error()),
        };
        scaled(number, scale).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0 as f64, &[(1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit"), (1.0, "bit")])
    }
}

serde_as_text!(Rate);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_type() {
        for (text, bits) in [
            ("3gbit", 3_000_000_000),
            ("3.4 Mb/s", 3_400_000),
            ("64kbps", 64_000),
            ("100Mbit/s", 100_000_000),
            ("7bit", 7),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bits)), "{text}");
        }
        for text in ["", "3", "fast", "-1gbit", "3gbyte", "1e99gbit"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn bdp_of_the_seed_is_thirteen_megabytes() {
        let bdp = Rate::from_bits_per_second(3_000_000_000).bdp(Span::from_micros(35_700));
        assert_eq!(bdp, Bytes::new(13_387_500));
    }

    #[test]
    fn prints_in_the_largest_unit() {
        assert_eq!(Rate(2_890_000_000).to_string(), "2.89gbit");
        assert_eq!(Rate(999).to_string(), "999bit");
    }
}
