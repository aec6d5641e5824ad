//! Packets that the tap delivered twice.

use crate::event::packet::Packet;
use crate::hash::Mixer;
use std::hash::Hasher;
use thalweg_wire::Flags;

/// Packets a tap's second copy is looked for among; mirror ports deliver copies within a few packets. Bounds work.
const COMPARED_PACKETS: usize = 32;
/// Prints of the latest packets of one side.
#[derive(Debug, Default)]
pub(super) struct TapDuplicates {
    pub(super) known: Option<Box<Known>>,
    pub(super) next: usize,
}

/// The prints, and their times in nanoseconds since the first packet. A part of each lies apart, so that nearly always a few instructions
/// and one line of the cache tell that a print is new.
#[derive(Debug, Default)]
pub(super) struct Known {
    parts: [u16; COMPARED_PACKETS],
    prints: [u64; COMPARED_PACKETS],
    times: [u64; COMPARED_PACKETS],
    /// Packets of the other side before each.
    answers: [u64; COMPARED_PACKETS],
}

impl TapDuplicates {
    /// Whether this print was noted at `since` or later, with so many packets of the other side before it or more.
    fn is_known(&self, print: u64, since: u64, answers: u64) -> bool {
        let Some(known) = self.known.as_deref() else { return false };
        let may_be = known.parts.iter().fold(false, |may_be, part| may_be | (*part == print as u16));
        let is_one = |at: usize| known.prints[at] == print && known.times[at] >= since && known.answers[at] >= answers;
        may_be && (0..COMPARED_PACKETS).any(is_one)
    }

    fn note(&mut self, print: u64, now: u64, answers: u64) {
        let known = self.known.get_or_insert_default();
        let at = self.next % COMPARED_PACKETS;
        (known.parts[at], known.prints[at], known.times[at], known.answers[at]) = (print as u16, print, now, answers);
        self.next = at + 1;
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
        if is_telling && self.is_known(print, since, after) {
            return true;
        }
        self.note(print, now, answers);
        false
    }
}
