//! What is sent though nothing may be: probes of an idle connection and of a closed window, and data in a SYN that is not taken.

use super::Sender;
use thalweg_units::SeqNum;

impl Sender {
    /// Whether a packet with this number and payload, not taken in yet, probes: it brings nothing but an old byte at most, the last of
    /// what was acknowledged (RFC 9293 §3.8.4), or one new byte into a closed window (§3.8.6.1).
    pub(crate) fn is_probe(&self, seq: SeqNum, len: u32) -> bool {
        let Some(next) = self.space.next_seq().filter(|_| len <= 1 && self.space.is_answered()) else { return false };
        next == seq.add(1) || next == seq && self.is_window_probe(self.space.nxt, len)
    }

    /// Notes that data waits behind a closed window, if the packet asks for room there.
    pub(crate) fn note_window_probe(&mut self, seq: SeqNum, len: u32) {
        self.window.is_probed |= self.window.size == Some(0) && self.is_probe(seq, len);
    }

    /// Whether a payload of `len` bytes from `start` on asks a closed window for room with a byte of new data, as BSD and Windows do: where
    /// it is not taken, nothing was lost.
    pub(super) fn is_window_probe(&self, start: u64, len: u32) -> bool {
        len == 1
            && start == self.space.nxt
            && self.space.is_answered()
            && self.window.size == Some(0)
            && self.totals.first_data.is_some()
    }

    /// Data of the SYN was not taken: the SYN-ACK acknowledges no more than the SYN, up to `to` (RFC 7413 §4.2.2). It is sent again, and
    /// nothing of it was lost.
    pub(super) fn take_back(&mut self, to: u64) {
        let Some((seq, at)) = self.space.reference else { return };
        self.space.reference = Some((seq.add(to.wrapping_sub(at) as u32), to));
        self.totals.bytes -= self.space.payload_end().saturating_sub(to).min(self.totals.bytes);
        self.space.nxt = to;
        self.scoreboard.segments.clear();
    }
}

#[cfg(test)]
mod tests {
    use crate::tcp::connection::Connection;
    use crate::testing::{connection_at, packet};
    use thalweg_wire::{Flags, Segment};

    const ACK: u8 = Flags::ACK;

    fn opened(then: &[(u64, Segment)]) -> Connection {
        let mut packets = vec![
            (0, packet(true, Flags::SYN, 100, 0, 0)),
            (20, packet(false, Flags::SYN | ACK, 500, 101, 0)),
            (20, packet(true, ACK, 101, 501, 0)),
            (20, packet(true, ACK, 101, 501, 1_000)),
        ];
        packets.extend_from_slice(then);
        connection_at(&packets)
    }

    fn closed(ack: u32) -> Segment {
        let mut closed = packet(false, ACK, 501, ack, 0);
        closed.tcp.window = 0;
        closed
    }

    #[test]
    fn a_new_byte_into_a_closed_window_is_no_data_and_no_loss() {
        let mut packets = vec![(40, closed(1_101))];
        for n in 1..5 {
            packets.push((40 + 300 * n, packet(true, ACK, 1_101, 501, 1)));
            packets.push((60 + 300 * n, closed(1_101)));
        }
        packets.push((2_000, packet(false, ACK, 501, 1_101, 0)));
        packets.push((2_001, packet(true, ACK, 1_101, 501, 1_000)));
        packets.push((2_021, packet(false, ACK, 501, 2_101, 0)));
        let connection = opened(&packets);
        let sender = &connection.sides[0].sender;
        assert_eq!((sender.losses.total, sender.totals.bytes, sender.totals.delivered), (0, 2_000, 2_000));
        let asked = connection.signals.keep_alives().expect("probes");
        assert_eq!((asked.window_probes, asked.client, asked.answers), (4, 0, 4));
    }

