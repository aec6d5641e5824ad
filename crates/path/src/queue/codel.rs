//! Controlled delay.
//!
//! Source: RFC 8289; linux include/net/codel_impl.h.

use super::waiting::Waiting;
use crate::counters::{Counters, DropReason};
use crate::packet::Run;
use thalweg_units::Span;

/// CoDel's parameters and state, for one queue.
#[derive(Debug, Clone)]
pub(super) struct Control {
    target: Span,
    interval: Span,
    /// With no more than one full frame behind it, a segment is never dropped.
    frame_bytes: u64,
    marks: bool,
    /// Marks or drops since dropping began.
    count: u32,
    last_count: u32,
    is_dropping: bool,
    /// When the sojourn time will have been above target for an interval.
    first_above: Option<Span>,
    next_drop: Span,
}

impl Control {
    pub(super) const fn new(target: Span, interval: Span, frame_bytes: u64, marks: bool) -> Self {
        Self {
            target,
            interval,
            frame_bytes,
            marks,
            count: 0,
            last_count: 0,
            is_dropping: false,
            first_above: None,
            next_drop: Span::ZERO,
        }
    }

    /// Takes the next segment to be sent out of `waiting`, after those that are to be dropped. `backlog` is the number of bytes
    /// that wait in all of the discipline's queues.
    pub(super) fn dequeue<T: Clone>(
        &mut self,
        now: Span,
        waiting: &mut Waiting<T>,
        backlog_of_others: u64,
        counters: &mut Counters,
    ) -> Option<Run<T>> {
        let Some((since, mut segment)) = waiting.pop() else {
            self.first_above = None;
            self.is_dropping = false;
            return None;
        };
        let mut drop = self.should_drop(now, since, waiting.length().1 + backlog_of_others);
        if self.is_dropping {
            if !drop {
                self.is_dropping = false;
                return Some(segment);
            }
            while self.is_dropping && now >= self.next_drop {
                self.count = self.count.saturating_add(1);
                if self.mark(&mut segment, counters) {
                    self.next_drop = self.control_law(self.next_drop);
                    break;
                }
                counters.drop(DropReason::QueueManagement, segment.first_bytes());
                let Some((since, next)) = waiting.pop() else {
                    self.first_above = None;
                    self.is_dropping = false;
                    return None;
                };
                segment = next;
                drop = self.should_drop(now, since, waiting.length().1 + backlog_of_others);
                if drop {
                    self.next_drop = self.control_law(self.next_drop);
                } else {
                    self.is_dropping = false;
                }
            }
            return Some(segment);
        }
        if !drop {
            return Some(segment);
        }
        let next = if self.mark(&mut segment, counters) {
            Some(segment)
        } else {
            counters.drop(DropReason::QueueManagement, segment.first_bytes());
            let popped = waiting.pop();
            if let Some((since, _)) = &popped {
                self.should_drop(now, *since, waiting.length().1 + backlog_of_others);
            }
            popped.map(|(_, next)| next)
        };
        self.begin_dropping(now);
        next
    }

    /// Begins where the last dropping ended, if that was a moment ago.
    fn begin_dropping(&mut self, now: Span) {
        self.is_dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now.saturating_sub(self.next_drop) < Span::from_nanos(16 * self.interval.as_nanos());
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.next_drop = self.control_law(now);
    }

    fn should_drop(&mut self, now: Span, since: Span, backlog: u64) -> bool {
        if now.saturating_sub(since) < self.target || backlog <= self.frame_bytes {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
            Some(at) => now > at,
        }
    }

    fn control_law(&self, from: Span) -> Span {
        from + Span::from_secs_f64(self.interval.as_secs_f64() / f64::from(self.count.max(1)).sqrt())
    }

    /// Marks the segment if it can be; `false` means that it is to be dropped.
    fn mark<T>(&self, segment: &mut Run<T>, counters: &mut Counters) -> bool {
        let marks = self.marks && segment.packet.ecn_capable;
        if marks && !segment.is_marked {
            counters.marked.count(segment.first_bytes());
            segment.is_marked = true;
        }
        marks
    }
}

/// One queue with CoDel.
#[derive(Debug)]
pub(crate) struct Codel<T> {
    waiting: Waiting<T>,
    control: Control,
    limit: u32,
}

impl<T: Clone> Codel<T> {
    pub(super) fn new(control: Control, limit: u32) -> Self {
        Self { waiting: Waiting::default(), control, limit }
    }

    pub(super) fn enqueue(&mut self, now: Span, segment: Run<T>, sending: (u32, u64), counters: &mut Counters) {
        if self.waiting.length().0 + sending.0 >= self.limit {
            return counters.drop(DropReason::QueueFull, segment.first_bytes());
        }
        self.waiting.push(now, segment);
    }

    pub(super) fn dequeue(&mut self, now: Span, counters: &mut Counters) -> Option<Run<T>> {
        self.control.dequeue(now, &mut self.waiting, 0, counters)
    }

    pub(super) const fn length(&self) -> (u32, u64) {
        self.waiting.length()
    }
}
