//! A viewer's position in a live stream, and what is sent from there.

use super::chunked::{Coding, SizeLine};
use super::fast_join::{FastJoin, HEAD};
use crate::hub::Block;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Chunks in one send.
const CHUNKS: usize = 16;
/// Buffers of a chunk: its size line, two of payload, its end.
const CHUNK_PARTS: usize = 4;
/// Buffers in one send.
const PARTS: usize = CHUNKS * CHUNK_PARTS;
/// Bytes of an FLV file before its first tag: nine of header, four of a previous tag's size. Source: Adobe's FLV 10.1, E.2, E.3.
const FLV_HEADER: usize = 13;

/// A viewer's place in a live stream.
#[derive(Debug)]
pub(super) struct Cursor {
    /// The stream's key.
    pub(super) stream: Box<str>,
    /// Times it was moved to the newest keyframe.
    pub(super) skips: u32,
    /// What is being sent: a header, or a block that may have left the ring meanwhile.
    current: Option<Current>,
    /// After it, the pictures since the keyframe.
    fast_join: Option<Box<FastJoin>>,
    /// After those, the block of this number; `None` before the first one.
    next: Option<u64>,
    /// The header the viewer has.
    header: Option<Arc<[u8]>>,
    joins_fast: bool,
    coding: Coding,
}

/// A chunk of a live stream of which some may have been sent.
#[derive(Debug)]
struct Current {
    payload: Payload,
    /// Bytes of the chunk that were sent.
    sent: usize,
}

#[derive(Debug)]
enum Payload {
    /// A header from a byte on.
    Header(Arc<[u8]>, usize),
    Block(Arc<Block>),
}

impl Payload {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Header(bytes, from) => &bytes[*from..],
            Self::Block(block) => &block.bytes,
        }
    }
}

/// Where what no block holds is made, for one send.
#[derive(Debug, Default)]
pub(super) struct Room {
    size_lines: [SizeLine; CHUNKS],
    heads: [[u8; HEAD]; CHUNKS],
}

/// The buffers of one send.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    parts: [IoSlice<'a>; PARTS],
    count: usize,
}

impl<'a> Parts<'a> {
    /// Adds what is left of a chunk after its first `skip` bytes.
    fn push_chunk(&mut self, coding: Coding, line: &'a mut SizeLine, payload: [&'a [u8]; 2], mut skip: usize) {
        *line = coding.size_line(payload[0].len() + payload[1].len());
        for part in [line.as_bytes(), payload[0], payload[1], coding.end()] {
            let from = skip.min(part.len());
            skip -= from;
            if from < part.len() {
                self.parts[self.count] = IoSlice::new(&part[from..]);
                self.count += 1;
            }
        }
    }
}

impl<'a> AsRef<[IoSlice<'a>]> for Parts<'a> {
    fn as_ref(&self) -> &[IoSlice<'a>] {
        &self.parts[..self.count]
    }
}

impl Cursor {
    /// For a viewer that has nothing yet. `joins_fast`: the pictures since the keyframe get compressed timestamps.
    pub(super) fn new(stream: &str, joins_fast: bool, coding: Coding) -> Self {
        let stream = stream.into();
        Self { stream, skips: 0, current: None, fast_join: None, next: None, header: None, joins_fast, coding }
    }

    /// How the body is written.
    pub(super) const fn coding(&self) -> Coding {
        self.coding
    }

    /// Whether no chunk was sent in part.
    pub(super) fn is_between_chunks(&self) -> bool {
        let is_begun = |current: &Current| current.sent > 0;
        !self.current.as_ref().is_some_and(is_begun)
            && self.fast_join.as_ref().is_none_or(|fast_join| fast_join.sent() == 0)
    }

    /// Chooses what is sent next if nothing is on its way. Returns whether there is anything.
    pub(super) fn place(&mut self, held: &VecDeque<Arc<Block>>) -> bool {
        if self.current.is_some() || self.fast_join.is_some() {
            return true;
        }
        let (Some(first), Some(last)) = (held.front(), held.back()) else { return false };
        let fell_behind = self.next.is_some_and(|next| next < first.number);
        if self.next.is_none() || fell_behind {
            let Some(start) = held.iter().rposition(|block| block.is_start) else { return false };
            self.skips += u32::from(fell_behind);
            self.fast_join = if self.joins_fast { FastJoin::new(held, start, self.coding).map(Box::new) } else { None };
            self.next = Some(self.fast_join.as_ref().map_or(held[start].number, |fast_join| fast_join.last + 1));
            // What comes behind the pictures follows the header of the last of them.
            let from = self.fast_join.as_ref().map_or(start, |fast_join| (fast_join.last - first.number) as usize);
            self.announce(&held[from].header);
        } else {
            let Some(next) = self.next.filter(|&next| next <= last.number) else { return false };
            self.announce(&held[(next - first.number) as usize].header);
        }
        true
    }

