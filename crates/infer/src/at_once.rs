//! Connections that nothing held: all they had to send was on its way at once.

use crate::connection::Connection;
use crate::phase::Phase;
use crate::sender::Sender;
use crate::timeline::Class;

/// Round trips that such a transfer takes less of: one, and what the program took to write.
const ROUND_TRIPS: f64 = 2.0;

/// Whether all that `sender` had was sent before anything of it was acknowledged, and arrived a round trip later. No window, no loss and no
/// acknowledgement held it, so no setting makes it faster; what of the time was not the round trip was its program's.
pub(crate) fn was_sent(connection: &Connection, sender: &Sender, phase: Phase) -> bool {
    let at_once = sender.flight_max >= sender.bytes && phase.took < ROUND_TRIPS * phase.least;
    let held = [Class::ReceiveWindow, Class::Reader, Class::Recovery, Class::Timeout];
    at_once
        && held.iter().all(|class| sender.timeline.time[*class as usize] == 0)
        && sender.losses.total + sender.losses.timeouts + sender.missed_bytes + sender.out_of_order + sender.dup_acks
            == 0
        && sender.zero_windows + sender.window_full == 0
        && sender.start.exit.is_none()
        && sender.restarts.restarted == 0
        && connection.sides.iter().all(|side| side.sender.held.count == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{self, Judged};
    use crate::handmade::{connection_at, packet};
    use crate::order::{Cost, is_slowed};
    use proptest::prelude::*;
    use wire::{Flags, Segment};

    /// A server's answer of segments that each leave so many milliseconds after the one before, acknowledged one by one a round trip later, over
    /// a path of so many milliseconds to the tap and from it; those `lost` are sent again.
    fn answer(to: u64, from: u64, request: u32, segments: &[(u64, u32)], lost: &[usize]) -> Vec<(u64, Segment)> {
        let mut packets = vec![
            (0, packet(true, Flags::SYN, 100, 0, 0)),
            (from, packet(false, Flags::SYN | Flags::ACK, 500, 101, 0)),
            (from + to, packet(true, Flags::ACK, 101, 501, 0)),
            (from + to, packet(true, Flags::ACK, 101, 501, request)),
        ];
        let (mut now, mut seq, mut missing) = (from + to + from, 501, None);
        for (place, &(gap, len)) in segments.iter().enumerate() {
            now += gap;
            packets.push((now, packet(false, Flags::ACK, seq, 101 + request, len)));
            if lost.contains(&place) {
                missing = missing.or(Some(seq));
                packets.push((now + to + 3 * from, packet(false, Flags::ACK, seq, 101 + request, len)));
            }
            seq += len;
            packets.push((now + to, packet(true, Flags::ACK, 101 + request, missing.unwrap_or(seq), 0)));
        }
        if missing.is_some() {
            packets.push((now + 2 * to + 3 * from, packet(true, Flags::ACK, 101 + request, seq, 0)));
        }
        packets.sort_by_key(|(at, _)| *at);
        packets
    }

    fn was_sent_of(packets: &[(u64, Segment)]) -> (bool, Connection) {
        let connection = connection_at(packets);
        let sender = flow::main(&connection);
        (was_sent(&connection, sender, Phase::of(sender)), connection)
    }

    proptest! {
        /// Where all was sent at once, no rule finds what could be saved.
        #[test]
        fn nothing_is_to_be_saved(
            to in prop_oneof![Just(0u64), 1u64..80],
            from in prop_oneof![Just(0u64), 1u64..80],
            request in 1u32..1_461,
            segments in proptest::collection::vec((0u64..4, 1u32..1_461), 1..30),
            lost in proptest::collection::vec(0usize..60, 0..2),
        ) {
            let (was_sent, connection) = was_sent_of(&answer(to, from, request, &segments, &lost));
            if was_sent {
                let judged = Judged::new(&connection);
                let nothing = Cost::saving(0.0, flow::bytes(&connection), connection.first_packet);
                prop_assert!(judged.cost() == nothing && !is_slowed(judged.verdict()), "{:?}", judged.verdict());
            }
        }
    }

    #[test]
    fn a_flight_that_arrives_whole_was_and_one_that_waits_or_loses_was_not() {
        let segments = [(0, 1_460); 8];
        for (to, from) in [(40, 0), (0, 40), (20, 20)] {
            assert!(was_sent_of(&answer(to, from, 200, &segments, &[])).0, "{to} {from}");
            assert!(!was_sent_of(&answer(to, from, 200, &segments, &[3])).0, "{to} {from}");
            assert!(!was_sent_of(&answer(to, from, 200, &[(15, 1_460); 8], &[])).0, "{to} {from}");
        }
    }
}
