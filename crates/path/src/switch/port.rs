//! A port of a switch: first in, first out, at a constant rate.

use super::PortCounters;
use crate::counters::Tally;
use crate::packet::Run;
use crate::queue::queue_bytes;
use crate::token_bucket::TokenBucket;
use std::collections::VecDeque;
use thalweg_units::{Bytes, Span};

/// A port, its buffer if it has one of its own, and the link that it sends on.
#[derive(Debug)]
pub(super) struct Port<T> {
    link: TokenBucket,
    overhead: u64,
    /// Bytes it holds itself at most.
    own: Option<Bytes>,
    /// Single segments, with the times at which each will have left.
    waiting: VecDeque<(Span, Run<T>)>,
    /// What waits, Ethernet headers included.
    bytes: u64,
    counters: PortCounters,
}

impl<T: Clone> Port<T> {
    pub(super) fn new(asked: &thalweg_model::Switch) -> Self {
        Self {
            link: TokenBucket::new(asked.rate, Bytes::new(0)),
            overhead: u64::from(asked.overhead),
            own: (!asked.shared).then_some(asked.buffer),
            waiting: VecDeque::new(),
            bytes: 0,
            counters: PortCounters::default(),
        }
    }

    /// Takes one segment in, or drops it if it does not fit into the port's own buffer or into the `room` that there is in a shared one.
    /// Returns the bytes that it takes of the buffer.
    pub(super) fn enter(&mut self, now: Span, segment: Run<T>, room: Option<u64>) -> u64 {
        let bytes = queue_bytes(segment.first_bytes());
        let fits = room.is_none_or(|room| bytes <= room) && self.own.is_none_or(|own| self.bytes + bytes <= own.get());
        if !fits {
            self.counters.dropped.count(segment.first_bytes());
            return 0;
        }
        self.bytes += bytes;
        self.counters.peak = self.counters.peak.max(Bytes::new(self.bytes));
        self.counters.queued.count(segment.first_bytes());
        self.waiting.push_back((self.link.take(now, bytes + self.overhead), segment));
        bytes
    }

    /// When the first segment will have left.
    pub(super) fn next(&self) -> Option<Span> {
        self.waiting.front().map(|(at, _)| *at)
    }

    /// Lets the first segment leave: when it does, what it took of the buffer, and itself.
    pub(super) fn leave(&mut self) -> Option<(Span, u64, Run<T>)> {
        let (at, segment) = self.waiting.pop_front()?;
        let bytes = queue_bytes(segment.first_bytes());
        self.bytes -= bytes;
        self.counters.sent.count(segment.first_bytes());
        let Tally { packets, bytes: queued } = self.counters.queued;
        let left = Bytes::new(queued.get() - u64::from(segment.first_bytes()));
        self.counters.queued = Tally { packets: packets - 1, bytes: left };
        Some((at, bytes, segment))
    }

    pub(super) const fn counters(&self) -> PortCounters {
        self.counters
    }
}
