//! Controlled delay for each flow, in turn by deficit round robin.
//!
//! Source: RFC 8290; linux net/sched/sch_fq_codel.c.

use super::codel::Control;
use super::queue_bytes;
use super::waiting::Waiting;
use crate::counters::{Counters, DropReason};
use crate::packet::Run;
use std::collections::VecDeque;
use thalweg_units::Span;

/// Segments dropped at once from the longest flow when the queue is full. Source: sch_fq_codel.c, `drop_batch_size`.
const DROP_BATCH: u32 = 64;
/// Queues at most. Source: sch_fq_codel.c, `fq_codel_change`.
const FLOWS_MAX: u32 = 65_536;

/// Queues by flow, each with CoDel.
#[derive(Debug)]
pub(crate) struct FqCodel<T> {
    flows: Vec<Flow<T>>,
    /// Flows that began to send since they were last empty, and the others, by index.
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    limit: u32,
    quantum: u64,
    packets: u32,
    bytes: u64,
}

#[derive(Debug)]
struct Flow<T> {
    waiting: Waiting<T>,
    control: Control,
    deficit: i64,
    is_listed: bool,
}

impl<T: Clone> FqCodel<T> {
    pub(super) fn new(control: Control, flows: u32, limit: u32, quantum: u64) -> Self {
        let flow = || Flow { waiting: Waiting::default(), control: control.clone(), deficit: 0, is_listed: false };
        Self {
            flows: (0..flows.clamp(1, FLOWS_MAX)).map(|_| flow()).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            limit,
            quantum,
            packets: 0,
            bytes: 0,
        }
    }

    pub(super) fn enqueue(&mut self, now: Span, segment: Run<T>, counters: &mut Counters) {
        let count = self.flows.len() as u64;
        let index = ((u128::from(segment.packet.flow) * u128::from(count)) >> 64) as usize;
        self.packets += 1;
        self.bytes += queue_bytes(segment.first_bytes());
        let flow = &mut self.flows[index];
        flow.waiting.push(now, segment);
        if !flow.is_listed {
            (flow.is_listed, flow.deficit) = (true, self.quantum.cast_signed());
            self.new_flows.push_back(index);
        }
        if self.packets > self.limit {
            self.drop_from_longest(counters);
        }
    }

    /// Drops half of the flow with the most bytes, but no more than a batch.
    fn drop_from_longest(&mut self, counters: &mut Counters) {
        let Some(longest) = self.flows.iter_mut().max_by_key(|flow| flow.waiting.length().1) else { return };
        let half = longest.waiting.length().1 / 2;
        let mut freed = 0;
        for _ in 0..DROP_BATCH {
            let Some((_, segment)) = longest.waiting.pop() else { break };
            let bytes = segment.first_bytes();
            counters.drop(DropReason::QueueFull, bytes);
            self.packets -= 1;
            self.bytes -= queue_bytes(bytes);
            freed += queue_bytes(bytes);
            if freed >= half {
                break;
            }
        }
    }

    pub(super) fn dequeue(&mut self, now: Span, counters: &mut Counters) -> Option<Run<T>> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let index = *self.new_flows.front().or_else(|| self.old_flows.front())?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum.cast_signed();
                self.take_first(is_new);
                self.old_flows.push_back(index);
                continue;
            }
            let before = flow.waiting.length();
            let others = self.bytes - before.1;
            let segment = flow.control.dequeue(now, &mut flow.waiting, others, counters);
            let after = flow.waiting.length();
            self.packets -= before.0 - after.0;
            self.bytes -= before.1 - after.1;
            if let Some(segment) = segment {
                flow.deficit -= queue_bytes(segment.first_bytes()).cast_signed();
                return Some(segment);
            }
            self.take_first(is_new);
            // A new flow that is empty waits one round, so that it cannot stay new by sending single packets.
            if is_new && !self.old_flows.is_empty() {
                self.old_flows.push_back(index);
            } else {
                self.flows[index].is_listed = false;
            }
        }
    }

    fn take_first(&mut self, from_new: bool) {
        if from_new {
            self.new_flows.pop_front()
        } else {
            self.old_flows.pop_front()
        };
    }

    pub(super) const fn length(&self) -> (u32, u64) {
        (self.packets, self.bytes)
    }
}
