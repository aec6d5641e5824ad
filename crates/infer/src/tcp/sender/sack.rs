//! What an acknowledgement reports of data beyond the number it acknowledges: selectively, or by being one more of the same.

use super::Sender;
use crate::event::Event;
use crate::tcp::packet::Ack;

/// What was selectively acknowledged.
pub(super) struct Sacked {
    /// Bytes that were not before.
    pub(super) sacked_new: u64,
    /// Where the segment ends that is reported received twice.
    pub(super) reported_above: Option<u64>,
    /// What is acknowledged was sent once, before what a timer sent again.
    pub(super) original: bool,
}

/// Bytes between a block and all that is out, from which on it is of other numbers: one in thirty of numbers at random is nearer.
/// `a_firewall_that_leaves_blocks_as_they_are_is_named` holds it.
const MIN_FOREIGN_DISTANCE: u64 = 1 << 26;

impl Sender {
    /// Takes the blocks of an acknowledgement in, whose number is `acknowledged` and lies within what was sent at `to`.
    pub(super) fn beyond(&mut self, ack: &Ack, to: u64, acknowledged: u64) -> Sacked {
        // What an acknowledgement reports that was overtaken may have been acknowledged since.
        let below = to.max(self.space.una);
        let watched = self.losses.watches_originals();
        let original = watched.is_some_and(|point| self.scoreboard.has_original(self.space.una, to, point));
        let mut found = Sacked { sacked_new: 0, reported_above: None, original };
        for (n, &(left, right)) in ack.sack.as_slice().iter().enumerate() {
            let (Some(left), Some(right)) = (self.space.unwrap_seq(left), self.space.unwrap_seq(right)) else {
                continue;
            };
            self.scoreboard.sack_blocks += 1;
            if right > self.space.nxt + MIN_FOREIGN_DISTANCE || right + MIN_FOREIGN_DISTANCE < self.space.una {
                self.observers.event(&Event::ForeignBlock { now: ack.now, number: ack.number });
                continue;
            }
            let within_next = ack.sack.as_slice().get(1).is_some_and(|&(l, r)| {
                self.space.unwrap_seq(l).zip(self.space.unwrap_seq(r)).is_some_and(|(l, r)| l <= left && right <= r)
            });
            if n == 0 && left < right && (right <= acknowledged || within_next) {
                // RFC 2883 §4: the first block reports a segment received twice.
                found.reported_above = Some(right);
                self.losses.dsacks += 1;
                if self.losses.reported_twice(left, right) {
                    self.needless(ack, left);
                }
            } else if right > below && left < right && right <= self.space.nxt + 1 {
                let (left, right) = (left.max(below), right.min(self.space.nxt));
                found.original |= watched.is_some_and(|point| self.scoreboard.has_original(left, right, point));
                let new = self.scoreboard.sacked.insert(left, right);
                // More than a segment at once says nothing of how long one of them was.
                if new <= self.space.mss {
                    self.scoreboard.largest_delivered = self.scoreboard.largest_delivered.max(new);
                }
                found.sacked_new += new;
            }
        }
        found
    }

    /// Counts a duplicate, and gives how many bytes more it tells of where nothing else does: a segment came, beyond the one that is missing.
    ///
    /// Source: Linux `tcp_add_reno_sack`.
    pub(super) fn duplicate(&mut self, ack: &Ack, to: u64, sacked_new: u64) -> u64 {
        // RFC 5681 §2: data outstanding, no data, the same number and the same window; with SACK the window may move.
        let same_window = self.window.size == Some(ack.window) || sacked_new > 0;
        if !(ack.pure && to == self.space.una && self.space.nxt > self.space.una && same_window) {
            return 0;
        }
        self.totals.dup_acks += 1;
        self.scoreboard.duplicates_in_row += 1;
        if self.scoreboard.sack_permitted {
            return 0;
        }
        let most = (self.space.nxt - self.space.una).saturating_sub(self.space.mss + self.scoreboard.duplicated);
        let more = most.min(self.space.mss);
        self.scoreboard.duplicated += more;
        more
    }