    #[test]
    fn the_byte_that_found_room_counts() {
        let connection = opened(&[
            (40, closed(1_101)),
            (340, packet(true, ACK, 1_101, 501, 1)),
            (360, packet(false, ACK, 501, 1_102, 0)),
            (361, packet(true, ACK, 1_102, 501, 1_000)),
            (381, packet(false, ACK, 501, 2_102, 0)),
        ]);
        let sender = &connection.sides[0].sender;
        assert_eq!(
            (sender.losses.total, sender.totals.bytes, sender.totals.delivered, sender.totals.missed_bytes),
            (0, 2_001, 2_001, 0)
        );
    }

    #[test]
    fn a_keep_alive_of_either_side_does_not_stretch_the_data_phase_seen_by_the_receiver() {
        let took = |then: &[(u64, Segment)]| {
            let data = |n: u32| packet(false, ACK, 501 + n * 1_000, 1_101, 1_000);
            let mut packets = vec![(21, packet(false, ACK, 501, 1_101, 0))];
            for n in 0..10 {
                packets.push((22 + u64::from(n), data(n)));
                packets.push((22 + u64::from(n), packet(true, ACK, 1_101, 1_501 + n * 1_000, 0)));
            }
            packets.extend_from_slice(then);
            // The handshake is the client's tap's: 20 ms to the server and back.
            let connection = opened(&packets);
            assert!(!connection.sides[1].sender.is_exact(), "the tap is at the receiver");
            crate::estimate::data_phase::DataPhase::of(&connection.sides[1].sender).took
        };
        let none = took(&[]);
        assert!(none < 0.1, "{none} s");
        let receivers = [(45_000, packet(true, ACK, 1_100, 10_501, 0)), (45_020, packet(false, ACK, 10_501, 1_101, 0))];
        assert_eq!(took(&receivers), none);
        for (len, late) in [(0, 0), (0, 15), (1, 0), (1, 15)] {
            let senders = [
                (45_000, packet(false, ACK, 10_500, 1_101, len)),
                (45_000 + late, packet(true, ACK, 1_101, 10_501, 0)),
            ];
            assert_eq!(took(&senders), none, "{len} bytes, {late} ms");
        }
        // Where the sender tells nothing, more may have been sent and lost.
        assert!(took(&receivers[..1]) > 44.0);
    }

    #[test]
    fn what_a_syn_carried_in_vain_is_sent_anew_and_not_lost() {
        let syn = packet(true, Flags::SYN, 100, 0, 18);
        let connection = connection_at(&[
            (0, syn),
            (20, packet(false, Flags::SYN | ACK, 500, 101, 0)),
            (20, packet(true, ACK, 101, 501, 18)),
            (40, packet(false, ACK, 501, 119, 0)),
        ]);
        let sender = &connection.sides[0].sender;
        assert_eq!((sender.losses.total, sender.totals.bytes, sender.totals.delivered), (0, 18, 18));
        let taken = connection_at(&[
            (0, syn),
            (20, packet(false, Flags::SYN | ACK, 500, 119, 0)),
            (20, packet(true, ACK, 119, 501, 100)),
            (40, packet(false, ACK, 501, 219, 0)),
        ]);
        assert_eq!((taken.sides[0].sender.losses.total, taken.sides[0].sender.totals.bytes), (0, 118));
    }

    #[test]
    fn what_was_acknowledged_and_never_seen_is_the_captures_loss_and_no_pause() {
        let gap = |ack: u32| {
            opened(&[
                (40, packet(false, ACK, 501, 1_101, 0)),
                (1_040, packet(false, ACK, 501, ack, 0)),
                (1_041, packet(true, ACK, ack, 501, 1_000)),
                (1_061, packet(false, ACK, 501, ack + 1_000, 0)),
            ])
        };
        let [whole, missing] = [1_101, 9_101].map(gap);
        let told = |connection: &Connection| {
            let sender = &connection.sides[0].sender;
            (sender.totals.missed_bytes, sender.observers.idle_restarts.bursts)
        };
        assert_eq!((told(&whole), told(&missing)), ((0, 1), (8_000, 0)));
    }
}
