//! First in, first out; drops what comes when the queue is full.

use super::queue_bytes;
use super::waiting::Waiting;
use crate::counters::{Counters, DropReason};
use crate::packet::Run;
use thalweg_units::{Bytes, Span};

/// A tail-drop queue.
#[derive(Debug)]
pub(crate) struct Fifo<T> {
    waiting: Waiting<T>,
    packets: Option<u32>,
    bytes: Option<Bytes>,
}

impl<T: Clone> Fifo<T> {
    pub(super) fn of_packets(limit: u32) -> Self {
        Self { waiting: Waiting::default(), packets: Some(limit), bytes: None }
    }

    pub(super) fn of_bytes(limit: Bytes) -> Self {
        Self { waiting: Waiting::default(), packets: None, bytes: Some(limit) }
    }

    pub(super) fn enqueue(&mut self, now: Span, segment: Run<T>, sending: (u32, u64), counters: &mut Counters) {
        let (packets, bytes) = self.waiting.length();
        let is_full = self.packets.is_some_and(|limit| packets + sending.0 >= limit)
            || self.bytes.is_some_and(|limit| bytes + sending.1 + queue_bytes(segment.first_bytes()) > limit.get());
        if is_full {
            return counters.drop(DropReason::QueueFull, segment.first_bytes());
        }
        self.waiting.push(now, segment);
    }

    pub(super) fn dequeue(&mut self) -> Option<Run<T>> {
        self.waiting.pop().map(|(_, segment)| segment)
    }

    pub(super) const fn length(&self) -> (u32, u64) {
        self.waiting.length()
    }
}
