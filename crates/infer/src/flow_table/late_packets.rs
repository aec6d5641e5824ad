//! The ends of a connection that is over, and what comes late for it.

use crate::event::packet::Endpoint;
use crate::flow::retained::{RecordPlace, RetainedFlows};
use crate::tcp::connection::Connection;
use thalweg_model::Way;
use thalweg_units::{SeqNum, Timestamp};
use thalweg_wire::{Flags, Segment};

/// The ends of a connection that is over.
///
/// What comes that late after all was acknowledged, or after a reset, can only have been sent by a timer.
#[derive(Debug)]
pub(crate) struct ClosedFlow {
    place: RecordPlace,
    client: Endpoint,
    started: Timestamp,
    isn: [Option<SeqNum>; 2],
    next: [Option<SeqNum>; 2],
    /// Retransmissions that came late, less those that were reported as needless.
    late: u64,
}

impl ClosedFlow {
    pub(crate) fn new(connection: &Connection, place: RecordPlace) -> Self {
        let [client, server] = &connection.sides;
        Self {
            place,
            client: client.at,
            started: connection.started,
            isn: connection.opening.syn.map(|syn| syn.isn),
            next: [client.sender.space.next_seq(), server.sender.space.next_seq()],
            late: 0,
        }
    }

    fn side_of(&self, segment: &Segment) -> usize {
        usize::from((segment.ip.source, segment.tcp.source_port) != self.client)
    }

    /// Whether the packet is a late one of this connection: it begins no other, and carries nothing new.
    pub(crate) fn takes(&self, segment: &Segment) -> bool {
        let (side, tcp) = (self.side_of(segment), &segment.tcp);
        if tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::RST) {
            return self.isn[side] == Some(tcp.seq);
        }
        let end = tcp.seq.add(segment.payload_len);
        segment.payload_len == 0 || self.next[side].is_some_and(|next| end.since(next) <= 0)
    }

    /// Counts a late packet in.
    pub(crate) fn late(&mut self, kept: &mut RetainedFlows, at: Timestamp, segment: &Segment) {
        let Some(flow) = kept.at(self.place) else { return };
        let (side, tcp) = (self.side_of(segment), &segment.tcp);
        *(if side == 0 { &mut flow.packets_up } else { &mut flow.packets_down }) += 1;
        flow.duration_s = flow.duration_s.max(at.seconds_since(self.started));
        let sends = (side == 0) == (flow.direction == Way::Up);
        let twice = tcp.options.sack.as_slice().first().is_some_and(|&(_, right)| right.since(tcp.ack) <= 0);
        let fin = tcp.flags.has(Flags::FIN);
        if sends && (segment.payload_len > 0 || fin) {
            // A keep-alive's one old byte is no retransmission (RFC 9293 §3.8.4).
            let keep_alive = !fin && segment.payload_len == 1 && self.next[side] == Some(tcp.seq.add(1));
            if !keep_alive && !tcp.flags.has(Flags::SYN) {
                flow.retransmits.total += 1;
                flow.retransmits.rto += 1;
                self.late += 1;
            }
        } else if !sends && twice && self.late > 0 {
            // RFC 2883 §4.
            flow.retransmits.spurious += 1;
            flow.retransmits.spurious_dsack += 1;
            flow.retransmits.dsacks += 1;
            self.late -= 1;
        }
    }
}
