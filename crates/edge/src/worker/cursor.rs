//! A viewer's place in a live stream, and what is sent from there.

use super::catch_up::{CatchUp, HEAD};
use crate::hub::Block;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Buffers in one send.
const PARTS: usize = 32;
/// Pictures in one send before the viewer is live: each takes two buffers, and what is on its way one.
const PICTURES: usize = PARTS / 2 - 1;
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
    catch_up: Option<Box<CatchUp>>,
    /// After those, the block of this number; `None` before the first one.
    next: Option<u64>,
    /// The header the viewer has.
    header: Option<Arc<[u8]>>,
    catches_up: bool,
}

/// Bytes of a live stream of which some were sent.
#[derive(Debug)]
enum Current {
    Header(Arc<[u8]>, usize),
    Block(Arc<Block>, usize),
}

/// Where heads are made that no block holds, for one send.
#[derive(Debug, Default)]
pub(super) struct Room {
    heads: [[u8; HEAD]; PICTURES],
}

/// The buffers of one send.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    parts: [IoSlice<'a>; PARTS],
    count: usize,
}

impl<'a> Parts<'a> {
    fn push(&mut self, part: &'a [u8]) {
        self.parts[self.count] = IoSlice::new(part);
        self.count += 1;
    }

    const fn is_full(&self) -> bool {
        self.count == PARTS
    }
}

impl<'a> AsRef<[IoSlice<'a>]> for Parts<'a> {
    fn as_ref(&self) -> &[IoSlice<'a>] {
        &self.parts[..self.count]
    }
}

impl Cursor {
    /// For one who has nothing yet. `catches_up`: what it gets of the past comes in little time.
    pub(super) fn new(stream: &str, catches_up: bool) -> Self {
        let stream = stream.into();
        Self { stream, skips: 0, current: None, catch_up: None, next: None, header: None, catches_up }
    }

    /// Chooses what is sent next when nothing is on its way; whether there is something.
    pub(super) fn place(&mut self, held: &VecDeque<Arc<Block>>) -> bool {
        if self.current.is_some() || self.catch_up.is_some() {
            return true;
        }
        let (Some(first), Some(last)) = (held.front(), held.back()) else { return false };
        let fell_behind = self.next.is_some_and(|next| next < first.number);
        if self.next.is_none() || fell_behind {
            let Some(start) = held.iter().rposition(|block| block.is_start) else { return false };
            self.skips += u32::from(fell_behind);
            self.catch_up = if self.catches_up { CatchUp::new(held, start).map(Box::new) } else { None };
            self.next = Some(self.catch_up.as_ref().map_or(held[start].number, |catch_up| catch_up.last + 1));
            self.announce(&held[start].header);
        } else {
            let Some(next) = self.next.filter(|&next| next <= last.number) else { return false };
            self.announce(&held[(next - first.number) as usize].header);
        }
        true
    }

    /// By how much of the stream what is sent next is behind the newest, in milliseconds.
    pub(super) fn behind_ms(&self, held: &VecDeque<Arc<Block>>) -> u64 {
        let (Some(first), Some(last)) = (held.front(), held.back()) else { return 0 };
        let at_ms = match (&self.current, &self.catch_up, self.next) {
            (Some(Current::Block(block, _)), ..) => block.at_ms,
            (_, Some(catch_up), _) => catch_up.at_ms(),
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
            self.current = Some(Current::Header(Arc::clone(header), skip));
        }
    }

    /// What is sent next, after [`Cursor::place`] has said that there is something.
    pub(super) fn gather<'a>(&'a self, held: &'a VecDeque<Arc<Block>>, room: &'a mut Room) -> Parts<'a> {
        let mut parts = Parts { parts: std::array::from_fn(|_| IoSlice::new(&[])), count: 0 };
        match &self.current {
            Some(Current::Header(bytes, at)) => parts.push(&bytes[*at..]),
            Some(Current::Block(block, at)) => parts.push(&block.bytes[*at..]),
            None => {}
        }
        let first = held.front().map_or(0, |block| block.number);
        if let Some(catch_up) = &self.catch_up {
            let mut sent = catch_up.sent();
            for (head, picture) in room.heads.iter_mut().zip(catch_up.pictures(held, PICTURES)) {
                *head = picture.head;
                let (of_head, of_rest) = (sent.min(HEAD), sent.saturating_sub(HEAD));
                sent = 0;
                if of_head < HEAD {
                    parts.push(&head[of_head..]);
                }
                parts.push(&picture.rest[of_rest..]);
            }
        } else if let Some(from) = self.next.and_then(|next| next.checked_sub(first)) {
            for block in held.iter().skip(from as usize) {
                if parts.is_full() || !self.header.as_ref().is_some_and(|header| Arc::ptr_eq(header, &block.header)) {
                    break;
                }
                parts.push(&block.bytes);
            }
        }
        parts
    }

    /// Counts `sent` bytes of what was gathered.
    pub(super) fn moved(&mut self, mut sent: usize, held: &VecDeque<Arc<Block>>) {
        if let Some(current) = &mut self.current {
            let (len, at) = match current {
                Current::Header(bytes, at) => (bytes.len(), at),
                Current::Block(block, at) => (block.bytes.len(), at),
            };
            let here = sent.min(len - *at);
            *at += here;
            sent -= here;
            if *at < len {
                return;
            }
            self.current = None;
        }
        if let Some(catch_up) = &mut self.catch_up {
            match catch_up.moved(sent, held) {
                Ok(()) => return,
                Err(over) => sent = over,
            }
            let ended_at = catch_up.number();
            if ended_at < catch_up.last {
                // The rest of it has left the ring, and the viewer has fallen behind.
                self.next = Some(ended_at + 1);
            }
            self.catch_up = None;
        }
        let first = held.front().map_or(0, |block| block.number);
        while sent > 0
            && let Some(next) = self.next
            && let Some(block) = next.checked_sub(first).and_then(|at| held.get(at as usize))
        {
            self.next = Some(next + 1);
            if sent < block.bytes.len() {
                self.current = Some(Current::Block(Arc::clone(block), sent));
                return;
            }
            sent -= block.bytes.len();
        }
    }
}
