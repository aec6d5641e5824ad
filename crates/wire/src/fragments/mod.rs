//! The fragments of IP packets, put together as far as the analysis asks: the headers at the front, and how long the whole is.
//!
//! A datagram is reported once, whole, at the time of the fragment that completes it: then its receiver's TCP sees it and acknowledges it.
//! If its rest does not come, the part from its front on that is known is reported, with the time of its latest fragment; fragments that
//! come later still are reported as the segment's rest, so that no byte counts twice.

mod piece;

pub(crate) use piece::Piece;

use crate::decap::decapsulate_ip_payload;
use crate::ip::IpFacts;
use crate::packet::Packet;
use crate::segment::{Decoded, Late, Other, Segment};
use crate::tcp::Flags;
use piece::Key;
use std::collections::VecDeque;
use thalweg_units::Timestamp;

/// Datagrams that are known at a time, whole ones included; the oldest is forgotten for the next.
const MOST_DATAGRAMS: usize = 256;
/// Pieces of one datagram with gaps between; one in more is no work of a network.
const MOST_RUNS: usize = 64;
/// Bytes of a datagram that are kept: the headers of an overlay in an overlay are fewer.
const HEAD: usize = 256;
/// After this silence the rest of a datagram is no longer waited for: no sender retransmits sooner without an acknowledgement (Linux
/// `TCP_RTO_MIN`), and a retransmission has to be reported after the original.
const PATIENCE_NS: u64 = 200_000_000;
/// Nor after this many later datagrams between the same hosts are whole: a sender then takes the segment for lost (RFC 5681 §3.2).
const OVERTAKEN: u8 = 3;
/// How long an identification stands for one datagram: Linux's `IP_FRAG_TIME` (RFC 791 §3.2 asks for 15 s at least).
const LIFE_V4_NS: u64 = 30_000_000_000;
/// RFC 8200 §4.5.
const LIFE_V6_NS: u64 = 60_000_000_000;

/// What a datagram's fragments came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not reported yet.
    Waiting,
    /// Reported as far as it was known, with this many bytes of payload.
    Reported(u32),
    /// Reported whole.
    Whole,
    /// Its fragments contradict each other.
    Refused,
}

/// Where a fragment's bytes stand to those known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    New,
    Copy,
    Wrong,
}

#[derive(Debug)]
struct Datagram {
    interface: u32,
    key: Key,
    state: State,
    /// Every fragment of it was seen before: it may be what a tap delivers twice, and is reported when it is whole again.
    again: bool,
    begun: Timestamp,
    /// The latest fragment's time and number.
    latest: (Timestamp, u64),
    /// The first fragment's, once that is known.
    facts: IpFacts,
    protocol: u8,
    /// Fragments that are not reported.
    held: u32,
    overtaken: u8,
    total: Option<u32>,
    /// From where to where bytes are known, in order, with gaps between.
    runs: Vec<(u32, u32)>,
    head: Head,
}

impl Datagram {
    fn new(packet: &Packet<'_>, piece: &Piece) -> Self {
        Self {
            interface: packet.interface,
            key: piece.key,
            state: State::Waiting,
            again: false,
            begun: packet.at,
            latest: (packet.at, packet.number),
            facts: piece.facts,
            protocol: piece.protocol,
            held: 0,
            overtaken: 0,
            total: None,
            runs: Vec::new(),
            head: Head::EMPTY,
        }
    }

    fn is_of(&self, packet: &Packet<'_>, key: Key) -> bool {
        let life = if key.source.is_ipv4() { LIFE_V4_NS } else { LIFE_V6_NS };
        self.key == key
            && self.interface == packet.interface
            && packet.at.as_nanos().abs_diff(self.begun.as_nanos()) < life
    }

    fn is_waiting(&self) -> bool {
        self.state == State::Waiting && !self.again
    }

    fn is_due(&self, now: Timestamp) -> bool {
        self.is_waiting() && now.as_nanos().saturating_sub(self.latest.0.as_nanos()) >= PATIENCE_NS
    }

