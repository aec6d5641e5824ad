//! Messages about names that TCP carries, put together from segments in any order.

use crate::event::packet::Endpoint;
use crate::tcp::range_set::RangeSet;
use thalweg_units::SeqNum;
use thalweg_wire::{DnsMessage, Flags, Segment};

/// Streams followed at a time, two of a connection; the one that was silent longest is given up. Bounds memory.
const STREAMS_MAX: usize = 64;
/// Bytes kept of one: the longest message, behind its length. A message has at most 65,535 (RFC 1035 §4.2.2).
const BYTES_MAX: usize = 2 + u16::MAX as usize;

/// What one end sends the other.
#[derive(Debug)]
struct Stream {
    /// Who sends, and to whom.
    ends: [Endpoint; 2],
    /// The number of the first of `bytes`.
    first: SeqNum,
    /// What is waited for, and from where on it is not read yet; bytes that are not captured are 0.
    bytes: Vec<u8>,
    read: usize,
    /// Which of them were sent.
    seen: RangeSet,
    latest: u64,
}

/// Streams from and to name servers.
#[derive(Debug, Default)]
pub(super) struct TcpStreams {
    streams: Vec<Stream>,
    /// The stream of the latest segment, if that had data.
    current: Option<usize>,
}

impl TcpStreams {
    /// Takes in a segment with this payload, as far as it was captured.
    pub(super) fn segment(&mut self, segment: &Segment, payload: &[u8], now: u64) {
        let (ip, tcp) = (&segment.ip, &segment.tcp);
        let ends = [(ip.source, tcp.source_port), (ip.destination, tcp.destination_port)];
        let is_syn = tcp.flags.has(Flags::SYN);
        let from = tcp.seq.add(u32::from(is_syn));
        self.current = None;
        let known = self.streams.iter().position(|stream| stream.ends == ends);
        let place = match known {
            // What is known is of a connection before it.
            Some(place) if is_syn && self.streams[place].begins_elsewhere(from) => {
                self.streams.swap_remove(place);
                None
            }
            known => known,
        };
        if place.is_none() && !is_syn && segment.payload_len == 0 {
            return;
        }
        let place = place.unwrap_or_else(|| self.begin(ends, from, now));
        self.streams[place].add(from, payload, segment.payload_len as usize);
        self.streams[place].latest = now;
        self.current = (segment.payload_len > 0).then_some(place);
    }

    fn begin(&mut self, ends: [Endpoint; 2], first: SeqNum, now: u64) -> usize {
        if self.streams.len() >= STREAMS_MAX {
            let silent = (0..self.streams.len()).min_by_key(|&place| self.streams[place].latest);
            silent.map(|place| self.streams.swap_remove(place));
        }
        self.streams.push(Stream { ends, first, bytes: Vec::new(), read: 0, seen: RangeSet::default(), latest: now });
        self.streams.len() - 1
    }

    /// The next message that the latest segment made whole, with its two ends.
    pub(super) fn next_message(&mut self) -> Option<([Endpoint; 2], DnsMessage)> {
        let stream = &mut self.streams[self.current?];
        let found = stream.next_message()?;
        Some((stream.ends, found))
    }
}

impl Stream {
    /// Whether a SYN before this number is another connection's: not the same SYN again.
    fn begins_elsewhere(&self, from: SeqNum) -> bool {
        from.since(self.first).unsigned_abs() as usize > BYTES_MAX
    }

    /// Takes in `len` bytes from a number on, of which these were captured.
    fn add(&mut self, from: SeqNum, captured: &[u8], len: usize) {
        let read = std::mem::take(&mut self.read);
        self.bytes.drain(..read);
        self.seen.shift(read as u64);
        self.first = self.first.add(read as u32);
        let ahead = from.since(self.first);
        let distance = ahead.unsigned_abs() as usize;
        // What was read already comes again, or the segment begins beyond the first byte that is waited for.
        let (at, skipped) = if ahead < 0 { (0, distance) } else { (distance, 0) };
        let end = at.saturating_add(len.saturating_sub(skipped));
        if skipped >= len || end > BYTES_MAX {
            return;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(new) = captured.get(skipped..) {
            self.bytes[at..at + new.len()].copy_from_slice(new);
        }
        self.seen.insert(at as u64, end as u64);
    }

    /// The next message about a name, once all of it was sent.
    fn next_message(&mut self) -> Option<DnsMessage> {
        let whole = self.seen.first().filter(|&(start, _)| start == 0).map_or(0, |(_, end)| end as usize);
        while let Some((message, _)) = DnsMessage::split_first(self.bytes.get(self.read..whole)?) {
            self.read += 2 + message.len();
            if let Some(message) = DnsMessage::read(message) {
                return Some(message);
            }
        }
        None
    }
}
