//! Sets of byte ranges, as ordered intervals that do not touch.

use serde::{Deserialize, Serialize};

/// Byte ranges `[start, end)`, ordered, disjoint and not adjacent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RangeSet(Vec<(u64, u64)>);

impl RangeSet {
    /// The set of one range; empty if the range is.
    pub fn of(start: u64, end: u64) -> Self {
        Self(if start < end { vec![(start, end)] } else { Vec::new() })
    }

    /// Adds a range and joins it with those that it touches.
    pub fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.0.partition_point(|&(_, to)| to < start);
        let last = self.0.partition_point(|&(from, _)| from <= end);
        let joined = self.0[first..last].iter().fold((start, end), |(a, b), &(from, to)| (a.min(from), b.max(to)));
        self.0.splice(first..last, [joined]);
    }

    /// Removes a range, wherever it is in the set.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.0.partition_point(|&(_, to)| to <= start);
        let last = self.0.partition_point(|&(from, _)| from < end);
        let rest: Vec<(u64, u64)> = self.0[first..last]
            .iter()
            .flat_map(|&(from, to)| [(from, to.min(start)), (from.max(end), to)])
            .filter(|(from, to)| from < to)
            .collect();
        self.0.splice(first..last, rest);
    }

    /// Bytes in the set.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// The first range.
    pub fn first(&self) -> Option<(u64, u64)> {
        self.0.first().copied()
    }

    /// The end of the last range; 0 for the empty set.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |&(_, end)| end)
    }

    /// Whether the intervals are ordered, disjoint and not adjacent: what a file says may not be.
    pub fn is_valid(&self) -> bool {
        self.0.iter().all(|(start, end)| start < end) && self.0.windows(2).all(|pair| pair[0].1 < pair[1].0)
    }

    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a set of single bytes.
        #[test]
        fn inserting_and_removing_is_that_of_bytes(steps in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..64), 0..40)) {
            let (mut set, mut bytes) = (RangeSet::default(), std::collections::BTreeSet::new());
            for (adds, start, end) in steps {
                if adds {
                    set.insert(start, end);
                    bytes.extend(start..end);
                } else {
                    set.remove(start, end);
                    bytes.retain(|byte| !(start..end).contains(byte));
                }
                prop_assert!(set.is_valid());
                prop_assert!(set.iter().flat_map(|(from, to)| from..to).eq(bytes.iter().copied()));
                prop_assert_eq!(set.bytes(), bytes.len() as u64);
            }
        }
    }
}
