//! Loss as the path has it: for how long, and how much of what was sent meanwhile. An episode is one of the path's, not one of recovery's.

use crate::event::Unseen;
use crate::observe::log_histogram::LogHistogram;

/// Packets missing in one place that are noted one by one. Bounds memory.
const MAX_MISSING: u64 = 4_096;
/// What is lost within a round trip of the loss before belongs to it: the sender could not hear of that yet. Less than a millisecond
/// is less than the bursts that fill a queue. `losses_a_round_trip_apart_are_one_episode` holds it.
const SHORTEST_GAP: u64 = 1_000_000;

/// Episodes of loss in one direction, by when what was lost had been sent.
#[derive(Debug, Default)]
pub(crate) struct LossEpisodes {
    open: Option<Span>,
    /// Lengths, in microseconds.
    lengths: LogHistogram<3, 40>,
    /// Packets of these, and the most of one.
    packets: u64,
    most: u64,
}

#[derive(Debug)]
struct Span {
    from: u64,
    to: u64,
    packets: u64,
    needless: u64,
}

/// All of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) episodes: u64,
    pub(crate) packets: u64,
    pub(crate) most: u64,
    /// 50, 80, 90 and 99 percent of the lengths and the longest, in microseconds.
    pub(crate) lengths: [u64; 5],
}

impl LossEpisodes {
    /// A packet that was sent at `at` is lost; both in nanoseconds.
    pub(crate) fn lost(&mut self, at: u64, rtt: u64) {
        match &mut self.open {
            Some(open) if at.saturating_sub(open.to) <= rtt.max(SHORTEST_GAP) => {
                open.packets += 1;
                open.to = open.to.max(at);
                // What was found lost last need not have been sent last.
                open.from = open.from.min(at);
            }
            _ => {
                self.close();
                self.open = Some(Span { from: at, to: at, packets: 1, needless: 0 });
            }
        }
    }

    /// What was not seen was lost, or is late: it left at even distances, as far as is known.
    pub(crate) fn missed(&mut self, unseen: &Unseen) {
        let missing = packets(unseen.to - unseen.from, unseen.mss);
        let step = unseen.before.saturating_sub(unseen.after) / (missing + 1);
        for n in 1..=missing {
            self.lost(unseen.after + n * step, unseen.rtt);
        }
    }

    /// One of those that were lost lately had arrived.
    pub(crate) const fn arrived(&mut self) {
        if let Some(open) = &mut self.open {
            open.needless += 1;
        }
    }

    /// So many bytes of what was taken for lost had arrived.
    pub(crate) fn uncaptured(&mut self, bytes: u64, mss: u64) {
        if let Some(open) = &mut self.open {
            open.needless += packets(bytes, mss);
        }
    }

    fn close(&mut self) {
        let Some(span) = self.open.take() else { return };
        let packets = span.packets.saturating_sub(span.needless);
        // Holes are counted by their length: where nearly all of it came late, the rest is what that errs by.
        if packets * 10 > span.packets {
            self.lengths.add((span.to - span.from) / 1_000, 1);
            self.packets += packets;
            self.most = self.most.max(packets);
        }
    }

    pub(crate) fn finish(&mut self) {
        self.close();
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        let lengths = [0.5, 0.8, 0.9, 0.99, 1.0].map(|part| self.lengths.percentile(part));
        (self.lengths.total > 0).then_some(Summary {
            episodes: self.lengths.total,
            packets: self.packets,
            most: self.most,
            lengths,
        })
    }
}

/// Packets that this many bytes are noted as.
fn packets(bytes: u64, mss: u64) -> u64 {
    (bytes / mss.max(1)).clamp(1, MAX_MISSING)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn losses_a_round_trip_apart_are_one_episode() {
        let mut spans = LossEpisodes::default();
        // Four of 8 ms and one of 18, a second apart.
        for (n, length) in [8, 8, 18, 8, 8].into_iter().enumerate() {
            (0..=length).for_each(|ms| spans.lost((n as u64 * 1_000 + ms) * MS, 5 * MS));
        }
        spans.finish();
        let found = spans.summary().expect("losses");
        assert_eq!((found.episodes, found.packets, found.most), (5, 55, 19));
        let [half, most, _, _, longest] = found.lengths;
        assert!(half.abs_diff(8_000) < 500 && most.abs_diff(8_000) < 500 && longest == 18_000, "{:?}", found.lengths);
    }

    #[test]
    fn what_arrived_after_all_is_no_loss() {
        let mut spans = LossEpisodes::default();
        spans.lost(MS, 5 * MS);
        spans.arrived();
        spans.finish();
        assert!(spans.summary().is_none());
    }
}
