//! Micro-bursts: how much was sent in a millisecond and in a tenth of one, and how much just before what was lost.

use crate::observe::log_histogram::LogHistogram;

/// Widths of the bins, in nanoseconds. `peaks_are_those_of_the_fullest_bins` holds both.
const WIDE_BIN_NS: u64 = 1_000_000;
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
    wide: Bin,
    narrow: Bin,
    packets: u64,
    all: LogHistogram<3, 40>,
    lost: LogHistogram<3, 40>,
}

#[derive(Debug, Default)]
struct Bin {
    index: u64,
    bytes: u64,
    /// Of the bin just before.
    before: u64,
    most: u64,
}

impl Bin {
    fn add(&mut self, index: u64, bytes: u64) {
        if index != self.index {
            self.before = if index == self.index + 1 { self.bytes } else { 0 };
            (self.index, self.bytes) = (index, 0);
        }
        self.bytes += bytes;
        self.most = self.most.max(self.bytes);
    }
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
    /// A packet left; gives the bytes that its millisecond has so far, or the one before had, whichever is more.
    pub(crate) fn sent(&mut self, now: u64, len: u32) -> u32 {
        self.wide.add(now / WIDE_BIN_NS, u64::from(len));
        self.narrow.add(now / NARROW_BIN_NS, u64::from(len));
        let burst = self.wide.bytes.max(self.wide.before);
        self.packets += 1;
        if self.packets > MIN_PACKETS {
            self.all.add(burst, 1);
        }
        burst.min(u64::from(u32::MAX)) as u32
    }

    /// A packet that was sent at the end of `burst` bytes is lost.
    pub(crate) fn lost(&mut self, burst: u32) {
        self.lost.add(u64::from(burst), 1);
    }

    /// Most bytes of a millisecond and of a tenth of one.
    pub(crate) const fn peaks(&self) -> (u64, u64) {
        (self.wide.most, self.narrow.most)
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
        for n in 0..100u64 {
            bursts.sent(n * 200_000, 1_000);
        }
        (0..10).for_each(|_| {
            bursts.sent(20_000_000, 1_000);
        });
        assert_eq!(bursts.peaks(), (10_000, 10_000));
        assert_eq!(bursts.sent(20_000_000, 500), 10_500);
        assert_eq!(bursts.sent(21_500_000, 500), 10_500, "the bin before counts");
        assert_eq!(bursts.sent(30_000_000, 500), 500);
    }

    #[test]
    fn losses_behind_bursts_are_told_from_losses_by_chance() {
        let judge = |lost: fn(u64, u64) -> bool| {
            let mut bursts = Microbursts::default();
            for n in 0..2_000u64 {
                // Each hundredth millisecond has forty packets, the others two.
                for k in 0..if n % 100 == 0 { 40 } else { 2 } {
                    let burst = bursts.sent(n * WIDE_BIN_NS, 1_000);
                    if lost(n, k) {
                        bursts.lost(burst);
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
