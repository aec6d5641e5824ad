//! Connections of QUIC: how many there are, and how long their handshakes take. The rest is encrypted.

use std::collections::HashMap;
use std::net::IpAddr;
use thalweg_units::figures::{counted, elapsed};
use thalweg_wire::{Datagram, QuicPackets};

/// Connections that are followed; of more it is said that there are more. Bounds memory.
const CONNECTIONS_MAX: usize = 65_536;
/// The first datagram of a client is at least this long, in bytes (RFC 9000 §14.1).
const FIRST_MIN: u32 = 1_200;

type End = (IpAddr, u16);

#[derive(Debug)]
struct Connection {
    client: End,
    began: u64,
    /// The server's first packet of the handshake or of data.
    answered: Option<u64>,
}

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct QuicConnections {
    /// By both ends, the smaller one first.
    known: HashMap<[End; 2], Connection>,
    more: bool,
}

impl QuicConnections {
    /// Takes in a datagram with this payload.
    pub(super) fn datagram(&mut self, datagram: &Datagram, payload: &[u8], now: u64) {
        let packets = QuicPackets::read(payload);
        let is_first = packets.has(QuicPackets::INITIAL) && datagram.payload_len >= FIRST_MIN;
        if packets.0 == 0 || self.known.is_empty() && !is_first {
            return;
        }
        let from = (datagram.ip.source, datagram.source_port);
        let to = (datagram.ip.destination, datagram.destination_port);
        let ends = [from.min(to), from.max(to)];
        if let Some(known) = self.known.get_mut(&ends) {
            let is_answer = packets.has(QuicPackets::HANDSHAKE | QuicPackets::ONE_RTT);
            if known.answered.is_none() && from != known.client && is_answer {
                known.answered = Some(now);
            }
        } else if is_first && self.known.len() < CONNECTIONS_MAX {
            self.known.insert(ends, Connection { client: from, began: now, answered: None });
        } else {
            self.more |= is_first;
        }
    }

    /// A note on them.
    pub(super) fn note(&self) -> Option<String> {
        let mut took: Vec<u64> =
            self.known.values().filter_map(|one| Some(one.answered?.saturating_sub(one.began))).collect();
        took.sort_unstable();
        let all = counted(self.known.len() as u64, "QUIC connection");
        let more = if self.more { " and more" } else { "" };
        let time = |nanos: u64| elapsed(nanos as f64 / 1e9);
        let handshake = match took[..] {
            [] => "no handshake is answered".to_owned(),
            [one] => format!("handshake {}", time(one)),
            [.., longest] => {
                format!("handshake {} (median), {} (longest)", time(took[(took.len() - 1) / 2]), time(longest))
            }
        };
        let failed = match self.known.len() - took.len() {
            0 => String::new(),
            _ if took.is_empty() => String::new(),
            failed => format!(", {failed} not answered"),
        };
        (!self.known.is_empty())
            .then(|| format!("{all}{more}: {handshake}{failed}; QUIC's transfer is encrypted and not judged"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_wire::IpFacts;

    /// Takes in a datagram of the client at `port` or of its server, at a time in milliseconds.
    fn send(found: &mut QuicConnections, millis: u64, port: u16, up: bool, payload: &[u8], len: u32) {
        let [client, server] = [([10, 0, 0, 1], port), ([10, 0, 0, 2], 443)].map(|(at, port)| (IpAddr::from(at), port));
        let (from, to) = if up { (client, server) } else { (server, client) };
        let datagram = Datagram {
            ip: IpFacts { source: from.0, destination: to.0, ttl: 64, ecn: 0, id: None },
            source_port: from.1,
            destination_port: to.1,
            payload_len: len,
            payload_at: 0,
        };
        found.datagram(&datagram, payload, millis * 1_000_000);
    }

    const INITIAL: &[u8] = &[0xc0, 0, 0, 0, 1, 1, 9, 1, 8, 0, 0x44, 0];
    const HANDSHAKE: &[u8] = &[0xe0, 0, 0, 0, 1, 1, 9, 1, 8, 0x44, 0];

    #[test]
    fn handshakes_are_timed_from_the_clients_first_packet() {
        let mut found = QuicConnections::default();
        send(&mut found, 0, 5_000, true, &[0x40; 30], 30);
        send(&mut found, 1, 5_000, true, INITIAL, 100);
        assert_eq!(found.note(), None, "too short for a client's first");
        send(&mut found, 10, 5_000, true, INITIAL, 1_200);
        assert!(found.note().is_some_and(|note| note.starts_with("1 QUIC connection: no handshake is answered;")));
        send(&mut found, 1_010, 5_000, true, INITIAL, 1_200);
        send(&mut found, 1_040, 5_000, false, INITIAL, 1_200);
        send(&mut found, 1_062, 5_000, false, HANDSHAKE, 900);
        send(&mut found, 1_090, 5_000, true, HANDSHAKE, 900);
        assert!(found.note().is_some_and(|note| note.starts_with("1 QUIC connection: handshake 1.05 s;")));
        send(&mut found, 2_000, 5_001, true, INITIAL, 1_200);
        send(&mut found, 2_030, 5_001, false, &[0x40; 30], 30);
        send(&mut found, 2_000, 5_002, true, INITIAL, 1_200);
        let note = found.note().expect("connections");
        let expected = "3 QUIC connections: handshake 30.0 ms (median), 1.05 s (longest), 1 not answered;";
        assert!(note.starts_with(expected), "{note}");
    }
}
