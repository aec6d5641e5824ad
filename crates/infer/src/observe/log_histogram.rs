//! The histogram of all observers: values or bytes by size, in bins that grow with it.
//!
//! `hdrhistogram` was compared: it keeps 64-bit counters for its whole range from the first value on, and each connection has several of
//! these. Here nothing is kept before the first value, and a bin is found by one `ilog2`.

/// Counts by size: `1 << FINE` bins for each doubling of the value, for `OCTAVES` doublings.
///
/// A value is known to half a bin: 6 % with `FINE` 3, 1.6 % with `FINE` 5.
#[derive(Debug, Default)]
pub(crate) struct LogHistogram<const FINE: u32, const OCTAVES: usize> {
    bins: Option<Box<[u64]>>,
    pub(crate) total: u64,
    pub(crate) max: u64,
}

impl<const FINE: u32, const OCTAVES: usize> LogHistogram<FINE, OCTAVES> {
    /// It bounds memory.
    const BINS: usize = (OCTAVES + 1) << FINE;

    /// The bin of a value: small ones have their own.
    fn bin(value: u64) -> usize {
        let bin = match value.max(1).ilog2().checked_sub(FINE) {
            None => value as usize,
            Some(over) => ((over as usize + 1) << FINE) + ((value >> over) as usize & ((1 << FINE) - 1)),
        };
        bin.min(Self::BINS - 1)
    }

    /// The middle of a bin.
    const fn middle(bin: usize) -> u64 {
        let (octave, part) = (bin >> FINE, (bin & ((1 << FINE) - 1)) as u64);
        if octave == 0 {
            return part;
        }
        let over = octave - 1;
        ((part + (1 << FINE)) << over) + ((1 << over) >> 1)
    }

    /// Adds a value that weighs `weight`.
    pub(crate) fn add(&mut self, value: u64, weight: u64) {
        let bins = self.bins.get_or_insert_with(|| vec![0; Self::BINS].into_boxed_slice());
        bins[Self::bin(value)] += weight;
        self.total += weight;
        self.max = self.max.max(value);
    }

    /// The value that this part of all is at or under; of all, the largest.
    pub(crate) fn percentile(&self, part: f64) -> u64 {
        if part >= 1.0 {
            return self.max;
        }
        let mut left = (part * self.total as f64).ceil().max(1.0) as u64;
        for (bin, &count) in self.bins.iter().flat_map(|bins| bins.iter()).enumerate() {
            if count >= left {
                return Self::middle(bin).min(self.max);
            }
            left -= count;
        }
        self.max
    }

    /// How many are in the bin of `value` or above it.
    pub(crate) fn from(&self, value: u64) -> u64 {
        self.bins.iter().flat_map(|bins| &bins[Self::bin(value)..]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Coarse = LogHistogram<3, 40>;

    proptest! {
        #[test]
        fn a_bins_middle_is_near_its_values(value in 0u64..1 << 40) {
            let found = Coarse::middle(Coarse::bin(value));
            prop_assert!(found.abs_diff(value) * 16 <= value, "{value} {found}");
            let found = LogHistogram::<5, 40>::middle(LogHistogram::<5, 40>::bin(value));
            prop_assert!(found.abs_diff(value) * 64 <= value, "{value} {found}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut counts = Coarse::default();
        (1..=1_000).for_each(|n| counts.add(n, 1));
        assert!(counts.percentile(0.8).abs_diff(800) <= 50 && counts.percentile(1.0) == 1_000);
        assert!(counts.from(901).abs_diff(100) <= 64, "{}", counts.from(901));
    }

    #[test]
    fn values_weigh_what_they_are_given() {
        let mut counts = Coarse::default();
        counts.add(10, 900);
        counts.add(1_000, 100);
        assert_eq!((counts.percentile(0.9), counts.percentile(0.91), counts.total), (10, 992, 1_000));
    }
}
