//! What each segment's payload begins with. A ClientHello that fills several segments is put together: with post-quantum keys most do.

use crate::event::packet::PayloadFront;
use std::net::IpAddr;
use thalweg_units::SeqNum;
use thalweg_wire::{Payload, Segment};

/// Connections whose ClientHello is waited for, and bytes kept of each; the oldest is given up. Bounds memory.
const WAITING_MAX: usize = 64;
const BYTES_MAX: usize = 16_384;
/// For how long, in nanoseconds: sixteen retransmissions of one second. It bounds memory, as the two above do.
const MAX_WAIT_NS: u64 = 16_000_000_000;

/// The beginning of a ClientHello.
#[derive(Debug)]
struct Waiting {
    ends: [(IpAddr, u16); 2],
    next: SeqNum,
    bytes: Vec<u8>,
    since: u64,
}

/// Reads payloads, and puts ClientHellos together.
#[derive(Debug, Default)]
pub(super) struct HelloAssembly {
    waiting: Vec<Waiting>,
}

impl HelloAssembly {
    /// What the payload of a segment of this packet begins with.
    #[inline]
    pub(super) fn read(&mut self, segment: &Segment, packet: &[u8], now: u64) -> PayloadFront {
        let payload = segment.payload(packet);
        if payload.is_empty() || self.waiting.is_empty() && !Payload::may_begin(payload) {
            return PayloadFront::default();
        }
        self.read_any(segment, payload, now)
    }

    fn read_any(&mut self, segment: &Segment, payload: &[u8], now: u64) -> PayloadFront {
        let (ip, tcp) = (&segment.ip, &segment.tcp);
        let ends = [(ip.source, tcp.source_port), (ip.destination, tcp.destination_port)];
        let is_whole = payload.len() == segment.payload_len as usize;
        self.waiting.retain(|one| now.saturating_sub(one.since) <= MAX_WAIT_NS);
        let place = self.waiting.iter().position(|one| one.next == tcp.seq && one.ends == ends);
        let Some(place) = place else {
            let found = Payload::read(payload);
            if found.goes_on && is_whole {
                if self.waiting.len() >= WAITING_MAX {
                    self.waiting.remove(0);
                }
                let next = tcp.seq.add(segment.payload_len);
                self.waiting.push(Waiting { ends, next, bytes: payload.to_vec(), since: now });
            }
            return PayloadFront::new(found);
        };
        let mut one = self.waiting.swap_remove(place);
        one.bytes.extend_from_slice(payload);
        let found = Payload::read(&one.bytes);
        if found.goes_on && is_whole && one.bytes.len() < BYTES_MAX {
            one.next = tcp.seq.add(segment.payload_len);
            self.waiting.push(one);
        }
        // The kinds of the records came with the first segment.
        PayloadFront { records: Payload::read(payload).records, ..PayloadFront::new(found) }
    }
}
