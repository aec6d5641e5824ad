//! A first-in first-out store of segments.

use super::queue_bytes;
use crate::packet::Run;
use std::collections::VecDeque;
use thalweg_units::Span;

/// Segments that wait, first in, first out. Segments of one packet that came in together take one entry.
#[derive(Debug)]
pub(super) struct Waiting<T> {
    runs: VecDeque<(Span, Run<T>)>,
    packets: u32,
    bytes: u64,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { runs: VecDeque::new(), packets: 0, bytes: 0 }
    }
}

impl<T: Clone> Waiting<T> {
    /// Adds one segment.
    pub(super) fn push(&mut self, now: Span, segment: Run<T>) {
        self.packets += 1;
        self.bytes += queue_bytes(segment.first_bytes());
        if let Some((since, last)) = self.runs.back_mut()
            && *since == now
            && last.is_continued_by(&segment)
        {
            last.segments.end = segment.segments.end;
            return;
        }
        self.runs.push_back((now, segment));
    }

    /// Takes out the oldest segment, with the time it came in.
    pub(super) fn pop(&mut self) -> Option<(Span, Run<T>)> {
        let (since, run) = self.runs.pop_front()?;
        let (one, others) = run.split_first();
        if let Some(others) = others {
            self.runs.push_front((since, others));
        }
        self.packets -= 1;
        self.bytes -= queue_bytes(one.first_bytes());
        Some((since, one))
    }

    /// Segments, and their bytes with Ethernet headers.
    pub(super) const fn length(&self) -> (u32, u64) {
        (self.packets, self.bytes)
    }
}