    /// By how much of the stream what is sent next is behind the newest, in milliseconds.
    pub(super) fn behind_ms(&self, held: &VecDeque<Arc<Block>>) -> u64 {
        let (Some(first), Some(last)) = (held.front(), held.back()) else { return 0 };
        let at_ms = match (&self.current, &self.fast_join, self.next) {
            (Some(Current { payload: Payload::Block(block), .. }), ..) => block.at_ms,
            (_, Some(fast_join), _) => fast_join.at_ms(),
            (.., Some(next)) if next <= last.number => held[next.saturating_sub(first.number) as usize].at_ms,
            _ => last.at_ms,
        };
        last.at_ms.saturating_sub(at_ms)
    }

    /// Sends a header that the viewer does not have.
    fn announce(&mut self, header: &Arc<[u8]>) {
        if !self.header.as_ref().is_some_and(|has| Arc::ptr_eq(has, header)) {
            // A viewer that has a header already gets what is new in it: the configurations, not FLV's own header again.
            let skip = if self.header.is_some() { FLV_HEADER.min(header.len()) } else { 0 };
            self.header = Some(Arc::clone(header));
            self.current = Some(Current { payload: Payload::Header(Arc::clone(header), skip), sent: 0 });
        }
    }

    /// What is sent next, after [`Cursor::place`] has said that there is something.
    pub(super) fn gather<'a>(&'a self, held: &'a VecDeque<Arc<Block>>, room: &'a mut Room) -> Parts<'a> {
        let mut parts = Parts { parts: std::array::from_fn(|_| IoSlice::new(&[])), count: 0 };
        let mut lines = room.size_lines.iter_mut();
        if let (Some(current), Some(line)) = (&self.current, lines.next()) {
            parts.push_chunk(self.coding, line, [current.payload.bytes(), &[]], current.sent);
        }
        let first = held.front().map_or(0, |block| block.number);
        if let Some(fast_join) = &self.fast_join {
            let mut sent = fast_join.sent();
            let pictures = fast_join.pictures(held, CHUNKS);
            for ((line, head), picture) in lines.zip(room.heads.iter_mut()).zip(pictures) {
                *head = picture.head;
                parts.push_chunk(self.coding, line, [head, picture.rest], std::mem::take(&mut sent));
            }
        } else if let Some(from) = self.next.and_then(|next| next.checked_sub(first)) {
            let has_header =
                |block: &&Arc<Block>| self.header.as_ref().is_some_and(|has| Arc::ptr_eq(has, &block.header));
            let blocks = held.iter().skip(from as usize).take_while(has_header);
            for (line, block) in lines.zip(blocks) {
                parts.push_chunk(self.coding, line, [&block.bytes, &[]], 0);
            }
        }
        parts
    }

    /// Counts `sent` bytes of what was gathered.
    pub(super) fn moved(&mut self, mut sent: usize, held: &VecDeque<Arc<Block>>) {
        if let Some(current) = &mut self.current {
            let len = self.coding.coded_len(current.payload.bytes().len());
            let here = sent.min(len - current.sent);
            current.sent += here;
            sent -= here;
            if current.sent < len {
                return;
            }
            self.current = None;
        }
        if let Some(fast_join) = &mut self.fast_join {
            match fast_join.moved(sent, held) {
                Ok(()) => return,
                Err(over) => sent = over,
            }
            let ended_at = fast_join.number();
            if ended_at < fast_join.last {
                // The rest of it has left the ring, and the viewer has fallen behind.
                self.next = Some(ended_at + 1);
            }
            self.fast_join = None;
        }
        let first = held.front().map_or(0, |block| block.number);
        while sent > 0
            && let Some(next) = self.next
            && let Some(block) = next.checked_sub(first).and_then(|at| held.get(at as usize))
        {
            self.next = Some(next + 1);
            let len = self.coding.coded_len(block.bytes.len());
            if sent < len {
                self.current = Some(Current { payload: Payload::Block(Arc::clone(block)), sent });
                return;
            }
            sent -= len;
        }
    }
}
