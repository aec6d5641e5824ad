//! How an object's bytes are divided among ranges: who fetches what, and what is left.

use crate::range_set::RangeSet;

/// Names a worker that fetches ranges one after the other.
pub type WorkerId = u64;

/// The bytes of one object: done, being fetched, or waiting.
///
/// Every byte below the total is in exactly one of the three.
#[derive(Debug, Clone)]
pub struct Division {
    total: u64,
    done: RangeSet,
    waiting: RangeSet,
    claims: Vec<Claim>,
}

/// What one worker fetches.
#[derive(Debug, Clone, Copy)]
struct Claim {
    worker: WorkerId,
    at: u64,
    end: u64,
}

impl Division {
    /// An object of `total` bytes, of which `done` is there.
    pub fn new(total: u64, done: RangeSet) -> Self {
        let mut waiting = RangeSet::of(0, total);
        done.iter().for_each(|(start, end)| waiting.remove(start, end));
        Self { total, done, waiting, claims: Vec::new() }
    }

    /// Gives a worker its next range; `None` if there is nothing worth a request of its own.
    ///
    /// With one range it is all up to the next gap. With several, a request gets half of a fair share of what waits, so that
    /// ranges of different speeds end together (guided self-scheduling, Polychronopoulos and Kuck 1987), but no less than
    /// `least` bytes. If nothing waits, the largest range under way is cut: its worker keeps its fair share.
    pub fn claim(&mut self, worker: WorkerId, ranges: usize, least: u64) -> Option<(u64, u64)> {
        let ranges = ranges.max(1) as u64;
        if self.waiting.bytes() == 0 {
            self.cut(ranges.max(2), least.max(1))?;
        }
        let (start, end) = self.waiting.first()?;
        let share = if ranges == 1 { u64::MAX } else { (self.waiting.bytes() / (2 * ranges)).max(least) };
        // A rest that is not worth a request goes along.
        let end = if end - start <= share.saturating_add(least) { end } else { start + share };
        self.waiting.remove(start, end);
        self.claims.push(Claim { worker, at: start, end });
        Some((start, end))
    }

    /// Claims all that waits from the beginning of the object on, for the request that was made before its size was known.
    pub fn claim_first(&mut self, worker: WorkerId) -> Option<(u64, u64)> {
        (self.waiting.first()?.0 == 0).then(|| self.claim(worker, 1, 0))?
    }

    fn cut(&mut self, ranges: u64, least: u64) -> Option<()> {
        let largest = self.claims.iter_mut().max_by_key(|claim| claim.end - claim.at)?;
        let left = largest.end - largest.at;
        if left / 2 < least {
            return None;
        }
        let kept = (left / ranges).max(least);
        self.waiting.insert(largest.at + kept, largest.end);
        largest.end = largest.at + kept;
        Some(())
    }

    /// Bytes that a worker has yet to fetch; it shrinks when another takes a part.
    pub fn left(&self, worker: WorkerId) -> u64 {
        self.claims.iter().find(|claim| claim.worker == worker).map_or(0, |claim| claim.end - claim.at)
    }

    /// Where the worker's next byte goes.
    pub fn at(&self, worker: WorkerId) -> Option<u64> {
        self.claims.iter().find(|claim| claim.worker == worker).map(|claim| claim.at)
    }

    /// A worker has stored `bytes` more of its range.
    pub fn stored(&mut self, worker: WorkerId, bytes: u64) {
        if let Some(claim) = self.claims.iter_mut().find(|claim| claim.worker == worker) {
            let end = claim.end.min(claim.at + bytes);
            self.done.insert(claim.at, end);
            claim.at = end;
        }
    }

    /// A worker is done with its range; what it did not store waits again.
    pub fn release(&mut self, worker: WorkerId) {
        while let Some(at) = self.claims.iter().position(|claim| claim.worker == worker) {
            let claim = self.claims.swap_remove(at);
            self.waiting.insert(claim.at, claim.end);
        }
    }

    /// Bytes that are stored.
    pub const fn done(&self) -> &RangeSet {
        &self.done
    }

    /// Bytes of the object.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Whether every byte is stored.
    pub fn is_complete(&self) -> bool {
        self.done.bytes() == self.total
    }

    /// Whether a worker that comes now would get something.
    pub fn has_work(&self, least: u64) -> bool {
        self.waiting.bytes() > 0 || self.claims.iter().any(|claim| (claim.end - claim.at) / 2 >= least.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_range_takes_all_and_the_next_ones_take_their_shares_of_it() {
        let mut division = Division::new(1_000, RangeSet::default());
        assert_eq!(division.claim(1, 1, 10), Some((0, 1_000)));
        division.stored(1, 200);
        assert_eq!(
            division.claim(2, 4, 10),
            Some((400, 475)),
            "the first keeps a quarter; half of a share of the rest"
        );
        assert_eq!(division.left(1), 200);
        division.release(2);
        assert_eq!(division.claim(3, 1, 10), Some((400, 1_000)), "what was released waits again");
    }

    #[test]
    fn what_is_not_worth_a_request_is_not_cut() {
        let mut division = Division::new(100, RangeSet::default());
        division.claim(1, 1, 60);
        assert_eq!(division.claim(2, 2, 60), None);
        assert!(!division.has_work(60));
    }

    proptest! {
        /// Whatever workers do, no byte is lost or fetched by two, and in the end all are there.
        #[test]
        fn every_byte_is_fetched_once(
            total in 0u64..10_000,
            resumed in prop::collection::vec((0u64..10_000, 1u64..500), 0..5),
            steps in prop::collection::vec((0u64..6, 0u64..3, 1usize..8, 1u64..900), 0..200),
        ) {
            let mut done = RangeSet::default();
            resumed.iter().for_each(|&(start, len)| done.insert(start.min(total), (start + len).min(total)));
            let mut fetched = vec![0u8; total as usize];
            done.iter().for_each(|(start, end)| fetched[start as usize..end as usize].fill(1));
            let mut division = Division::new(total, done);
            let mut store = |division: &mut Division, worker, bytes: u64| {
                let (at, len) = (division.at(worker), bytes.min(division.left(worker)));
                if let Some(at) = at {
                    fetched[at as usize..(at + len) as usize].iter_mut().for_each(|count| *count += 1);
                    division.stored(worker, len);
                }
            };
            for (worker, act, ranges, bytes) in steps {
                match act {
                    0 => { if division.left(worker) == 0 { division.release(worker); division.claim(worker, ranges, 100); } }
                    1 => store(&mut division, worker, bytes),
                    _ => division.release(worker),
                }
            }
            for worker in 0..6 {
                division.release(worker);
            }
            while division.claim(9, 3, 100).is_some() {
                let left = division.left(9);
                store(&mut division, 9, left);
                division.release(9);
            }
            prop_assert!(division.is_complete());
            prop_assert!(fetched.iter().all(|count| *count == 1));
        }
    }
}
