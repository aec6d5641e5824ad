//! The generator of random numbers.

use thalweg_units::Seed;

/// SplitMix64: each number is the hash of a counter.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    seed: Seed,
    drawn: u64,
}

impl Random {
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    /// A number of 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        self.seed.derive(self.drawn).get()
    }

    /// A number in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in 0..`end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_and_repeat_with_the_seed() {
        let draw = |seed| {
            let mut random = Random::new(Seed::new(seed));
            (0..100_000).map(|_| random.unit()).collect::<Vec<f64>>()
        };
        let numbers = draw(7);
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
        assert_eq!(numbers, draw(7));
        assert_ne!(numbers, draw(8));
    }
}
