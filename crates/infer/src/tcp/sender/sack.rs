//! What an acknowledgement tells of data beyond the number it acknowledges: selectively, or by being one more of the same.

use super::Sender;
use crate::tcp::packet::Ack;
use model::MarkKind;

/// What was selectively acknowledged.
pub(super) struct Sacked {
    /// Bytes that were not before.
    pub(super) sacked_new: u64,
    /// Where the segment ends that is reported received twice.
    pub(super) reported_above: Option<u64>,
    /// What is acknowledged was sent once, before what a timer sent again.
    pub(super) original: bool,
}

impl Sender {
    /// Takes the blocks of an acknowledgement in, whose number is `acknowledged` and lies within what was sent at `to`.
    pub(super) fn beyond(&mut self, ack: &Ack, to: u64, acknowledged: u64) -> Sacked {
        // What an acknowledgement reports that was overtaken may have been acknowledged since.
        let below = to.max(self.una);
        let watched = self.losses.watches_originals();
        let original = watched.is_some_and(|point| self.has_original(self.una, to, point));
        let mut found = Sacked { sacked_new: 0, reported_above: None, original };
        for (n, &(left, right)) in ack.sack.as_slice().iter().enumerate() {
            let (Some(left), Some(right)) = (self.unwrap_seq(left), self.unwrap_seq(right)) else { continue };
            let within_next = ack.sack.as_slice().get(1).is_some_and(|&(l, r)| {
                self.unwrap_seq(l).zip(self.unwrap_seq(r)).is_some_and(|(l, r)| l <= left && right <= r)
            });
            if n == 0 && left < right && (right <= acknowledged || within_next) {
                // RFC 2883 §4: the first block reports a segment received twice.
                found.reported_above = Some(right);
                self.losses.dsacks += 1;
                if self.losses.reported_twice(left, right) {
                    self.mark(ack.now, left, MarkKind::Spurious);
                }
            } else if right > below && left < right && right <= self.nxt + 1 {
                let (left, right) = (left.max(below), right.min(self.nxt));
                found.original |= watched.is_some_and(|point| self.has_original(left, right, point));
                found.sacked_new += self.sacked.insert(left, right);
            }
        }
        found
    }

    /// Counts a duplicate, and gives how many bytes more it tells of where nothing else does: a segment came, beyond the one that is missing.
    ///
    /// Source: Linux `tcp_add_reno_sack`.
    pub(super) fn duplicate(&mut self, ack: &Ack, to: u64, sacked_new: u64) -> u64 {
        // RFC 5681 §2: data outstanding, no data, the same number and the same window; with SACK the window may move.
        let same_window = self.window == Some(ack.window) || sacked_new > 0;
        if !(ack.pure && to == self.una && self.nxt > self.una && same_window) {
            return 0;
        }
        self.dup_acks += 1;
        self.duplicates_in_row += 1;
        if self.sack_permitted {
            return 0;
        }
        let most = (self.nxt - self.una).saturating_sub(self.mss + self.duplicated);
        let more = most.min(self.mss);
        self.duplicated += more;
        more
    }

    /// Of so many bytes that are acknowledged now, those that duplicates told of: not the segment that was missing.
    ///
    /// Source: Linux `tcp_remove_reno_sacks`.
    pub(super) fn duplicates_told(&mut self, acknowledged: u64) -> u64 {
        let told = self.duplicated.min(acknowledged.saturating_sub(self.mss));
        self.duplicated -= told;
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::packet::Data;
    use units::SeqNum;
    use wire::SackBlocks;

    const MSS: u32 = 1_000;

    /// A sender with ten segments in flight.
    fn sender(sack_permitted: bool) -> Sender {
        let mut sender = Sender::new(false);
        (sender.times_acks, sender.mss, sender.mss_known) = (true, u64::from(MSS), true);
        sender.sack_permitted = sack_permitted;
        sender.begin_with_syn(SeqNum::new(0));
        for n in 0..10 {
            let (now, seq) = (1_000 + u64::from(n), SeqNum::new(n * MSS));
            sender.data(&Data { now, number: now, seq, len: MSS, fin: false, tsval: None, tsecr: None, ip_id: None });
        }
        sender
    }

    /// Acknowledges so many segments, and the blocks from one of them to another.
    fn acknowledge(sender: &mut Sender, segments: u32, blocks: &[(u32, u32)]) {
        let at = |segments: u32| SeqNum::new(segments * MSS);
        let blocks: Vec<_> = blocks.iter().map(|&(left, right)| (at(left), at(right))).collect();
        sender.ack(&Ack {
            now: 50_000_000,
            number: 100,
            ack: at(segments),
            window: 60_000,
            sack: SackBlocks::new(&blocks),
            tsval: None,
            tsecr: None,
            seq: SeqNum::new(0),
            pure: true,
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
        assert_eq!((sender.delivered, sender.sacked.total(), sender.flight()), (6_000, 0, 4_000));
    }

    #[test]
    fn without_sack_duplicates_tell_what_came() {
        let mut sender = sender(false);
        (0..5).for_each(|_| acknowledge(&mut sender, 0, &[]));
        // The first repeats the window of none before it.
        assert_eq!((sender.delivered, sender.flight()), (4_000, 6_000));
        acknowledge(&mut sender, 6, &[]);
        assert_eq!((sender.delivered, sender.flight()), (6_000, 4_000));
        acknowledge(&mut sender, 10, &[]);
        assert_eq!((sender.delivered, sender.flight()), (10_000, 0));
    }
}
