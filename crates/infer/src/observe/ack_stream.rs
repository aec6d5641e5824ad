//! What acknowledgements alone tell of the data that they answer, where the capture holds the packets of one side only.

use super::counted::Counted;
use crate::event::packet::Packet;
use thalweg_units::SeqNum;
use thalweg_wire::Flags;

/// Acknowledgements that report data behind a gap until it counts as a loss: DupThresh (RFC 6675 §2). Sooner it may be reordering.
const DUP_THRESH: u32 = 3;
/// Gaps that are followed at a time; more are counted when they appear. Bounds memory.
const GAPS_MAX: usize = 256;

/// A gap in what arrived.
#[derive(Debug, Clone, Copy)]
struct Gap {
    left: SeqNum,
    right: SeqNum,
    /// Acknowledgements that reported data behind it.
    reports: u32,
}

/// Follows the acknowledgements of one side while nothing comes from the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct AckStream {
    /// The first acknowledgement, which data before the capture may have got; and the first and latest that acknowledged more.
    base: Option<(u64, SeqNum)>,
    first: Option<u64>,
    last: Option<(u64, SeqNum)>,
    data_until: u64,
    pub(crate) bytes: u64,
    /// From the client's SYN to its next packet, in nanoseconds.
    pub(crate) round_trip: Option<u64>,
    gaps: Vec<Gap>,
    /// The highest byte that arrived.
    highest: Option<SeqNum>,
    /// Gaps that lasted, their bytes, and the first of their reports.
    pub(crate) losses: Counted,
    pub(crate) lost_bytes: u64,
    /// Reports of data that came twice (RFC 2883).
    pub(crate) duplicates: u64,
    pub(crate) has_sack: bool,
    pub(crate) zero_windows: u64,
    was_closed: bool,
}

impl AckStream {
    /// Takes the next packet in.
    pub(crate) fn packet(&mut self, now: u64, packet: &Packet) {
        let (ack, closes_window) = (packet.ack, packet.window == 0 && !packet.flags.has(Flags::SYN));
        self.zero_windows += u64::from(closes_window && !self.was_closed);
        self.was_closed = closes_window;
        let Some((_, acked)) = self.last.or(self.base) else {
            self.base = Some((now, ack));
            self.highest = Some(ack);
            return;
        };
        let advance = ack.since(acked);
        if advance > 0 {
            self.last = Some((now, ack));
        }
        // One alone is the FIN, or a probe of a closed window.
        if advance > 1 {
            self.bytes += advance as u64;
            self.first.get_or_insert(now);
            self.data_until = now;
        }
        self.selective(now, packet);
    }

    fn selective(&mut self, now: u64, packet: &Packet) {
        let sack = packet.sack();
        let blocks = sack.as_slice();
        let (mut highest, ack) = (self.highest.unwrap_or(packet.ack), packet.ack);
        if ack.since(highest) > 0 {
            highest = ack;
        }
        let first_is_old = blocks.first().is_some_and(|first| {
            let within = |other: &(SeqNum, SeqNum)| first.0.since(other.0) >= 0 && first.1.since(other.1) <= 0;
            first.1.since(ack) <= 0 || blocks.get(1).is_some_and(within)
        });
        self.duplicates += u64::from(first_is_old);
        self.has_sack |= !blocks.is_empty();
        let mut above: Vec<(SeqNum, SeqNum)> =
            blocks.iter().copied().filter(|block| block.0.since(ack) > 0 && block.1.since(block.0) > 0).collect();
        above.sort_by(|a, b| a.0.compare(b.0));
        for &(left, right) in &above {
            if left.since(highest) > 0 && self.gaps.len() < GAPS_MAX {
                self.gaps.push(Gap { left: highest, right: left, reports: 0 });
            }
            if right.since(highest) > 0 {
                highest = right;
            }
        }
        self.highest = Some(highest);
        if self.gaps.is_empty() {
            return;
        }
        let is_filled = |gap: &Gap| {
            ack.since(gap.right) >= 0 || above.iter().any(|(l, r)| gap.left.since(*l) >= 0 && gap.right.since(*r) <= 0)
        };
        let (losses, lost_bytes) = (&mut self.losses, &mut self.lost_bytes);
        self.gaps.retain_mut(|gap| {
            if is_filled(gap) {
                return false;
            }
            gap.reports += u32::from(!above.is_empty());
            if gap.reports == DUP_THRESH {
                losses.note(packet.number, now);
                *lost_bytes += gap.right.since(gap.left).max(0) as u64;
            }
            true
        });
    }

    /// From the first acknowledgement that advanced to the last, in nanoseconds; from the one before it if that is the only one.
    pub(crate) fn span(&self) -> u64 {
        let (Some((base, _)), Some(first)) = (self.base, self.first) else { return 0 };
        self.data_until.saturating_sub(if first < self.data_until { first } else { base })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::packet::PayloadFront;
    use crate::testing::packet;
    use thalweg_units::Timestamp;
    use thalweg_wire::SackBlocks;

    fn ack(now: u64, ack: u32, sack: &[(u32, u32)]) -> Packet {
        let blocks: Vec<_> = sack.iter().map(|&(left, right)| (SeqNum::new(left), SeqNum::new(right))).collect();
        let mut segment = packet(true, Flags::ACK, 0, ack, 0);
        segment.tcp.options.sack = SackBlocks::new(&blocks);
        Packet::new(0, Timestamp::from_nanos(now), now, &segment, &PayloadFront::default())
    }

    fn stream(acks: &[Packet]) -> AckStream {
        let mut stream = AckStream::default();
        acks.iter().for_each(|ack| stream.packet(ack.number, ack));
        stream
    }

    #[test]
    fn bytes_and_time_are_those_of_the_advance() {
        let found = stream(&[ack(0, 4_294_967_000, &[]), ack(50, 704, &[]), ack(60, 704, &[]), ack(90, 1_704, &[])]);
        assert_eq!((found.bytes, found.span(), found.losses.count), (2_000, 40, 0));
        assert_eq!(stream(&[ack(0, 5, &[]), ack(7, 105, &[]), ack(9, 106, &[])]).bytes, 100, "the FIN is none");
        assert_eq!(stream(&[ack(0, 5, &[]), ack(9, 5, &[])]).bytes, 0);
    }

    #[test]
    fn a_gap_that_lasts_is_a_loss_and_one_that_does_not_is_none() {
        let lost = [
            ack(0, 100, &[]),
            ack(1, 1_100, &[(2_100, 3_100)]),
            ack(2, 1_100, &[(2_100, 4_100)]),
            // A second gap, beside the first.
            ack(3, 1_100, &[(6_100, 7_100), (2_100, 4_100)]),
            ack(4, 1_100, &[(6_100, 8_100), (2_100, 4_100)]),
            ack(5, 4_100, &[(6_100, 9_100)]),
            ack(6, 9_100, &[]),
        ];
        let found = stream(&lost);
        assert_eq!((found.losses.count, found.lost_bytes, found.bytes), (2, 3_000, 9_000));
        assert_eq!(found.losses.first, [(3, 3), (5, 5)]);
        let overtaken = [ack(0, 100, &[]), ack(1, 1_100, &[(2_100, 3_100)]), ack(2, 3_100, &[]), ack(3, 4_100, &[])];
        assert_eq!(stream(&overtaken).losses.count, 0);
        let twice =
            [ack(0, 100, &[]), ack(1, 1_100, &[(100, 1_100)]), ack(2, 1_100, &[(1_600, 1_700), (1_500, 1_900)])];
        assert_eq!((stream(&twice).duplicates, stream(&twice).losses.count), (2, 0));
    }
}
