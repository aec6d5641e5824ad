//! Proportional integral controller enhanced.
//!
//! Source: RFC 8033, sections 4 and 5; linux net/sched/sch_pie.c, whose measure of the wait (the packet's own, section 5.2)
//! and decay are used.

use super::waiting::Waiting;
use crate::counters::{Counters, DropReason};
use crate::packet::Run;
use crate::random::Random;
use thalweg_units::{Seed, Span};

/// Gains, per second. Source: RFC 8033 section 4.2.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// For how long nothing is dropped after a quiet time. Source: RFC 8033 section 4.4; `pie_vars_init`.
const MAX_BURST: Span = Span::from_millis(150);
/// Above this wait the probability grows by 2 % more each time. Source: RFC 8033 section 4.2; `pie_calculate_probability`.
const HIGH_DELAY: Span = Span::from_millis(250);
/// What the probability grows by at most at a time once it is above a tenth.
const MAX_STEP: f64 = 0.02;
/// What is left of the probability after an update without a wait. Source: `pie_calculate_probability`.
const DECAY: f64 = 1.0 - 1.0 / 64.0;
/// Marks end and drops begin above this probability. Source: RFC 8033 section 5.1.
const MARKS_MAX: f64 = 0.1;
/// Sum of probabilities below which nothing is dropped, and from which the next is. Source: RFC 8033 section 5.4.
const CERTAINLY_KEPT: f64 = 0.85;
const CERTAINLY_DROPPED: f64 = 8.5;
/// Updates after which a queue without a wait has forgotten all: 0.98 to the 2,000th is below 1e-13.
const UPDATES_MAX: u32 = 2_000;

/// PIE's parameters and state.
#[derive(Debug)]
pub(super) struct Control {
    target: Span,
    tupdate: Span,
    frame_bytes: u64,
    marks: bool,
    probability: f64,
    /// Probabilities added up since the last drop.
    accumulated: f64,
    /// What is left of the time in which nothing is dropped.
    burst: Span,
    /// The last segment's wait.
    wait: Span,
    /// The wait at the last update.
    last_wait: Span,
    next_update: Span,
    random: Random,
}

impl Control {
    pub(super) fn new(target: Span, tupdate: Span, frame_bytes: u64, marks: bool, seed: Seed) -> Self {
        Self {
            target,
            tupdate,
            frame_bytes,
            marks,
            probability: 0.0,
            accumulated: 0.0,
            burst: MAX_BURST,
            wait: Span::ZERO,
            last_wait: Span::ZERO,
            next_update: tupdate,
            random: Random::new(seed),
        }
    }

    /// Computes the probability as often as it is due until `now`.
    fn update(&mut self, now: Span, backlog: u64) {
        for _ in 0..UPDATES_MAX {
            if self.next_update > now {
                return;
            }
            self.next_update = self.next_update + self.tupdate;
            self.update_once(backlog);
        }
        self.next_update = now + self.tupdate;
    }

    fn update_once(&mut self, backlog: u64) {
        let (wait, last) = (self.wait, self.last_wait);
        self.burst = self.burst.saturating_sub(self.tupdate);
        let scale = scale(self.probability);
        let mut change = scale * (ALPHA * seconds_from(wait, self.target) + BETA * seconds_from(wait, last));
        if self.probability >= 0.1 {
            change = change.min(MAX_STEP);
        }
        if wait > HIGH_DELAY {
            change += MAX_STEP;
        }
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        if wait == Span::ZERO && last == Span::ZERO && backlog == 0 {
            self.probability *= DECAY;
        }
        let is_quiet = |wait: Span| wait.as_nanos() < self.target.as_nanos() / 2;
        if self.probability == 0.0 && is_quiet(wait) && is_quiet(last) {
            self.burst = MAX_BURST;
            self.accumulated = 0.0;
        }
        self.last_wait = wait;
    }

    /// Whether the next segment is to be dropped or marked.
    fn hits(&mut self, backlog: u64) -> bool {
        let is_short = self.wait.as_nanos() < self.target.as_nanos() / 2 && self.probability < 0.2;
        if self.burst > Span::ZERO || is_short || backlog < 2 * self.frame_bytes {
            return false;
        }
        self.accumulated = if self.probability == 0.0 { 0.0 } else { self.accumulated + self.probability };
        if self.accumulated < CERTAINLY_KEPT {
            return false;
        }
        let hits = self.accumulated >= CERTAINLY_DROPPED || self.random.unit() < self.probability;
        if hits {
            self.accumulated = 0.0;
        }
        hits
    }
}

/// The part of the gains that applies at a probability: small ones change slowly. Source: RFC 8033 section 4.2.
fn scale(probability: f64) -> f64 {
    let steps = [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    steps.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

fn seconds_from(wait: Span, reference: Span) -> f64 {
    wait.as_secs_f64() - reference.as_secs_f64()
}

/// One queue with PIE.
#[derive(Debug)]
pub(crate) struct Pie<T> {
    waiting: Waiting<T>,
    control: Control,
    limit: u32,
}

impl<T: Clone> Pie<T> {
    pub(super) fn new(control: Control, limit: u32) -> Self {
        Self { waiting: Waiting::default(), control, limit }
    }

    pub(super) fn enqueue(&mut self, now: Span, mut segment: Run<T>, sending: (u32, u64), counters: &mut Counters) {
        let (packets, bytes) = self.waiting.length();
        self.control.update(now, bytes);
        let length = segment.first_bytes();
        if packets + sending.0 >= self.limit {
            return counters.drop(DropReason::QueueFull, length);
        }
        if self.control.hits(bytes + sending.1) {
            let marks = self.control.marks && segment.packet.ecn_capable && self.control.probability <= MARKS_MAX;
            if !marks {
                return counters.drop(DropReason::QueueManagement, length);
            }
            if !segment.is_marked {
                counters.marked.count(length);
            }
            segment.is_marked = true;
        }
        self.waiting.push(now, segment);
    }

    pub(super) fn dequeue(&mut self, now: Span) -> Option<Run<T>> {
        self.control.update(now, self.waiting.length().1);
        let (since, segment) = self.waiting.pop()?;
        let is_last = self.waiting.length().0 == 0;
        self.control.wait = if is_last { Span::ZERO } else { now.saturating_sub(since) };
        Some(segment)
    }

    pub(super) const fn length(&self) -> (u32, u64) {
        self.waiting.length()
    }
}
