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

    /// Reads bits, as `3gbit`, `100 Mb/s`, `3.4Mbps`, `64kbit`, and bytes, as `10MB/s`, `10MBps`, `500 KB/s`, `4MiB/s`,
    /// `10mbyte/s`.
    ///
    /// Prefixes are decimal in any case, `Ki`, `Mi` and `Gi` binary. What the two readings share is refused: a size
    /// without a time (`10MB`), a number without a unit (`10M`), and a unit in capitals alone (`10MBPS`).
    ///
    /// # Errors
    /// [`ParseError`] with what to write instead.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let advised = |advice: String| ParseError { text: text.to_owned(), what: "a rate", advice };
        let error = || advised("write it as 3gbit, 3.4Mb/s or 10MB/s".to_owned());
        let (number, unit) = split(text).ok_or_else(error)?;
        let (bytes_or_bits, prefix) = base(unit).ok_or_else(|| {
            let prefix = unit.chars().next().filter(|prefix| "kKmMgGtT".contains(*prefix));
            let prefix = prefix.map_or(String::new(), |prefix| if prefix == 'K' { 'k' } else { prefix }.to_string());
            match unit.to_ascii_lowercase().as_str() {
                "k" | "m" | "g" | "t" | "kb" | "mb" | "gb" | "tb" | "kbps" | "mbps" | "gbps" | "kb/s" | "mb/s"
                | "gb/s" => advised(format!(
                    "'{unit}' can be bits or bytes: write {number}{prefix}b/s for bits or {number}{prefix}B/s for bytes"
                )),
                _ => error(),
            }
        })?;
        let scale = match prefix.to_ascii_lowercase().as_str() {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            "ki" => 1024.0,
            "mi" => 1024.0 * 1024.0,
            "gi" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(error()),
        };
        scaled(number, scale * bytes_or_bits).map(Self).ok_or_else(error)
    }
}

/// Splits a unit of rate into the bits its base stands for and its prefix; `None` where it has no base or can be either.
fn base(unit: &str) -> Option<(f64, &str)> {
    let (unit, per_second) = match unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")) {
        Some(unit) => (unit, true),
        None => (unit, false),
    };
    let ending = |word: &str| {
        let at = unit.len().checked_sub(word.len())?;
        unit.get(at..)?.eq_ignore_ascii_case(word).then(|| &unit[..at])
    };
    if let Some(prefix) = ending("bit").or_else(|| ending("bits")) {
        return Some((1.0, prefix));
    }
    if let Some(prefix) = ending("byte").or_else(|| ending("bytes")).filter(|_| per_second) {
        return Some((8.0, prefix));
    }
    let prefix = unit.strip_suffix('b').map(|prefix| (1.0, prefix));
    prefix.or_else(|| unit.strip_suffix('B').filter(|_| per_second).map(|prefix| (8.0, prefix)))
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
            ("100MBIT", 100_000_000),
            ("10Mb", 10_000_000),
            ("10MB/s", 80_000_000),
            ("10MBps", 80_000_000),
            ("10 mB/s", 80_000_000),
            ("500KB/s", 4_000_000),
            ("1.5GB/s", 12_000_000_000),
            ("125B/s", 1_000),
            ("4MiB/s", 33_554_432),
            ("10mbyte/s", 80_000_000),
            ("2 Mbytes/s", 16_000_000),
            ("1Mibit/s", 1_048_576),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bits)), "{text}");
        }
        for text in ["", "3", "fast", "-1gbit", "3gbyte", "1e99gbit", "3B", "3xb/s", "10MB/h", "3/s"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_can_be_bits_or_bytes_is_refused_with_both() {
        for text in ["10MB", "10m", "10M", "10MBPS", "10MB/S", "10MbPS"] {
            let error = text.parse::<Rate>().expect_err(text).to_string();
            assert!(error.contains("can be bits or bytes: write 10"), "{error}");
        }
        assert_eq!(
            "3KB".parse::<Rate>().map_err(|error| error.to_string()),
            Err("'3KB' is not a rate; 'KB' can be bits or bytes: write 3kb/s for bits or 3kB/s for bytes".to_owned())
        );
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
