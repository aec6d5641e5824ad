//! Packets that a file has out of order by their times, put in order within a bound.
//!
//! Receive queues that several processors serve, and files that were joined, put packets down after later ones. The first packets are held
//! back until it is known whether time runs backwards; past them a capture in order is handed on packet by packet. No acknowledgement is put before
//! the data that it acknowledges: there the file's order is right, and the clock ran wrong.

use crate::flow_table::TcpPacket;
use std::collections::VecDeque;
use thalweg_wire::{Flags, Segment};

/// Segments held back at most. Bounds memory.
const HELD_MAX: usize = 256;
/// Packets for which segments are held back: from the first on, and from each packet that lies behind a later one. Bounds work.
const WATCHED_PACKETS: u64 = 4 * HELD_MAX as u64;
/// A time further back than this is a clock that was set back or another file's, in nanoseconds. `a_clock_that_was_set_back_is_left_as_it_is` holds
/// it.
const MAX_DISORDER_NS: u64 = 1_000_000_000;

/// Puts segments in order by their times.
#[derive(Debug, Default)]
pub(super) struct TimeOrder {
    /// Segments with the times of their packets, in order.
    held: VecDeque<(u64, TcpPacket)>,
    /// Time of the packet in hand, and the latest since the clock was set back.
    now: u64,
    newest: u64,
    packets: u64,
    /// Segments are held back until this many packets came.
    until: u64,
    /// The clock was set back: what is held was before.
    stepped: bool,
    clock: u64,
    /// The latest time that was handed on since the clock was set back.
    handed_on: u64,
    /// Packets that lay behind later ones, and segments that did where those had been handed on.
    pub(super) behind: u64,
    pub(super) too_late: u64,
    /// Times that the clock was set back, and by how many nanoseconds at most.
    pub(super) set_back: u64,
    pub(super) furthest: u64,
}

impl TimeOrder {
    /// The next packet has this time, in nanoseconds.
    pub(super) fn packet(&mut self, at: u64) {
        self.packets += 1;
        self.now = at;
        if at >= self.newest {
            self.newest = at;
        } else if self.newest - at <= MAX_DISORDER_NS {
            self.behind += 1;
            self.until = self.packets + WATCHED_PACKETS;
        } else {
            self.set_back += 1;
            self.furthest = self.furthest.max(self.newest - at);
            self.newest = at;
            self.stepped = true;
        }
    }

    /// Takes a segment of the packet in, and hands on what is due.
    pub(super) fn segment(&mut self, seen: TcpPacket, mut on: impl FnMut(TcpPacket)) {
        let holds = self.packets <= self.until.max(HELD_MAX as u64);
        if self.stepped || !holds && !self.held.is_empty() {
            self.flush(&mut on);
        }
        if std::mem::take(&mut self.stepped) {
            self.handed_on = 0;
        }
        self.too_late += u64::from(self.now < self.handed_on);
        if !holds {
            self.handed_on = self.handed_on.max(self.now);
            on(seen);
            return;
        }
        let stays = |(at, held): &(u64, TcpPacket)| *at <= self.now || acknowledges(&seen.segment, &held.segment);
        let place = self.held.iter().rposition(stays).map_or(0, |before| before + 1);
        self.held.insert(place, (self.now, seen));
        if self.held.len() > HELD_MAX
            && let Some(first) = self.held.pop_front()
        {
            on(self.in_order(first));
        }
    }

    /// Hands on all that is held.
    pub(super) fn flush(&mut self, mut on: impl FnMut(TcpPacket)) {
        while let Some(first) = self.held.pop_front() {
            on(self.in_order(first));
        }
    }

    /// The segment, with a clock that does not go back.
    fn in_order(&mut self, (at, seen): (u64, TcpPacket)) -> TcpPacket {
        self.handed_on = self.handed_on.max(at);
        self.clock = self.clock.max(seen.clock);
        TcpPacket { clock: self.clock, ..seen }
    }
}