    /// Puts a fragment in its place. One within what is known is a copy, as Linux has it (`inet_frag_queue_insert`); one that lies
    /// over an edge of it makes the whole datagram wrong (RFC 5722 §4).
    fn insert(&mut self, piece: &Piece, bytes: &[u8]) -> Place {
        let from = piece.part.offset;
        let Some(to) = u32::try_from(piece.len).ok().and_then(|len| from.checked_add(len)) else { return Place::Wrong };
        let is_past = self.total.is_some_and(|total| to > total || (!piece.part.more && to != total));
        let ends_within = !piece.part.more && self.runs.last().is_some_and(|run| run.1 > to);
        if is_past || ends_within {
            return Place::Wrong;
        }
        let next = self.runs.partition_point(|run| run.1 <= from);
        if from == to || self.runs.get(next).is_some_and(|run| run.0 <= from && to <= run.1) {
            return Place::Copy;
        }
        if self.runs.get(next).is_some_and(|run| run.0 < to) || self.runs.len() >= MOST_RUNS {
            return Place::Wrong;
        }
        if !piece.part.more {
            self.total = Some(to);
        }
        if from == 0 {
            (self.facts, self.protocol) = (piece.facts, piece.protocol);
        }
        let joins_next = self.runs.get(next).is_some_and(|run| run.0 == to);
        let joins_last = next > 0 && self.runs[next - 1].1 == from;
        match (joins_last, joins_next) {
            (true, true) => self.runs[next - 1].1 = self.runs.remove(next).1,
            (true, false) => self.runs[next - 1].1 = to,
            (false, true) => self.runs[next].0 = from,
            (false, false) => self.runs.insert(next, (from, to)),
        }
        self.head.put(from as usize, &bytes[..bytes.len().min(piece.len)]);
        Place::New
    }

    /// How much of its front is known.
    fn front(&self) -> u32 {
        self.runs.first().filter(|run| run.0 == 0).map_or(0, |run| run.1)
    }

    fn is_whole(&self) -> bool {
        self.total.is_some_and(|total| self.front() == total)
    }

    /// The segment in what is known of its front.
    fn segment(&self) -> Result<Segment, Other> {
        match self.front() {
            0 => Err(Other::Fragment),
            front => {
                decapsulate_ip_payload(self.head.known(), front as usize, self.protocol, self.facts, self.key.tags)
            }
        }
    }

    /// Tells what is known of it, as more is not waited for.
    fn give_up(&mut self, mut each: impl FnMut(Decoded)) {
        if self.is_waiting() {
            let (at, number) = self.latest;
            let reported = match self.segment() {
                Ok(segment) => {
                    each(Decoded::Late(Late { segment, at, number, interface: self.interface }));
                    segment.payload_len
                }
                Err(other) => {
                    (0..self.held).for_each(|_| each(Decoded::Other(other)));
                    0
                }
            };
            self.state = State::Reported(reported);
        }
        self.held = 0;
    }
}

/// The first bytes of a datagram, which fragments may bring in any order.
#[derive(Debug)]
struct Head {
    bytes: [u8; HEAD],
    /// A bit for each eight bytes that are there: fragments begin at such places.
    there: u32,
    /// Where the first piece ends that does so elsewhere: the datagram's last, or one that was cut.
    odd_end: usize,
}

const _: () = assert!(HEAD == 8 * u32::BITS as usize, "a bit for each eight bytes");

impl Head {
    const EMPTY: Self = Self { bytes: [0; HEAD], there: 0, odd_end: usize::MAX };

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let Some(room) = self.bytes.get_mut(at..) else { return };
        let len = bytes.len().min(room.len());
        room[..len].copy_from_slice(&bytes[..len]);
        (at / 8..(at + len) / 8).for_each(|eight| self.there |= 1 << eight);
        if !len.is_multiple_of(8) {
            self.odd_end = self.odd_end.min(at + len);
        }
    }

    fn known(&self) -> &[u8] {
        let eights = 8 * self.there.trailing_ones() as usize;
        &self.bytes[..if self.odd_end & !7 == eights { self.odd_end } else { eights }]
    }
}

/// Datagrams whose fragments are arriving.
#[derive(Debug)]
pub(crate) struct Fragments {
    known: VecDeque<Datagram>,
    /// When one that waits may be due; far away when none waits.
    due: Timestamp,
}

