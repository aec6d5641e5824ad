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
    /// Something is missing, and the next round trip is of a packet behind it.
    awaited: bool,
    /// Of exact round trips, one that waits for another packet is longer, as that behind which one is missing is, so the lesser of two is
    /// taken; timestamps tell of few, and the longer of two.
    pub(crate) accuracy: Accuracy,
    before_losses: Vec<u32>,
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
        if std::mem::take(&mut self.awaited) {
            self.before(newest.max(before));
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
            self.before(lesser);
        }
    }

    /// At the receiver something is missing before the packet that the next sample is of.
    pub(crate) fn missed(&mut self) {
        self.awaited = true;
    }

    fn before(&mut self, value: u32) {
        if self.before_losses.len() < MAX_LOSSES {
            self.before_losses.push(value);
        }
    }

    /// The round trips before losses, in nanoseconds.
    pub(crate) fn before_losses(&self) -> impl Iterator<Item = f64> {
        self.before_losses.iter().map(|value| f64::from(*value) * 100.0)
    }

    /// Of each loss, the part of all round trips that are shorter than the one before it.
    pub(crate) fn ranks(&self) -> Vec<f64> {
        let mut all = self.all.clone();
        all.sort_unstable();
        let n = all.len().max(1) as f64;
        let rank = |value: &u32| {
            let shorter = all.partition_point(|other| other < value);
            let equal = all.partition_point(|other| other <= value) - shorter;
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
    fn memory_is_bounded() {
        let mut heights = RttBeforeLoss::default();
        for n in 0..1_000_000 {
            heights.sample(&rtt(n * 1_000), Accuracy::Exact);
            heights.missed();
        }
        assert!(heights.all.len() <= MAX_SAMPLES && heights.before_losses.len() <= MAX_LOSSES);
    }
}
