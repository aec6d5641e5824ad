//! Sets of byte ranges: what was selectively acknowledged, sent again, or never seen.

use crate::reset::Reset;

/// Most separate ranges a set keeps: four times the 16 K segments Linux lets a 1 GiB window hold at the usual SACK density.
const MAX_RANGES: usize = 1 << 16;

/// Disjoint, ordered, half-open ranges of unwrapped sequence numbers.
#[derive(Debug, Default, Clone)]
pub(crate) struct RangeSet {
    ranges: Vec<(u64, u64)>,
    total: u64,
}

impl Reset for RangeSet {
    fn reset(&mut self) {
        self.ranges.reset();
        self.total = 0;
    }
}

impl RangeSet {
    /// Bytes in the set.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// The first range: where it begins, and where it ends.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.first().copied()
    }

    /// The parts of its ranges that lie before `end`.
    pub(crate) fn below(&self, end: u64) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().take_while(move |range| range.0 < end).map(move |range| (range.0, range.1.min(end)))
    }

    /// Takes everything before `by` out, and counts what remains from there.
    pub(crate) fn shift(&mut self, by: u64) {
        self.remove_below(by);
        for range in &mut self.ranges {
            *range = (range.0 - by, range.1 - by);
        }
    }

    /// The end of the last range.
    pub(crate) fn end(&self) -> Option<u64> {
        self.ranges.last().map(|r| r.1)
    }

    /// Adds `[start, end)` and gives how many of its bytes are new to the set.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let from = self.ranges.partition_point(|r| r.1 < start);
        let to = from + self.ranges[from..].partition_point(|r| r.0 <= end);
        if from == to {
            if self.ranges.len() >= MAX_RANGES {
                return 0;
            }
            self.ranges.insert(from, (start, end));
            self.total += end - start;
            return end - start;
        }
        let merged = (start.min(self.ranges[from].0), end.max(self.ranges[to - 1].1));
        let had: u64 = self.ranges[from..to].iter().map(|r| r.1 - r.0).sum();
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
        let new = merged.1 - merged.0 - had;
        self.total += new;
        new
    }

    /// Takes `[start, end)` out and gives how many bytes that were.
    pub(crate) fn remove(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let from = self.ranges.partition_point(|r| r.1 <= start);
        let to = from + self.ranges[from..].partition_point(|r| r.0 < end);
        if from == to {
            return 0;
        }
        let (first, last) = (self.ranges[from], self.ranges[to - 1]);
        let had: u64 = self.ranges[from..to].iter().map(|r| r.1 - r.0).sum();
        let left = (first.0 < start).then_some((first.0, start));
        let right = (last.1 > end).then_some((end, last.1));
        let kept: u64 = left.iter().chain(&right).map(|r| r.1 - r.0).sum();
        self.ranges.splice(from..to, left.into_iter().chain(right));
        self.total -= had - kept;
        had - kept
    }

    /// Takes everything before `end` out and gives how many bytes that were.
    pub(crate) fn remove_below(&mut self, end: u64) -> u64 {
        if self.ranges.first().is_none_or(|r| r.0 >= end) { 0 } else { self.remove(0, end) }
    }

    /// Whether any byte of `[start, end)` is in the set.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let from = self.ranges.partition_point(|r| r.1 <= start);
        self.ranges.get(from).is_some_and(|r| r.0 < end)
    }

    /// How many bytes of `[start, end)` are in the set.
    pub(crate) fn covered(&self, start: u64, end: u64) -> u64 {
        let from = self.ranges.partition_point(|r| r.1 <= start);
        let within = self.ranges[from..].iter().take_while(|r| r.0 < end);
        within.map(|r| r.1.min(end) - r.0.max(start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(ops in proptest::collection::vec((any::<bool>(), 0u64..64, 0u64..20), 0..60)) {
            let (mut ranges, mut bits) = (RangeSet::default(), [false; 96]);
            for (add, start, length) in ops {
                let span = start as usize..(start + length) as usize;
                let differing = bits[span.clone()].iter().filter(|bit| **bit != add).count() as u64;
                let changed = if add { ranges.insert(start, start + length) } else { ranges.remove(start, start + length) };
                prop_assert_eq!(changed, differing);
                bits[span].fill(add);
                prop_assert_eq!(ranges.total(), bits.iter().filter(|bit| **bit).count() as u64);
                let held = bits[2..50].iter().filter(|bit| **bit).count() as u64;
                prop_assert_eq!(ranges.covered(2, 50), held);
                for at in 0..96u64 {
                    prop_assert_eq!(ranges.overlaps(at, at + 1), bits.get(at as usize).copied().unwrap_or(false));
                }
            }
        }
    }
}
