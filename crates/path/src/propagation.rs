//! The second half of a direction: losses, black hole, duplication, corruption, and the delay.

use crate::chance::Events;
use crate::counters::{Counters, DropReason, Tally};
use crate::delay::Delay;
use crate::delay_line::{DelayLine, InFlight};
use crate::loss::{ListedLosses, LossModel};
use crate::packet::Run;
use crate::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use thalweg_model::{Loss, PathDirection};
use thalweg_units::{Seed, Span};

/// What happens to segments between the bottleneck and the far end.
#[derive(Debug)]
pub(crate) struct Propagation<T> {
    listed: Option<ListedLosses>,
    black_hole: Option<u16>,
    loss: LossModel,
    marks_instead: bool,
    duplicate: Option<Events>,
    corrupt: Option<Corruption>,
    delay: Delay,
    line: DelayLine<T>,
    limit: Option<Limit>,
    seed: Seed,
    losses_set: u64,
}

/// How many segments may be on their way, and when those that are will have left: whether they have been asked for or not.
#[derive(Debug)]
struct Limit {
    most: usize,
    leave: BinaryHeap<Reverse<Span>>,
}

impl Limit {
    fn is_reached(&mut self, now: Span) -> bool {
        while self.leave.peek().is_some_and(|Reverse(at)| *at <= now) {
            self.leave.pop();
        }
        self.leave.len() >= self.most
    }
}

#[derive(Debug)]
struct Corruption {
    events: Events,
    bits: Random,
}

impl<T: Clone> Propagation<T> {
    pub(crate) fn new(direction: &PathDirection, seed: Seed) -> Self {
        let events =
            |chance: Option<thalweg_model::Chance>, salt| chance.map(|chance| Events::new(chance, seed.derive(salt)));
        Self {
            listed: ListedLosses::new(&direction.loss),
            black_hole: direction.black_hole,
            loss: LossModel::new(&direction.loss, seed.derive(0)),
            marks_instead: direction.ecn,
            duplicate: events(direction.duplicate, 1),
            corrupt: events(direction.corrupt, 2)
                .map(|events| Corruption { events, bits: Random::new(seed.derive(3)) }),
            delay: Delay::new(direction, seed.derive(4)),
            line: if Delay::may_reorder(direction) { DelayLine::by_time() } else { DelayLine::in_order() },
            limit: direction.delay_limit.map(|most| Limit { most: most as usize, leave: BinaryHeap::new() }),
            seed: seed.derive(5),
            losses_set: 0,
        }
    }

    /// The delay of packets from now on.
    pub(crate) const fn set_delay(&mut self, delay: Span) {
        self.delay.base = delay;
    }

    /// The random loss of packets from now on; a list of losses stays as it is.
    pub(crate) fn set_loss(&mut self, loss: &Loss) {
        self.losses_set += 1;
        self.loss = LossModel::new(loss, self.seed.derive(self.losses_set));
    }

    /// Takes segments in, one by one where their fates may differ.
    pub(crate) fn enter(&mut self, now: Span, run: Run<T>, counters: &mut Counters) {
        if self.treats_all_alike() {
            let at = self.delay.next().map_or(now, |delay| now + delay);
            self.line.push(InFlight { at, run, is_copy: false });
            return;
        }
        let mut rest = Some(run);
        while let Some(run) = rest {
            let (one, others) = run.split_first();
            rest = others;
            self.enter_one(now, one, counters);
        }
    }

    /// Whether every segment passes with the same delay.
    const fn treats_all_alike(&self) -> bool {
        matches!(self.loss, LossModel::None)
            && self.listed.is_none()
            && self.black_hole.is_none()
            && self.duplicate.is_none()
            && self.corrupt.is_none()
            && self.delay.is_constant()
            && self.limit.is_none()
    }

    fn enter_one(&mut self, now: Span, run: Run<T>, counters: &mut Counters) {
        let bytes = run.first_bytes();
        let has_tcp_payload = run.packet.is_tcp && run.packet.lengths.has_payload();
        if self.listed.as_mut().is_some_and(|listed| listed.loses(has_tcp_payload)) {
            return counters.drop(DropReason::Listed, bytes);
        }
        if self.black_hole.is_some_and(|longest| bytes > u32::from(longest)) {
            return counters.drop(DropReason::BlackHole, bytes);
        }
        // A copy has a fate of its own, but is not copied again. Source: net/sched/sch_netem.c, `netem_enqueue`.
        if self.duplicate.as_mut().is_some_and(Events::happens) {
            counters.duplicated.count(bytes);
            self.send(now, run.clone(), true, counters);
        }
        self.send(now, run, false, counters);
    }

    fn send(&mut self, now: Span, mut run: Run<T>, is_copy: bool, counters: &mut Counters) {
        let bytes = run.first_bytes();
        if self.loss.loses() {
            if !(self.marks_instead && run.packet.ecn_capable) {
                return counters.drop(DropReason::RandomLoss, bytes);
            }
            if !run.is_marked {
                counters.marked.count(bytes);
            }
            run.is_marked = true;
        }
        let flipped = self.corrupt.as_mut().and_then(|corruption| {
            corruption.events.happens().then(|| corruption.bits.below(u64::from(bytes) * 8) as u32)
        });
        if flipped.is_some() {
            counters.corrupted.count(bytes);
            run.flipped_bit = flipped;
        }
        if self.limit.as_mut().is_some_and(|limit| limit.is_reached(now)) {
            return counters.drop(DropReason::DelayFull, bytes);
        }
        let at = self.delay.next().map_or(now, |delay| now + delay);
        let leaves = self.line.push(InFlight { at, run, is_copy });
        if let Some(limit) = &mut self.limit {
            limit.leave.push(Reverse(leaves));
        }
    }

    /// Segments on their way; takes time in proportion to them.
    pub(crate) fn tally(&self) -> Tally {
        self.line.tally()
    }

    /// When the next segments leave.
    pub(crate) fn next(&self) -> Option<Span> {
        self.line.next()
    }

    /// Whether nothing that enters later can leave before [`Self::next`].
    pub(crate) const fn is_in_order(&self) -> bool {
        self.line.is_in_order()
    }

    /// Takes out what has left at `now`, with the time it did so.
    pub(crate) fn pop(&mut self, now: Span) -> Option<(Span, Run<T>)> {
        self.line.pop(now)
    }
}
