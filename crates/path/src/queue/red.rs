//! Random early detection.
//!
//! Source: Floyd, Jacobson, "Random early detection gateways for congestion avoidance", 1993; linux include/net/red.h. The
//! average's weight is chosen as iproute2's tc/tc_red.c does. While the queue is idle the average decays by the packets that
//! the rate could have sent, as in the paper.

use super::queue_bytes;
use super::waiting::Waiting;
use crate::counters::{Counters, DropReason};
use crate::packet::Run;
use crate::random::Random;
use thalweg_units::{Bytes, Rate, Ratio, Seed, Span};

/// A queue that drops or marks at random, more often the longer it is on average.
#[derive(Debug)]
pub(crate) struct Red<T> {
    waiting: Waiting<T>,
    limit: Bytes,
    min: f64,
    max: f64,
    probability: f64,
    /// Weight of the newest length in the average.
    weight: f64,
    packet_time: Span,
    marks: bool,
    average: f64,
    /// Packets since the last that was marked or dropped; `None` below `min`.
    since_mark: Option<u32>,
    /// The random number that decides about the next mark.
    drawn: f64,
    idle_since: Option<Span>,
    random: Random,
}

/// What RED decides about a packet.
#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Pass,
    Mark,
}

impl<T: Clone> Red<T> {
    #[allow(clippy::too_many_arguments)] // One line of a table: what tc-red(8) takes.
    pub(super) fn new(
        limit: Bytes,
        min: Bytes,
        max: Bytes,
        probability: Ratio,
        packet: Bytes,
        rate: Rate,
        ecn: bool,
        seed: Seed,
    ) -> Self {
        Self {
            waiting: Waiting::default(),
            limit,
            min: min.get() as f64,
            max: max.get() as f64,
            probability: probability.get(),
            weight: weight(min.get() as f64, max.get() as f64, packet.get() as f64),
            packet_time: rate.time_for(packet),
            marks: ecn,
            average: 0.0,
            since_mark: None,
            drawn: 0.0,
            idle_since: Some(Span::ZERO),
            random: Random::new(seed),
        }
    }

    pub(super) fn enqueue(&mut self, now: Span, mut segment: Run<T>, counters: &mut Counters) {
        let bytes = segment.first_bytes();
        self.update_average(now);
        if self.decide() == Decision::Mark {
            if !(self.marks && segment.packet.ecn_capable) {
                return counters.drop(DropReason::QueueManagement, bytes);
            }
            counters.marked.count(bytes);
            segment.is_marked = true;
        }
        if self.waiting.length().1 + queue_bytes(bytes) > self.limit.get() {
            return counters.drop(DropReason::QueueFull, bytes);
        }
        self.waiting.push(now, segment);
    }

    pub(super) fn dequeue(&mut self, now: Span) -> Option<Run<T>> {
        let segment = self.waiting.pop();
        if segment.is_none() && self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        segment.map(|(_, segment)| segment)
    }

    pub(super) const fn length(&self) -> (u32, u64) {
        self.waiting.length()
    }

    fn update_average(&mut self, now: Span) {
        if let Some(since) = self.idle_since.take() {
            let packets = now.saturating_sub(since).as_secs_f64() / self.packet_time.as_secs_f64().max(1e-9);
            self.average *= (1.0 - self.weight).powf(packets);
        } else {
            self.average += self.weight * (self.waiting.length().1 as f64 - self.average);
        }
    }

    /// Source: include/net/red.h, `red_action`, `red_mark_probability`.
    fn decide(&mut self) -> Decision {
        if self.average < self.min {
            self.since_mark = None;
            return Decision::Pass;
        }
        if self.average >= self.max {
            self.since_mark = None;
            return Decision::Mark;
        }
        let Some(since) = self.since_mark else {
            self.since_mark = Some(0);
            self.drawn = self.random.unit();
            return Decision::Pass;
        };
        let now = since + 1;
        let share = (self.average - self.min) / (self.max - self.min);
        if share * self.probability * f64::from(now) < self.drawn {
            self.since_mark = Some(now);
            return Decision::Pass;
        }
        self.since_mark = Some(0);
        self.drawn = self.random.unit();
        Decision::Mark
    }
}

/// The average's weight, a power of two: `tc_red_eval_ewma`, for the burst that tc takes if none is given.
fn weight(min: f64, max: f64, packet: f64) -> f64 {
    let burst = ((2.0 * min + max) / (3.0 * packet)).floor();
    let wanted = burst + 1.0 - min / packet;
    let reached = |weight: f64| (1.0 - (1.0 - weight).powf(burst)) / weight;
    (1..32).map(|log| 0.5f64.powi(log)).find(|weight| wanted <= reached(*weight)).unwrap_or(0.5f64.powi(31))
}
