//! Counts by size, in bins that grow with it.

/// Bins for each doubling, as a power of two: values are known to 6 %, at most.
const FINE: u32 = 3;
/// Doublings.
const OCTAVES: usize = 40;
const BINS: usize = (OCTAVES + 1) << FINE;

/// How many values there were of each size; nothing is kept until the first.
#[derive(Debug, Default)]
pub(crate) struct LogHistogram {
    bins: Option<Box<[u32; BINS]>>,
    pub(crate) total: u64,
    pub(crate) max: u64,
}

/// The bin of a value: small ones have their own.
fn bin(value: u64) -> usize {
    let octave = value.max(1).ilog2();
    let bin = match octave.checked_sub(FINE) {
        None => value as usize,
        Some(over) => ((over as usize + 1) << FINE) + ((value >> over) as usize & ((1 << FINE) - 1)),
    };
    bin.min(BINS - 1)
}

/// The middle of a bin.
fn middle(bin: usize) -> u64 {
    let (octave, part) = (bin >> FINE, (bin & ((1 << FINE) - 1)) as u64);
    if octave == 0 {
        return part;
    }
    let over = octave - 1;
    ((part + (1 << FINE)) << over) + ((1 << over) >> 1)
}

impl LogHistogram {
    pub(crate) fn add(&mut self, value: u64) {
        let bins = self.bins.get_or_insert_with(|| Box::new([0; BINS]));
        bins[bin(value)] = bins[bin(value)].saturating_add(1);
        self.total += 1;
        self.max = self.max.max(value);
    }

    /// The value that this part of all is at or under; of all, the largest.
    pub(crate) fn percentile(&self, part: f64) -> u64 {
        if part >= 1.0 {
            return self.max;
        }
        let mut left = (part * self.total as f64).ceil().max(1.0) as u64;
        let bins = self.bins.iter().flat_map(|bins| bins.iter());
        for (bin, &count) in bins.enumerate() {
            if u64::from(count) >= left {
                return middle(bin).min(self.max);
            }
            left -= u64::from(count);
        }
        self.max
    }

    /// How many are in the bin of `value` or above it.
    pub(crate) fn from(&self, value: u64) -> u64 {
        self.bins.iter().flat_map(|bins| &bins[bin(value)..]).map(|&count| u64::from(count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bins_middle_is_near_its_values(value in 0u64..1 << 40) {
            let found = middle(bin(value));
            prop_assert!(found.abs_diff(value) * 16 <= value, "{value} {found}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let mut counts = LogHistogram::default();
        (1..=1_000).for_each(|n| counts.add(n));
        assert!(counts.percentile(0.8).abs_diff(800) <= 50 && counts.percentile(1.0) == 1_000);
        assert!(counts.from(901).abs_diff(100) <= 64, "{}", counts.from(901));
    }
}
