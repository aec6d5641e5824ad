//! Sizes, in bytes.

use crate::quantity::{ParseError, scaled, serde_as_text, split};
use std::fmt;
use std::str::FromStr;

/// A size in bytes. `kB`/`KB`, `MB`, `GB` are decimal, `KiB`, `MiB`, `GiB` binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// A size of `bytes`.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    /// Reads `500MB`, `64KiB`, `117118`, `128 kB`, `16M` (decimal).
    ///
    /// A lower-case `b` after a prefix is refused: it stands for bits.
    ///
    /// # Errors
    /// [`ParseError`] with what to write instead.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let advised = |advice: String| ParseError { text: text.to_owned(), what: "a size", advice };
        let error = || advised("write it as 500MB, 64KiB or 117118".to_owned());
        let (number, unit) = split(text).ok_or_else(error)?;
        let bits = unit.len() > 1 && unit.ends_with('b') || unit.to_ascii_lowercase().ends_with("bit");
        if let (true, Some(prefix)) = (bits, unit.chars().next().filter(|prefix| "kKmMgG".contains(*prefix))) {
            let binary = if unit.contains('i') && unit.ends_with('b') { "i" } else { "" };
            let bytes = format!("{}{binary}B", if binary.is_empty() && prefix == 'K' { 'k' } else { prefix });
            return Err(advised(format!("'{unit}' is bits, and a size is in bytes: write {number}{bytes}")));
        }
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "b" | "byte" | "bytes" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "kib" => 1024.0,
            "mib" => 1024.0 * 1024.0,
            "gib" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(error()),
        };
        scaled(number, scale).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Bytes {
    /// Prints exactly: a unit is used only where it divides the size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (scale, unit) in [
            (1 << 30, "GiB"),
            (1_000_000_000, "GB"),
            (1 << 20, "MiB"),
            (1_000_000, "MB"),
            (1 << 10, "KiB"),
            (1_000, "kB"),
        ] {
            if self.0 >= scale && self.0.is_multiple_of(scale) {
                return write!(f, "{}{unit}", self.0 / scale);
            }
        }
        write!(f, "{}B", self.0)
    }
}

serde_as_text!(Bytes);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_type() {
        for (text, bytes) in
            [("500MB", 500_000_000), ("64KiB", 65_536), ("117118", 117_118), ("1.5 kB", 1_500), ("1_000", 1_000)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "big", "-1", "10 packets"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn bits_are_refused_with_the_bytes_to_write() {
        for (text, wanted) in
            [("64kb", "64kB"), ("1Mb", "1MB"), ("2 Gb", "2GB"), ("4Mib", "4MiB"), ("10Mbit", "10MB"), ("3Kb", "3kB")]
        {
            let error = text.parse::<Bytes>().expect_err(text);
            assert!(error.advice.ends_with(&format!("write {wanted}")), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn print_then_parse_is_exact(bytes in 0u64..1 << 50) {
            prop_assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
    }
}
