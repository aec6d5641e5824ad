//! What single packets of a connection signal apart from data: congestion on the path, that the other side is still there, that
//! there are more subflows.

use crate::event::packet::Packet;
use crate::tcp::handshake::Handshake;
use crate::tcp::sender::Sender;
use thalweg_model::{Ecn, KeepAlives, Multipath, MultipathKind};
use thalweg_wire::Flags;

/// Signals of both sides, counted.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    sides: [Marks; 2],
    multipath: bool,
    probes: [u64; 2],
    window_probes: u64,
    answers: u64,
    /// The side whose probe was the latest packet.
    probing: Option<usize>,
}

/// ECN of one side's packets.
#[derive(Debug, Default)]
struct Marks {
    capable: u64,
    marked: u64,
    echoes: u64,
    reductions: u64,
}

impl Signals {
    /// Takes in a packet of the side whose data is `own`; it is not a tap's copy, and its data is not taken in yet.
    pub(crate) fn packet(&mut self, packet: &Packet, own: &Sender) {
        /// The flags of ECN in the TCP header: ECN-Echo and CWR (RFC 3168 §6.1).
        const ECN: u8 = Flags::ECE | Flags::CWR;
        let side = packet.side();
        if packet.ecn != 0 || packet.flags.0 & ECN != 0 {
            self.ecn(packet);
        }
        self.multipath |= packet.options().is_some_and(|options| options.multipath.is_some());
        let controls = packet.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST) != 0;
        if own.is_probe(packet.seq, packet.payload_len) && !controls {
            if own.window.size == Some(0) {
                self.window_probes += 1;
            } else {
                self.probes[side] += 1;
            }
            self.probing = Some(side);
        } else if let Some(probing) = self.probing.take() {
            self.answers += u64::from(probing != side && packet.payload_len == 0 && !controls);
        }
    }

    fn ecn(&mut self, packet: &Packet) {
        let (marks, flags) = (&mut self.sides[packet.side()], packet.flags);
        marks.capable += u64::from(packet.ecn != 0);
        marks.marked += u64::from(packet.ecn == 3);
        if !flags.has(Flags::SYN) {
            marks.echoes += u64::from(flags.has(Flags::ECE));
            marks.reductions += u64::from(flags.has(Flags::CWR));
        }
    }

    /// ECN of the direction whose data side `main` sends.
    pub(crate) fn ecn_of(&self, main: usize, opening: &Handshake) -> Option<Ecn> {
        let (sender, receiver) = (&self.sides[main], &self.sides[1 - main]);
        let ecn = Ecn {
            negotiated: opening.ecn(),
            capable: sender.capable,
            marked: sender.marked,
            echoes: receiver.echoes,
            reductions: sender.reductions,
        };
        let asked = opening.syn[0].asked_ecn();
        let seen = ecn.capable + ecn.echoes + ecn.reductions > 0;
        (asked || seen).then_some(ecn)
    }

    pub(crate) fn keep_alives(&self) -> Option<Box<KeepAlives>> {
        let [client, server] = self.probes;
        let all = KeepAlives { client, server, window_probes: self.window_probes, answers: self.answers };
        (client + server + self.window_probes > 0).then(|| Box::new(all))
    }

    pub(crate) fn multipath(&self, opening: &Handshake) -> Option<Multipath> {
        let [client, server] = opening.syn;
        let kind = match client.multipath.or(server.multipath) {
            Some(0) => MultipathKind::Capable,
            Some(1) => MultipathKind::Join,
            _ if self.multipath => MultipathKind::Unknown,
            _ => return None,
        };
        let agreed = (client.seen && server.seen).then_some(client.multipath == server.multipath);
        Some(Multipath { kind, agreed })
    }
}

#[cfg(test)]
mod tests;
