//! What waits at a bottleneck, and how it is managed.

mod codel;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod waiting;

use crate::counters::Counters;
use crate::packet::Run;
use crate::policer::LINK_HEADER_BYTES;
use crate::shaper::default_burst;
use codel::Codel;
use fifo::Fifo;
use fq_codel::FqCodel;
use pie::Pie;
use red::Red;
use thalweg_model::{Discipline, PathDirection};
use thalweg_units::{Bytes, Rate, Seed, Span};

/// A queue with its discipline.
///
/// [`Self::enqueue`] may drop the segment or others; [`Self::dequeue`] may drop segments before the one it returns. A segment
/// that is being sent is no longer in the queue, but it counts for the limits of FIFO, CoDel and PIE, as in the kernel.
#[derive(Debug)]
pub(crate) enum Queue<T> {
    Fifo(Fifo<T>),
    Red(Red<T>),
    Codel(Codel<T>),
    FqCodel(FqCodel<T>),
    Pie(Pie<T>),
}

/// A queue's limit in both units.
#[derive(Debug, Clone, Copy)]
struct Limit {
    bytes: Bytes,
    packets: u32,
}

/// Bytes that a segment counts in a queue: with its Ethernet header.
pub(crate) const fn queue_bytes(ip_bytes: u32) -> u64 {
    ip_bytes as u64 + LINK_HEADER_BYTES
}

impl<T: Clone> Queue<T> {
    /// The queue of a direction, for a bottleneck of `rate` (a trace's mean rate); `None` if it is CAKE.
    pub(crate) fn new(direction: &PathDirection, rate: Rate, mtu: u16, seed: Seed) -> Option<Self> {
        let frame = queue_bytes(u32::from(mtu));
        let limit = match direction.queue {
            thalweg_model::Queue::Packets(packets) => Limit { bytes: Bytes::new(u64::from(packets) * frame), packets },
            thalweg_model::Queue::Bytes(bytes) => Limit { bytes, packets: packets_of(bytes, frame) },
            thalweg_model::Queue::Time(span) => {
                let bytes = Bytes::new(rate.bdp(span).get().max(frame));
                Limit { bytes, packets: packets_of(bytes, frame) }
            }
        };
        let ecn = direction.ecn;
        Some(match direction.discipline {
            Discipline::Fifo => match direction.queue {
                thalweg_model::Queue::Packets(packets) => Self::Fifo(Fifo::of_packets(packets)),
                _ => Self::Fifo(Fifo::of_bytes(limit.bytes)),
            },
            Discipline::Red { min, max, probability } => {
                let packet = Bytes::new(1000.min(frame));
                Self::Red(Red::new(limit.bytes, min, max, probability, packet, rate, ecn, seed))
            }
            Discipline::Codel { target, interval } => {
                Self::Codel(Codel::new(codel::Control::new(target, interval, frame, ecn), limit.packets))
            }
            Discipline::FqCodel { target, interval, flows } => {
                let control = codel::Control::new(target, interval, frame, ecn);
                Self::FqCodel(FqCodel::new(control, flows, limit.packets, frame))
            }
            Discipline::Pie { target, tupdate } => {
                let control = pie::Control::new(target, tupdate, frame, ecn, seed);
                Self::Pie(Pie::new(control, limit.packets))
            }
            Discipline::Cake { .. } => return None,
        })
    }

    /// Takes a segment in at `now`. `sending` is the segment being sent, which counts for limits: packets and bytes.
    pub(crate) fn enqueue(&mut self, now: Span, segment: Run<T>, sending: (u32, u64), counters: &mut Counters) {
        match self {
            Self::Fifo(queue) => queue.enqueue(now, segment, sending, counters),
            Self::Red(queue) => queue.enqueue(now, segment, counters),
            Self::Codel(queue) => queue.enqueue(now, segment, sending, counters),
            Self::FqCodel(queue) => queue.enqueue(now, segment, counters),
            Self::Pie(queue) => queue.enqueue(now, segment, sending, counters),
        }
    }

    /// Takes out the segment to be sent next.
    pub(crate) fn dequeue(&mut self, now: Span, counters: &mut Counters) -> Option<Run<T>> {
        match self {
            Self::Fifo(queue) => queue.dequeue(),
            Self::Red(queue) => queue.dequeue(now),
            Self::Codel(queue) => queue.dequeue(now, counters),
            Self::FqCodel(queue) => queue.dequeue(now, counters),
            Self::Pie(queue) => queue.dequeue(now),
        }
    }

    /// Segments that wait, and their bytes with Ethernet headers.
    pub(crate) fn length(&self) -> (u32, u64) {
        match self {
            Self::Fifo(queue) => queue.length(),
            Self::Red(queue) => queue.length(),
            Self::Codel(queue) => queue.length(),
            Self::FqCodel(queue) => queue.length(),
            Self::Pie(queue) => queue.length(),
        }
    }
}

/// The burst of a bottleneck whose direction gives none: a queue of packets, first in, first out, is a serializer as in the
/// lab, unless its rate changes; others are token buckets.
pub(crate) fn burst(direction: &PathDirection, rate: Rate, mtu: u16) -> Bytes {
    let changes = direction.steps.iter().any(|step| step.rate.is_some());
    let serializes = matches!(
        (direction.queue, direction.discipline, direction.burst),
        (thalweg_model::Queue::Packets(_), Discipline::Fifo, None)
    );
    if serializes && !changes {
        return Bytes::new(0);
    }
    let frame = Bytes::new(queue_bytes(u32::from(mtu)) + u64::from(direction.overhead));
    direction.burst.unwrap_or_else(|| default_burst(rate, mtu)).max(frame)
}

fn packets_of(bytes: Bytes, frame: u64) -> u32 {
    u32::try_from(bytes.get().div_ceil(frame)).unwrap_or(u32::MAX)
}
