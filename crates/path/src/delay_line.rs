//! Packets on their way, until their delay is over.

use crate::counters::Tally;
use crate::packet::Run;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use thalweg_units::Span;

/// Segments of one packet that leave the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure<T> {
    /// When the last of them leaves, counted from the path's beginning.
    pub at: Span,
    /// The packet's.
    pub data: T,
    /// Which of the packet's segments, counted from 0.
    pub segments: Range<u32>,
    /// Whether the path marked them Congestion Experienced.
    pub is_marked: bool,
    /// Which bit of the one segment the path flipped, counted from the IP header's first.
    pub flipped_bit: Option<u32>,
}

impl<T> Departure<T> {
    /// The run that leaves at `at`.
    pub(crate) fn new(at: Span, run: Run<T>) -> Self {
        let Run { packet, segments, is_marked, flipped_bit, .. } = run;
        Self { at, data: packet.data, segments, is_marked, flipped_bit }
    }
}

/// Segments that leave at one time.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    pub(crate) at: Span,
    pub(crate) run: Run<T>,
    pub(crate) is_copy: bool,
}

impl<T> InFlight<T> {
    /// Whether `next` may leave with these, as one frame.
    fn is_continued_by(&self, next: &Self) -> bool {
        self.run.is_continued_by(&next.run) && self.is_copy == next.is_copy
    }
}

/// Segments on their way, by when they leave.
#[derive(Debug)]
pub(crate) enum DelayLine<T> {
    /// Each leaves no earlier than the one before.
    InOrder(VecDeque<InFlight<T>>),
    /// By time, and at the same time by order of arrival.
    ByTime { heap: BinaryHeap<Reverse<Ordered<T>>>, entered: u64 },
}

#[derive(Debug)]
pub(crate) struct Ordered<T> {
    order: u64,
    of: InFlight<T>,
}

impl<T> DelayLine<T> {
    pub(crate) const fn in_order() -> Self {
        Self::InOrder(VecDeque::new())
    }

    pub(crate) fn by_time() -> Self {
        Self::ByTime { heap: BinaryHeap::new(), entered: 0 }
    }

    /// Adds a segment, and returns when it leaves. In order, that is no earlier than the one before it.
    pub(crate) fn push(&mut self, mut entry: InFlight<T>) -> Span {
        match self {
            Self::InOrder(queue) => {
                if let Some(last) = queue.back_mut() {
                    entry.at = entry.at.max(last.at);
                    if entry.at == last.at && last.is_continued_by(&entry) {
                        last.run.segments.end = entry.run.segments.end;
                        return entry.at;
                    }
                }
                let at = entry.at;
                queue.push_back(entry);
                at
            }
            Self::ByTime { heap, entered } => {
                *entered += 1;
                let at = entry.at;
                heap.push(Reverse(Ordered { order: *entered, of: entry }));
                at
            }
        }
    }

    /// When the next segments leave.
    pub(crate) fn next(&self) -> Option<Span> {
        self.peek().map(|entry| entry.at)
    }

    /// Whether nothing added later can leave before [`Self::next`].
    pub(crate) const fn is_in_order(&self) -> bool {
        matches!(self, Self::InOrder(_))
    }

    /// Takes out what has left at `now`, with the time it did so: segments of one packet that follow each other and have all left
    /// are one run.
    pub(crate) fn pop(&mut self, now: Span) -> Option<(Span, Run<T>)> {
        let mut first = self.pop_entry(now)?;
        while self.peek().is_some_and(|next| next.at <= now && first.is_continued_by(next)) {
            let Some(next) = self.pop_entry(now) else { break };
            first.run.segments.end = next.run.segments.end;
            first.at = next.at;
        }
        Some((first.at, first.run))
    }

    /// Segments on their way; takes time in proportion to them.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        match self {
            Self::InOrder(queue) => queue.iter().for_each(|entry| tally.add(entry.run.tally())),
            Self::ByTime { heap, .. } => heap.iter().for_each(|Reverse(entry)| tally.add(entry.of.run.tally())),
        }
        tally
    }

    fn peek(&self) -> Option<&InFlight<T>> {
        match self {
            Self::InOrder(queue) => queue.front(),
            Self::ByTime { heap, .. } => heap.peek().map(|Reverse(entry)| &entry.of),
        }
    }

    fn pop_entry(&mut self, now: Span) -> Option<InFlight<T>> {
        self.peek().filter(|entry| entry.at <= now)?;
        match self {
            Self::InOrder(queue) => queue.pop_front(),
            Self::ByTime { heap, .. } => heap.pop().map(|Reverse(entry)| entry.of),
        }
    }
}

impl<T> Ord for Ordered<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.of.at, self.order).cmp(&(other.of.at, other.order))
    }
}

impl<T> PartialOrd for Ordered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ordered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Ordered<T> {}
