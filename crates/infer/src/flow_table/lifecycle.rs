//! Whether a connection goes on: what of it must be known at each packet, however much later it is analysed.

use crate::event::packet::Endpoint;
use thalweg_units::SeqNum;
use thalweg_wire::{Flags, Segment};

/// Silence after which a closed connection that carried data is over: the first timeout of a host that knows no round trip (RFC 6298 §2.1).
/// What comes later was sent by a timer.
const CLOSED_TIMEOUT_NS: u64 = 1_000_000_000;
/// The same for one that is opening or closing, and for one that is open: what NATs must keep them for (RFC 5382 §5, REQ-5).
const TRANSITORY_TIMEOUT_NS: u64 = 240_000_000_000;
const ESTABLISHED_TIMEOUT_NS: u64 = 7_440_000_000_000;

/// The ends of a connection, and how far it is.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    /// The client's, then the server's.
    pub(crate) ends: [Endpoint; 2],
    sides: [Half; 2],
    reset: bool,
    carried_data: bool,
}

/// One side's half of it.
#[derive(Debug, Default)]
struct Half {
    /// Something came from here.
    heard: bool,
    syn_seen: bool,
    /// Something else than SYNs came from here, or a SYN with data.
    spoke: bool,
    isn: Option<SeqNum>,
    fin: bool,
    /// The sequence number after its FIN, until that is acknowledged.
    fin_end: Option<SeqNum>,
}

impl Lifecycle {
    /// The least that [`Self::idle_timeout`] gives.
    pub(crate) const SHORTEST_IDLE_TIMEOUT: u64 = CLOSED_TIMEOUT_NS;

    /// That of a connection which begins (for this capture) with `segment`, before that is taken in.
    pub(crate) fn new(segment: &Segment) -> Self {
        let (ip, tcp) = (&segment.ip, &segment.tcp);
        let (source, destination) = ((ip.source, tcp.source_port), (ip.destination, tcp.destination_port));
        // Without a SYN, a well-known port is the server's (RFC 6335 §6).
        let source_is_server = if tcp.flags.has(Flags::SYN) {
            tcp.flags.has(Flags::ACK)
        } else {
            source.1 < 1024 && destination.1 >= 1024
        };
        let ends = if source_is_server { [destination, source] } else { [source, destination] };
        Self { ends, sides: Default::default(), reset: false, carried_data: false }
    }

    /// Which side sent the segment: 0 the client, 1 the server.
    pub(crate) fn side_of(&self, segment: &Segment) -> usize {
        usize::from((segment.ip.source, segment.tcp.source_port) != self.ends[0])
    }

    /// Whether a SYN of this segment begins another connection between the same ends.
    pub(crate) fn is_reused_by(&self, segment: &Segment) -> bool {
        let flags = segment.tcp.flags;
        if !flags.has(Flags::SYN) || flags.has(Flags::RST) {
            return false;
        }
        let at = self.side_of(segment);
        let side = &self.sides[at];
        if flags.has(Flags::ACK) {
            // A second SYN-ACK with another number: another server's answer, or an old one. It begins nothing by itself unless this
            // connection is over.
            return side.isn.is_some_and(|isn| isn != segment.tcp.seq)
                && (self.reset || self.sides.iter().all(|side| side.fin));
        }
        match side.isn {
            // A SYN that nothing answered is sent again by this connection's program, or by a firewall that draws another number each time.
            Some(isn) => isn != segment.tcp.seq && (side.spoke || self.sides[1 - at].heard),
            // The start was not captured: its ports are used again if anything else was.
            None => side.heard || self.carried_data,
        }
    }

    /// Whether nothing came yet from the side that sent the segment, and something from the other.
    pub(crate) fn lacks(&self, segment: &Segment) -> bool {
        let side = self.side_of(segment);
        !self.sides[side].heard && self.sides[1 - side].heard
    }

    /// Takes in a packet that `side` sent; a tap's copy changes nothing.
    pub(crate) fn packet(&mut self, side: usize, segment: &Segment) {
        let tcp = &segment.tcp;
        let flags = tcp.flags;
        self.sides[side].heard = true;
        if flags.has(Flags::RST) {
            self.reset = true;
            return;
        }
        let [own, far] = {
            let [client, server] = &mut self.sides;
            if side == 0 { [client, server] } else { [server, client] }
        };
        let mut end = tcp.seq.add(segment.payload_len);
        if flags.has(Flags::ACK) {
            far.fin_end = far.fin_end.filter(|end| tcp.ack.since(*end) < 0);
        }
        if flags.has(Flags::SYN) {
            end = end.add(1);
            if flags.has(Flags::ACK) {
                far.isn = far.isn.or(Some(tcp.ack.add(u32::MAX)));
            }
            if !own.syn_seen || !own.spoke && !far.heard {
                (own.syn_seen, own.isn) = (true, Some(tcp.seq));
            }
        }
        own.spoke |= !flags.has(Flags::SYN) || segment.payload_len > 0;
        self.carried_data |= segment.payload_len > 0;
        if flags.has(Flags::FIN) && !own.fin {
            (own.fin, own.fin_end) = (true, Some(end.add(1)));
        }
    }

