//! Seeds of random numbers.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// What every random number of a run derives from; the same seed gives the same run, byte for byte.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Seed(u64);

impl Seed {
    /// A seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// A seed for part `salt` of a run, unrelated to those of its other parts.
    ///
    /// Source: SplitMix64; Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    pub const fn derive(self, salt: u64) -> Self {
        let mut z = self.0.wrapping_add(salt.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(z ^ (z >> 31))
    }
}

impl Default for Seed {
    fn default() -> Self {
        Self(1)
    }
}

impl FromStr for Seed {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
