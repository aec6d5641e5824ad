//! What is kept of a connection that is over: its report, and enough of its ends to know what comes late.

use crate::connection::Connection;
use crate::flow::{self, Judged};
use crate::kept::{Kept, Place};
use crate::order::Cost;
use crate::packet::Endpoint;
use crate::phase::Phase;
use crate::together::Carried;
use model::{Evidence, Flow, Series, Way};
use units::{SeqNum, Timestamp};
use wire::{Flags, Segment};

/// A connection, summed up.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) phase: Phase,
    /// Its other direction's, where that was judged.
    pub(crate) other_phase: Option<Phase>,
    /// Index of the interface among the capture's.
    pub(crate) interface: u32,
    pub(crate) flow: Box<Flow>,
    /// What it carried, where others may have shared its path.
    pub(crate) carried: Option<Carried>,
    pub(crate) series: Option<Box<Series>>,
}

impl Finished {
    pub(crate) fn new(connection: &Connection, judged: Judged<'_>, carried: Option<Carried>) -> Self {
        let (phase, other_phase) = (judged.phase(), judged.other_phase());
        let mut flow = Box::new(judged.flow());
        compact(&mut flow);
        Self {
            phase,
            other_phase,
            interface: connection.interface,
            flow,
            carried,
            series: flow::series_of(connection).map(Box::new),
        }
    }

    /// By what it is listed.
    pub(crate) fn cost(&self) -> Cost {
        let flow = &self.flow;
        let of = |verdict, phase| Cost::of(verdict, phase, flow.bytes_up + flow.bytes_down, flow.first_packet);
        let cost = of(&flow.verdict, self.phase);
        let other = flow.other_direction.as_ref().zip(self.other_phase);
        other.map_or(cost, |(other, phase)| cost.min(of(&other.verdict, phase)))
    }
}

/// Gives back the room that texts and lists were grown by in advance: a flow is kept for as long as the capture lasts.
fn compact(flow: &mut Flow) {
    let evidence = |evidence: &mut Vec<Evidence>| {
        evidence.shrink_to_fit();
        for fact in evidence {
            fact.text.shrink_to_fit();
            fact.packets.shrink_to_fit();
        }
    };
    flow.client.shrink_to_fit();
    flow.server.shrink_to_fit();
    flow.verdict.claim.shrink_to_fit();
    evidence(&mut flow.verdict.evidence);
    flow.findings.shrink_to_fit();
    for finding in &mut flow.findings {
        finding.claim.shrink_to_fit();
        evidence(&mut finding.evidence);
    }
    if let Some(other) = &mut flow.other_direction {
        other.verdict.claim.shrink_to_fit();
        evidence(&mut other.verdict.evidence);
    }
}

/// The ends of a connection that is over.
///
/// What comes that late after all was acknowledged, or after a reset, can only have been sent by a timer.
#[derive(Debug)]
pub(crate) struct Over {
    place: Place,
    client: Endpoint,
    started: Timestamp,
    isn: [Option<SeqNum>; 2],
    next: [Option<SeqNum>; 2],
    /// Retransmissions that came late, less those that were reported as needless.
    late: u64,
}

impl Over {
    pub(crate) fn new(connection: &Connection, place: Place) -> Self {
        let [client, server] = &connection.sides;
        Self {
            place,
            client: client.at,
            started: connection.started,
            isn: connection.opening.syn.map(|syn| syn.isn),
            next: [client.sender.next_seq(), server.sender.next_seq()],
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
    pub(crate) fn late(&mut self, kept: &mut Kept, at: Timestamp, segment: &Segment) {
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
