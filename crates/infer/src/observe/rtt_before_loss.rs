//! How long the round trip was just before each loss, held against all round trips.
//!
//! What a full queue drops follows packets that stood in it: their round trips are the longest there are, however short the queue.
//! What is lost by chance follows any packet, and the round trips before losses are as all others are: each is equally likely to be the
//! shortest and the longest.

use crate::event::{Accuracy, RttSample};
use crate::reset::{Reset, reset_keeping};

/// Round trips kept of all; at a thousand a rank errs by 3 %. Bounds memory.
const MAX_SAMPLES: usize = 1 << 10;
/// Of those before losses. Bounds memory.
const MAX_LOSSES: usize = 1 << 10;
/// Round trips: a sample of all, and those before losses; tenths of a microsecond.
#[derive(Debug, Default)]
pub(crate) struct RttBeforeLoss {
    all: Vec<u32>,
    /// One in this many is kept.
    every: u32,
    skipped: u32,
    newest: Option<u32>,
    /// The lesser of the last two while all was calm.
    lesser: Option<u32>,
    /// The data that begins here is missing, and the next round trip is of a packet behind it.
    awaited: Option<u64>,
    /// Of exact round trips, one that waits for another packet is longer, as that behind which one is missing is, so the lesser of two is
    /// taken; timestamps tell of few, and the longer of two.
    pub(crate) accuracy: Accuracy,
    before_losses: Vec<Before>,
}

/// A round trip before a loss.
#[derive(Debug, Clone, Copy)]
struct Before {
    rtt: u32,
    /// Where what is missing at the receiver begins; nothing takes back what the sender found lost.
    missing: Option<u64>,
}

impl Reset for RttBeforeLoss {
    fn reset(&mut self) {
        reset_keeping!(self, all, before_losses);
    }
}

impl RttBeforeLoss {
    pub(crate) fn sample(&mut self, sample: &RttSample, accuracy: Accuracy) {
        self.accuracy = accuracy;
        let newest = (sample.rtt / 100).min(u64::from(u32::MAX)) as u32;
        let before = self.newest.replace(newest).unwrap_or(newest);
        if let Some(missing) = self.awaited.take() {
            self.before(newest.max(before), Some(missing));
        }
        if sample.is_repairing {
            return;
        }
        self.lesser = Some(newest.min(before));
        let value = if accuracy == Accuracy::Exact { newest.min(before) } else { newest.max(before) };
        self.skipped += 1;
        if self.skipped < self.every {
            return;
        }
        self.skipped = 0;
        if self.all.len() >= MAX_SAMPLES {
            let mut odd = false;
            self.all.retain(|_| {
                odd = !odd;
                odd
            });
            self.every = self.every.max(1) * 2;
        }
        if self.all.capacity() == 0 {
            self.all.reserve(32);
        }
        self.all.push(value);
    }

    /// The sender found something lost: it was sent behind the packet of the last sample.
    pub(crate) fn lost(&mut self) {
        if let Some(lesser) = self.lesser.take() {
            self.before(lesser, None);
        }
    }

    /// At the receiver the data that begins here is missing before the packet that the next sample is of.
    pub(crate) fn missed(&mut self, from: u64) {
        self.awaited = Some(from);
    }

    /// What was missing of `[start, end)` arrived without having come to the tap: it was not lost.
    pub(crate) fn uncaptured(&mut self, start: u64, end: u64) {
        let is_here = |from: &u64| (start..end).contains(from);
        self.awaited = self.awaited.filter(|from| !is_here(from));
        while self.before_losses.last().is_some_and(|last| last.missing.as_ref().is_some_and(is_here)) {
            self.before_losses.pop();
        }
    }

    fn before(&mut self, rtt: u32, missing: Option<u64>) {
        if self.before_losses.len() < MAX_LOSSES {
            self.before_losses.push(Before { rtt, missing });
        }
    }

    /// The round trips before losses, in nanoseconds.
    pub(crate) fn before_losses(&self) -> impl Iterator<Item = f64> {
        self.before_losses.iter().map(|before| f64::from(before.rtt) * 100.0)
    }

    /// Of each loss, the part of all round trips that are shorter than the one before it.
    pub(crate) fn ranks(&self) -> Vec<f64> {
        let mut all = self.all.clone();
        all.sort_unstable();
        let n = all.len().max(1) as f64;
        let rank = |before: &Before| {
            let shorter = all.partition_point(|other| *other < before.rtt);
            let equal = all.partition_point(|other| *other <= before.rtt) - shorter;
            (shorter as f64 + equal as f64 / 2.0) / n
        };
        self.before_losses.iter().map(rank).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn rtt(rtt: u64) -> RttSample {
        RttSample { now: 0, rtt, passed_at: 0, late: None, is_repairing: false }
    }

    /// A window that grows over a queue of twenty packets, 100 µs each, and is cut when it overflows; every `chance`th packet is lost as well.
    fn followed(chance: u64) -> RttBeforeLoss {
        let mut heights = RttBeforeLoss::default();
        let mut packets = 0u64;
        for _ in 0..10 {
            for queue in 0..20 {
                for _ in 0..40 {
                    packets += 1;
                    heights.sample(&rtt(20_000_000 + queue * 100_000), Accuracy::Exact);
                    if chance > 0 && packets.is_multiple_of(chance) {
                        heights.lost();
                    }
                }
            }
            if chance == 0 {
                heights.lost();
            }
        }
        heights
    }

    #[test]
    fn overflows_rank_highest_and_chance_ranks_anywhere() {
        let overflows = followed(0).ranks();
        assert_eq!(overflows.len(), 10);
        assert!(overflows.iter().all(|rank| *rank > 0.95), "{overflows:?}");
        let chance = followed(331).ranks();
        let mean = chance.iter().sum::<f64>() / chance.len() as f64;
        assert!((0.4..0.6).contains(&mean), "{chance:?}");
    }

    #[test]
    fn what_the_tap_alone_missed_is_no_loss() {
        let mut heights = RttBeforeLoss::default();
        let sample = |heights: &mut RttBeforeLoss| heights.sample(&rtt(1_000_000), Accuracy::Tick);
        heights.missed(1_000);
        sample(&mut heights);
        for missing in [2_000, 3_000] {
            heights.missed(missing);
            sample(&mut heights);
        }
        heights.missed(4_000);
        heights.uncaptured(2_000, 5_000);
        sample(&mut heights);
        assert_eq!(heights.before_losses().count(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let mut heights = RttBeforeLoss::default();
        for n in 0..1_000_000 {
            heights.sample(&rtt(n * 1_000), Accuracy::Exact);
            heights.missed(n);
        }
        assert!(heights.all.len() <= MAX_SAMPLES && heights.before_losses.len() <= MAX_LOSSES);
    }
}