/// Whether one of two segments acknowledges what the other carries.
fn acknowledges(ack: &Segment, data: &Segment) -> bool {
    let is_of_its_peer = (ack.ip.source, ack.tcp.source_port) == (data.ip.destination, data.tcp.destination_port)
        && (ack.ip.destination, ack.tcp.destination_port) == (data.ip.source, data.tcp.source_port);
    let carries = data.payload_len > 0 || data.tcp.flags.has(Flags::SYN) || data.tcp.flags.has(Flags::FIN);
    is_of_its_peer && carries && ack.tcp.flags.has(Flags::ACK) && data.tcp.seq.before(ack.tcp.ack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use thalweg_units::Timestamp;
    use thalweg_wire::Flags;

    /// The times that are handed on of packets with these times, how many lay behind later ones, and how many of these too late.
    fn order(times: &[u64]) -> (Vec<u64>, u64, u64) {
        let (mut order, mut out, mut clock) = (TimeOrder::default(), Vec::new(), 0);
        for (number, &at) in (1..).zip(times) {
            order.packet(at);
            clock = clock.max(at);
            let segment = packet(true, Flags::ACK, 0, 0, 0);
            let seen = TcpPacket::new(0, (Timestamp::from_nanos(at), clock), number, segment);
            order.segment(seen, |seen| out.push(seen));
        }
        order.flush(|seen| out.push(seen));
        assert!(out.is_sorted_by_key(|seen| seen.clock), "the clock goes back");
        (out.iter().map(|seen| seen.at.as_nanos()).collect(), order.behind, order.too_late)
    }

    #[test]
    fn shuffled_blocks_are_put_in_order() {
        let sorted: Vec<u64> = (0..4_000).map(|n| n * 1_000).collect();
        let mut shuffled = sorted.clone();
        shuffled.chunks_mut(8).for_each(|block| block.reverse());
        assert_eq!(order(&shuffled), (sorted.clone(), 3_500, 0));
        assert_eq!(order(&sorted), (sorted, 0, 0));
    }

    /// A clock that loses ticks, as old machines' did, sets packets back by less than a second in a file whose order is right.
    #[test]
    fn no_acknowledgement_comes_before_its_data() {
        let (mut order, mut out) = (TimeOrder::default(), Vec::new());
        // Times, the sender's side, the sequence number, the length and what is acknowledged.
        let packets = [
            (0, true, 1_000, 100, 1),
            (30, true, 1_100, 100, 1),
            (40, true, 1_200, 100, 1),
            (20, false, 1, 0, 1_200),
            (25, false, 1, 0, 1_100),
            (35, true, 1_300, 100, 1),
        ];
        for (number, (at, is_senders, seq, len, ack)) in (1..).zip(packets) {
            order.packet(at);
            let segment = packet(is_senders, Flags::ACK, seq, ack, len);
            order.segment(TcpPacket::new(0, (Timestamp::from_nanos(at), at), number, segment), |seen| out.push(seen));
        }
        order.flush(|seen| out.push(seen));
        let numbers: Vec<u64> = out.iter().map(|seen| seen.number).collect();
        assert_eq!(numbers, [1, 2, 4, 5, 6, 3], "4 acknowledges 2, and neither 3 nor 6");
    }

    #[test]
    fn late_disorder_is_put_in_order_from_its_second_packet_on() {
        let mut times: Vec<u64> = (0..3_000).collect();
        times.swap(2_000, 2_001);
        times.swap(2_100, 2_140);
        let (out, behind, too_late) = order(&times);
        assert_eq!(too_late, 1);
        assert_eq!(behind, 41, "one, and the 40 behind the one that is 40 too early");
        assert_eq!(out.windows(2).filter(|pair| pair[0] > pair[1]).count(), 1);
    }

    #[test]
    fn what_comes_after_later_packets_are_handed_on_is_counted() {
        // Two queues of a capture, one file behind the other.
        let joined: Vec<u64> =
            [0, 1].into_iter().flat_map(|first| (0..2_000).map(move |n| (2 * n + first) * 1_000)).collect();
        let (out, behind, too_late) = order(&joined);
        assert!(behind == 1_999 && too_late > 1_500 && !out.is_sorted(), "{behind}, {too_late}");
    }

    #[test]
    fn a_clock_that_was_set_back_is_left_as_it_is() {
        let day = 86_400_000_000_000;
        let times = [day, day + 1, 5, 6, 8, 7];
        assert_eq!(order(&times), (vec![day, day + 1, 5, 6, 7, 8], 1, 0));
    }
}
