//! Packets that the tap delivered twice.

use crate::event::packet::Packet;
use crate::hash::Mixer;
use std::hash::Hasher;
use thalweg_wire::Flags;

/// Packets that a copy is looked for among, at first: mirror ports deliver copies within a few packets. Bounds work.
const FIRST_COMPARED_PACKETS: usize = 32;
/// And at most, so many times as many: copies from behind a router come after what was sent while the packet was in its queue. Bounds memory,
/// to 50 kB.
const MAX_RINGS: usize = 64;

/// Prints of the latest packets of one side.
#[derive(Debug, Default)]
pub(super) struct TapDuplicates {
    known: Vec<Ring>,
    next: usize,
    /// The longest time by which a copy came after its packet, in nanoseconds; 0 before the first.
    lag: u64,
}

/// The prints, and their times in nanoseconds since the first packet. A part of each lies apart, so that nearly always a few instructions
/// and one line of the cache tell that a print is new.
#[derive(Debug, Default)]
struct Ring {
    parts: [u16; FIRST_COMPARED_PACKETS],
    prints: [u64; FIRST_COMPARED_PACKETS],
    times: [u64; FIRST_COMPARED_PACKETS],
    /// Packets of the other side before each.
    answers: [u64; FIRST_COMPARED_PACKETS],
}

impl Ring {
    /// When this print was noted, if at `since` or later and with so many packets of the other side before it or more.
    fn time_of(&self, print: u64, since: u64, answers: u64) -> Option<u64> {
        let may_be = self.parts.iter().fold(false, |may_be, part| may_be | (*part == print as u16));
        let is_one = |at: &usize| self.prints[*at] == print && self.times[*at] >= since && self.answers[*at] >= answers;
        if may_be { (0..FIRST_COMPARED_PACKETS).find(is_one).map(|at| self.times[at]) } else { None }
    }
}

impl TapDuplicates {
    /// Begins a new side in the memory of one that is over.
    pub(super) fn renew(&mut self) {
        (self.next, self.lag) = (0, 0);
        self.known.truncate(1);
        self.known.iter_mut().for_each(|ring| *ring = Ring::default());
    }

    fn note(&mut self, print: u64, now: u64, answers: u64) {
        if self.known.is_empty() {
            self.known.reserve_exact(1);
            self.known.push(Ring::default());
        }
        if self.next == self.known.len() * FIRST_COMPARED_PACKETS {
            self.next = 0;
        }
        let (mut ring, mut at) = (self.next / FIRST_COMPARED_PACKETS, self.next % FIRST_COMPARED_PACKETS);
        let is_used = self.known[ring].prints[at] != 0;
        // In a burst, or behind a queue that becomes longer, what is about to be forgotten may still be copied.
        if is_used && now.saturating_sub(self.known[ring].times[at]) < 2 * self.lag && self.known.len() < MAX_RINGS {
            (ring, at) = (self.known.len(), 0);
            self.known.push(Ring::default());
        }
        let Ring { parts, prints, times, answers: before } = &mut self.known[ring];
        (parts[at], prints[at], times[at], before[at]) = (print as u16, print, now, answers);
        self.next = ring * FIRST_COMPARED_PACKETS + at + 1;
    }

    /// Whether the tap delivered this very packet before.
    ///
    /// Of IPv4, a copy has the same identification, which no retransmission has. Where there is none (IPv6, or 0 as RFC 6864 allows),
    /// a copy has the same checksum, and so the same TSval and payload, and comes before anything came from the other side and
    /// before any timer of TCP's can fire: a retransmission has waited for one of the two. Where this tap is known to make copies, as before and
    /// behind a router, packets of the other side may pass between the two.
    ///
    /// `answers` counts the packets of the other side; `copies` is whether this tap is known to make copies.
    pub(super) fn is_copy(&mut self, now: u64, packet: &Packet, answers: u64, copies: bool) -> bool {
        /// Half of what Linux's tail loss probe waits at least (`TCP_TIMEOUT_MIN`, 2 ms; include/net/tcp.h).
        const COPY_NS: u64 = 1_000_000;
        let ip_id = packet.id.filter(|&id| id != 0);
        let checksum = if ip_id.is_none() { packet.checksum } else { 0 };
        let mut print = Mixer::default();
        print.write_u64(u64::from(packet.seq.get()) << 32 | u64::from(packet.ack.get()));
        print.write_u64(u64::from(packet.payload_len) << 32 | u64::from(packet.timestamps.map_or(0, |t| t.0)));
        print.write_u64(
            u64::from(ip_id.unwrap_or(0)) << 48
                | u64::from(checksum) << 32
                | u64::from(packet.window) << 8
                | u64::from(packet.flags.0),
        );
        let print = print.finish();
        // Acknowledgements that repeat are no copies, unless this tap is known to make them.
        let is_telling =
            ip_id.is_some() || packet.payload_len > 0 || packet.flags.0 & (Flags::SYN | Flags::FIN) != 0 || copies;
        let since = if ip_id.is_some() { 0 } else { (now + 1).saturating_sub(COPY_NS) };
        let after = if ip_id.is_some() || copies { 0 } else { answers };
        let original = || self.known.iter().find_map(|ring| ring.time_of(print, since, after));
        if let Some(at) = is_telling.then(original).flatten() {
            self.lag = self.lag.max(now.saturating_sub(at)).max(1);
            return true;
        }
        self.note(print, now, answers);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connection_at, packet};

    #[test]
    fn copies_of_a_burst_are_known_however_long_it_is() {
        const BURST: u32 = 1_000;
        let mut packets = vec![(0, packet(true, Flags::SYN, 0, 0, 0))];
        packets.push((10, packet(false, Flags::SYN | Flags::ACK, 0, 1, 0)));
        packets.extend_from_within(..);
        packets.sort_by_key(|one| one.0);
        packets.push((10, packet(true, Flags::ACK, 1, 1, 0)));
        packets.extend((0..BURST).map(|n| (20, packet(false, Flags::ACK, 1 + n * 1_000, 1, 1_000))));
        packets.extend_from_within(5..);
        let connection = connection_at(&packets);
        assert_eq!((connection.tap_duplicates, connection.sides[1].sender.losses.total), (2 + u64::from(BURST), 0));
        // Without copies no memory is taken for them.
        let connection = connection_at(&packets[4..5 + BURST as usize]);
        assert_eq!(connection.sides[1].prints.known.len(), 1);
    }
}