    /// Whether nothing is expected any more: both sides' FINs are acknowledged, or one side reset it.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset || self.sides.iter().all(|side| side.fin && side.fin_end.is_none())
    }

    /// For how long it must be silent to be over, in nanoseconds.
    pub(crate) fn idle_timeout(&self) -> u64 {
        let opening = self.sides.iter().any(|side| side.syn_seen);
        let begun = self.carried_data || !opening || self.sides.iter().all(|side| side.heard);
        match (self.is_closed(), self.carried_data) {
            (true, true) => CLOSED_TIMEOUT_NS,
            // One that was refused may be asked for again.
            (true, false) => TRANSITORY_TIMEOUT_NS,
            (false, _) if begun && !self.sides.iter().all(|side| side.fin) => ESTABLISHED_TIMEOUT_NS,
            (false, _) => TRANSITORY_TIMEOUT_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use proptest::prelude::*;

    /// That of a connection of these packets: which side sent each, its flags, its numbers and how much it carries.
    fn life_of(packets: &[(bool, u8, u32, u32, u32)]) -> Lifecycle {
        let segments: Vec<Segment> =
            packets.iter().map(|&(up, flags, seq, ack, len)| packet(up, flags, seq, ack, len)).collect();
        let mut life = Lifecycle::new(&segments[0]);
        segments.iter().for_each(|segment| life.packet(life.side_of(segment), segment));
        life
    }

    const ACK: u8 = Flags::ACK;
    const FIN: u8 = Flags::FIN | Flags::ACK;
    const SYN_ACK: u8 = Flags::SYN | Flags::ACK;
    const WHOLE: [(bool, u8, u32, u32, u32); 7] = [
        (true, Flags::SYN, 100, 0, 0),
        (false, SYN_ACK, 500, 101, 0),
        (true, ACK, 101, 501, 10),
        (false, FIN, 501, 111, 90),
        (true, ACK, 111, 591, 0),
        (true, FIN, 111, 592, 0),
        (false, ACK, 592, 112, 0),
    ];

    #[test]
    fn it_is_closed_when_both_fins_are_acknowledged_or_after_a_reset() {
        let whole = life_of(&WHOLE);
        assert!(whole.is_closed() && whole.idle_timeout() == CLOSED_TIMEOUT_NS);
        assert!((1..WHOLE.len()).all(|count| !life_of(&WHOLE[..count]).is_closed()));
        let idle_timeout = [1, 2, 3, 4, 6].map(|count| life_of(&WHOLE[..count]).idle_timeout());
        assert_eq!(
            idle_timeout,
            [
                TRANSITORY_TIMEOUT_NS,
                ESTABLISHED_TIMEOUT_NS,
                ESTABLISHED_TIMEOUT_NS,
                ESTABLISHED_TIMEOUT_NS,
                TRANSITORY_TIMEOUT_NS
            ]
        );
        let refused = life_of(&[WHOLE[0], (false, Flags::RST | ACK, 0, 101, 0)]);
        assert!(refused.is_closed() && refused.idle_timeout() == TRANSITORY_TIMEOUT_NS, "{refused:?}");
    }

    #[test]
    fn a_syn_with_another_number_begins_anew() {
        let reused = |life: &Lifecycle, up, flags, isn| life.is_reused_by(&packet(up, flags, isn, 101, 0));
        let open = life_of(&WHOLE[..3]);
        assert!(reused(&open, true, Flags::SYN, 7_000) && !reused(&open, true, Flags::SYN, 100));
        assert!(!reused(&open, true, Flags::SYN | Flags::RST, 7_000));
        let unanswered = life_of(&WHOLE[..1]);
        assert!(!reused(&unanswered, true, Flags::SYN, 7_000) && !reused(&unanswered, true, Flags::SYN, 100));
        assert!(reused(&life_of(&[WHOLE[0], WHOLE[2]]), true, Flags::SYN, 7_000), "answers are not captured");
        assert!(!reused(&open, false, SYN_ACK, 7_000) && reused(&life_of(&WHOLE), false, SYN_ACK, 7_000));
        // The SYN was not captured: its number is that before what the SYN-ACK acknowledges, and without that anything is new.
        let answered = life_of(&WHOLE[1..2]);
        assert!(!reused(&answered, true, Flags::SYN, 100) && reused(&answered, true, Flags::SYN, 99));
        assert!(reused(&life_of(&WHOLE[2..3]), true, Flags::SYN, 100));
    }

    proptest! {
        #[test]
        fn a_copy_changes_nothing(
            packets in proptest::collection::vec((any::<bool>(), 0u8..32, 0u32..4, 0u32..4, 0u32..3), 1..12),
        ) {
            let twice: Vec<_> = packets.iter().flat_map(|&packet| [packet; 2]).collect();
            prop_assert_eq!(format!("{:?}", life_of(&packets)), format!("{:?}", life_of(&twice)));
        }
    }
}
