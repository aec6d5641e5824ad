//! Micro-bursts: how much was sent in a millisecond and in a tenth of one, and how much just before what was lost.

use crate::observe::log_histogram::LogHistogram;

/// A tenth of a millisecond, in nanoseconds. `peaks_are_those_of_the_fullest_bins` holds it.
const NARROW_BIN_NS: u64 = 100_000;
/// Packets before a distribution is kept: fewer have none worth a kilobyte. Bounds memory.
const MIN_PACKETS: u64 = 32;
/// Of the packets, the part that was sent after the largest bursts. `losses_behind_bursts_are_told_from_losses_by_chance` holds it.
const LARGEST_BURSTS_QUANTILE: f64 = 0.9;
/// Losses enough to compare with that. `losses_behind_bursts_are_told_from_losses_by_chance` holds it.
const MIN_LOSSES: u64 = 8;

/// One direction's bursts, in bytes of payload.
#[derive(Debug, Default)]
pub(crate) struct Microbursts {
    /// Most of a millisecond and of a tenth of one; the latest tenth, and what is in it.
    wide_max: u64,
    narrow_max: u64,
    narrow: (u64, u64),
    packets: u64,
    all: LogHistogram<3, 40>,
    lost: LogHistogram<3, 40>,
}

/// What losses followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Joined {
    pub(crate) losses: u64,
    /// Of these, the part that was sent after as much as the top tenth of the packets, and the same part of all packets: more than a
    /// tenth where many bursts are alike.
    pub(crate) after_largest: f64,
    pub(crate) by_chance: f64,
    /// Bytes in the millisecond before one, at most.
    pub(crate) most: u64,
}

impl Microbursts {
    /// A packet with payload left, at the end of `burst` bytes in its millisecond.
    pub(crate) fn packet(&mut self, now: u64, len: u32, burst: u64) {
        let (tenth, before) = (now / NARROW_BIN_NS, self.narrow);
        self.narrow = (tenth, u64::from(len) + if before.0 == tenth { before.1 } else { 0 });
        self.narrow_max = self.narrow_max.max(self.narrow.1);
        self.wide_max = self.wide_max.max(burst);
        self.packets += 1;
        if self.packets > MIN_PACKETS {
            self.all.add(burst, 1);
        }
    }

    /// A packet that was sent at the end of `burst` bytes is lost.
    pub(crate) fn lost(&mut self, burst: u32) {
        self.lost.add(u64::from(burst), 1);
    }

    /// Most bytes of a millisecond and of a tenth of one.
    pub(crate) const fn peaks(&self) -> (u64, u64) {
        (self.wide_max, self.narrow_max)
    }

    pub(crate) fn joined(&self) -> Option<Joined> {
        if self.lost.total < MIN_LOSSES || self.all.total < 10 * MIN_LOSSES {
            return None;
        }
        let largest = self.all.percentile(LARGEST_BURSTS_QUANTILE);
        let after_largest = self.lost.from(largest) as f64 / self.lost.total as f64;
        let by_chance = self.all.from(largest) as f64 / self.all.total as f64;
        Some(Joined { losses: self.lost.total, after_largest, by_chance, most: self.lost.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_those_of_the_fullest_bins() {
        let mut bursts = Microbursts::default();
        // A packet each 200 µs, and ten at once in the middle.
        (0..100u64).for_each(|n| bursts.packet(n * 200_000, 1_000, 1_000 * (n % 5 + 1)));
        (1..=10).for_each(|n| bursts.packet(20_000_000, 1_000, 1_000 * n));
        assert_eq!(bursts.peaks(), (10_000, 10_000));
    }

    #[test]
    fn losses_behind_bursts_are_told_from_losses_by_chance() {
        let judge = |lost: fn(u64, u64) -> bool| {
            let mut bursts = Microbursts::default();
            for n in 0..2_000u64 {
                // Each hundredth millisecond has forty packets, the others two.
                for k in 0..if n % 100 == 0 { 40 } else { 2 } {
                    let burst = 1_000 * (k + 1);
                    bursts.packet(n * 1_000_000, 1_000, burst);
                    if lost(n, k) {
                        bursts.lost(burst as u32);
                    }
                }
            }
            bursts.joined().expect("losses")
        };
        let behind = judge(|_, k| k >= 38);
        assert_eq!((behind.losses, behind.after_largest, behind.most), (40, 1.0, 40_000));
        assert!(behind.by_chance < 0.15, "{behind:?}");
        let chance = judge(|n, k| n % 10 == 3 && k == 0);
        assert!(chance.after_largest < 0.2, "{chance:?}");
    }
}