impl Default for Fragments {
    fn default() -> Self {
        Self { known: VecDeque::new(), due: NEVER }
    }
}

impl Fragments {
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether a datagram may wait for its rest.
    pub(crate) fn are_waiting(&self) -> bool {
        self.due < NEVER
    }

    /// Whether [`Self::tell_due`] may have something to tell.
    pub(crate) fn may_be_due(&self, now: Timestamp) -> bool {
        self.are_waiting() && now >= self.due
    }

    /// Tells the datagrams whose rest is not waited for any longer.
    #[cold]
    pub(crate) fn tell_due(&mut self, now: Timestamp, mut each: impl FnMut(Decoded)) {
        for datagram in self.known.iter_mut().filter(|datagram| datagram.is_due(now)) {
            datagram.give_up(&mut each);
        }
        self.due = NEVER;
        for datagram in self.known.iter().filter(|datagram| datagram.is_waiting()) {
            self.due = self.due.min(patience_from(datagram.latest.0));
        }
    }

    /// Tells what is known of all that wait: nothing comes any more.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(Decoded)) {
        self.known.drain(..).for_each(|mut datagram| datagram.give_up(&mut each));
        self.due = NEVER;
    }

    /// Takes a fragment in, of which `bytes` were captured.
    pub(crate) fn handle(&mut self, packet: &Packet<'_>, piece: &Piece, bytes: &[u8], mut each: impl FnMut(Decoded)) {
        let index = match self.known.iter().rposition(|datagram| datagram.is_of(packet, piece.key)) {
            Some(index) => index,
            None => {
                if self.known.len() >= MOST_DATAGRAMS
                    && let Some(mut oldest) = self.known.pop_front()
                {
                    oldest.give_up(&mut each);
                }
                self.known.push_back(Datagram::new(packet, piece));
                self.known.len() - 1
            }
        };
        let datagram = &mut self.known[index];
        match datagram.state {
            State::Refused => return each(Decoded::Other(Other::Malformed)),
            State::Whole => *datagram = Datagram { again: true, ..Datagram::new(packet, piece) },
            State::Waiting | State::Reported(_) => {}
        }
        match datagram.insert(piece, bytes) {
            Place::Copy => return,
            Place::Wrong => {
                (0..=datagram.held).for_each(|_| each(Decoded::Other(Other::Malformed)));
                datagram.state = State::Refused;
                return;
            }
            Place::New => {}
        }
        datagram.held += 1;
        datagram.latest = (packet.at, packet.number);
        if !datagram.is_whole() {
            self.due = self.due.min(patience_from(packet.at));
            return;
        }
        match (datagram.segment(), datagram.state) {
            (Ok(segment), State::Reported(reported)) => each(Decoded::Tcp(rest(segment, reported))),
            (Ok(segment), _) => each(Decoded::Tcp(segment)),
            (Err(other), _) => (0..datagram.held).for_each(|_| each(Decoded::Other(other))),
        }
        let key = piece.key;
        *datagram = Datagram { state: State::Whole, begun: datagram.begun, ..Datagram::new(packet, piece) };
        for earlier in self.known.range_mut(..index).filter(|earlier| {
            let Key { source, destination, tags, .. } = earlier.key;
            (source, destination, tags) == (key.source, key.destination, key.tags) && earlier.is_waiting()
        }) {
            earlier.overtaken += 1;
            if earlier.overtaken >= OVERTAKEN {
                earlier.give_up(&mut each);
            }
        }
    }
}

/// The rest of a segment whose first `reported` bytes were reported before.
fn rest(mut segment: Segment, reported: u32) -> Segment {
    let reported = reported.min(segment.payload_len);
    if reported > 0 {
        let syn = u32::from(segment.tcp.flags.has(Flags::SYN));
        segment.tcp.seq = segment.tcp.seq.add(syn + reported);
        segment.tcp.flags = Flags(segment.tcp.flags.0 & !Flags::SYN);
        segment.payload_len -= reported;
    }
    segment
}

fn patience_from(at: Timestamp) -> Timestamp {
    Timestamp::from_nanos(at.as_nanos().saturating_add(PATIENCE_NS))
}

const NEVER: Timestamp = Timestamp::from_nanos(u64::MAX);

#[cfg(test)]
mod tests;