    /// Of this many bytes that are acknowledged now, those that duplicates reported: not the segment that was missing.
    ///
    /// Source: Linux `tcp_remove_reno_sacks`.
    pub(super) fn duplicates_told(&mut self, acknowledged: u64) -> u64 {
        let told = self.scoreboard.duplicated.min(acknowledged.saturating_sub(self.space.mss));
        self.scoreboard.duplicated -= told;
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Recording;
    use crate::tcp::packet::Data;
    use thalweg_units::SeqNum;
    use thalweg_wire::SackBlocks;

    const MSS: u32 = 1_000;

    /// A sender with ten segments in flight.
    fn sender(sack_permitted: bool) -> Sender {
        let mut sender = Sender::new(Recording::Nothing);
        sender.space.agree(u64::from(MSS));
        sender.scoreboard.sack_permitted = sack_permitted;
        sender.space.begin_with_syn(SeqNum::new(0), false);
        for n in 0..10 {
            let (now, seq) = (1_000 + u64::from(n), SeqNum::new(n * MSS));
            sender.data(&Data {
                now,
                number: now,
                seq,
                len: MSS,
                is_alert: false,
                ends_write: false,
                fin: false,
                tsval: None,
                tsecr: None,
                ip_id: None,
            });
        }
        sender
    }

    /// Acknowledges this many segments, and the blocks from one of them to another.
    fn acknowledge(sender: &mut Sender, segments: u32, blocks: &[(u32, u32)]) {
        let at = |segments: u32| SeqNum::new(segments * MSS);
        let blocks: Vec<_> = blocks.iter().map(|&(left, right)| (at(left), at(right))).collect();
        sender.ack(&Ack {
            now: 50_000_000,
            number: 100,
            ack: at(segments),
            window: 60_000,
            window_field: 60_000,
            sack: SackBlocks::new(&blocks),
            tsval: None,
            tsecr: None,
            seq: SeqNum::new(0),
            pure: true,
            payload: 0,
            asks: false,
            is_syn: false,
            ecn_echo: false,
        });
    }

    #[test]
    fn what_an_overtaken_acknowledgement_reports_came_once() {
        let mut sender = sender(true);
        acknowledge(&mut sender, 0, &[(2, 3)]);
        acknowledge(&mut sender, 6, &[]);
        acknowledge(&mut sender, 0, &[(2, 5)]);
        assert_eq!((sender.totals.delivered, sender.scoreboard.sacked.total(), sender.flight()), (6_000, 0, 4_000));
    }

    /// Acknowledgements that prove that the receiver dropped data, and bytes of that sent again.
    fn pruned(sender: &Sender) -> (u64, u64) {
        sender.observers.pruned.as_ref().map_or((0, 0), |pruned| (pruned.proofs.count, pruned.again))
    }

    #[test]
    fn an_acknowledgement_that_ends_in_reported_data_proves_that_it_was_dropped() {
        let mut sender = sender(true);
        acknowledge(&mut sender, 0, &[(2, 8)]);
        acknowledge(&mut sender, 1, &[(2, 8)]);
        assert_eq!(pruned(&sender), (0, 0));
        acknowledge(&mut sender, 5, &[]);
        assert_eq!(pruned(&sender), (1, 0));
        let seq = SeqNum::new(5 * MSS);
        sender.data(&Data {
            now: 60_000_000,
            number: 7,
            seq,
            len: MSS,
            is_alert: false,
            ends_write: false,
            fin: false,
            tsval: None,
            tsecr: None,
            ip_id: None,
        });
        assert_eq!(pruned(&sender), (1, 1_000));
        acknowledge(&mut sender, 10, &[]);
        assert!(sender.observers.pruned.as_ref().is_some_and(|pruned| pruned.repair == 0), "at one instant here");
    }

    #[test]
    fn what_ends_with_reported_data_was_kept_and_what_ends_before_it_was_not() {
        let mut sender = sender(true);
        acknowledge(&mut sender, 0, &[(2, 5)]);
        acknowledge(&mut sender, 2, &[(4, 5)]);
        assert_eq!(pruned(&sender), (1, 0), "an end just before the data");
        let mut sender = self::sender(true);
        acknowledge(&mut sender, 0, &[(2, 5)]);
        acknowledge(&mut sender, 5, &[]);
        assert_eq!(pruned(&sender), (0, 0));
    }

    #[test]
    fn without_sack_duplicates_tell_what_came() {
        let mut sender = sender(false);
        (0..5).for_each(|_| acknowledge(&mut sender, 0, &[]));
        // The first repeats the window of none before it.
        assert_eq!((sender.totals.delivered, sender.flight()), (4_000, 6_000));
        acknowledge(&mut sender, 6, &[]);
        assert_eq!((sender.totals.delivered, sender.flight()), (6_000, 4_000));
        acknowledge(&mut sender, 10, &[]);
        assert_eq!((sender.totals.delivered, sender.flight()), (10_000, 0));
    }
}
