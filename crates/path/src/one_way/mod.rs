//! One direction of a path.

use crate::bottleneck::Bottleneck;
use crate::counters::{Counters, DropReason, Tally};
use crate::delay_line::Departure;
use crate::packet::{Packet, Run};
use crate::policer::{LINK_HEADER_BYTES, Policer};
use crate::propagation::Propagation;
use crate::queue::{self, Queue};
use crate::shaper::Shaper;
use crate::token_bucket::TokenBucket;
use crate::trace::TraceReplay;
use thalweg_model::{PathDirection, Step};
use thalweg_units::{Bytes, Rate, Seed, Span};
use thiserror::Error;

/// Segments a direction holds at most, copies not counted: 10 Gb/s for 5 seconds in packets of 1500 bytes.
const HELD_MAX_PACKETS: u64 = 1 << 22;

/// One direction of a path: packets in, departures out.
///
/// Times are counted from the direction's beginning, and so are its steps. The departures depend on the packets and their
/// arrival times alone, not on when they are asked for.
///
/// ```
/// use thalweg_path::{Lengths, OneWay, Packet};
/// use thalweg_units::{Seed, Span};
///
/// let direction = thalweg_model::PathDirection { delay: Span::from_millis(20), ..Default::default() };
/// let mut path = OneWay::new(&direction, 1500, Seed::new(1))?;
/// let lengths = Lengths::whole(52, 1448);
/// path.handle_packet(Span::ZERO, Packet { data: "first", lengths, flow: 0, ecn_capable: false, is_tcp: true });
/// assert_eq!(path.poll_timeout(), Some(Span::from_millis(20)));
/// assert!(path.poll_departure(Span::from_millis(19)).is_none());
/// assert_eq!(path.poll_departure(Span::from_millis(20)).map(|departure| departure.data), Some("first"));
/// # Ok::<(), thalweg_path::Unsupported>(())
/// ```
#[derive(Debug)]
pub struct OneWay<T> {
    policer: Option<Policer>,
    bottleneck: Option<Bottleneck<T>>,
    bottleneck_seed: Seed,
    propagation: Propagation<T>,
    direction: PathDirection,
    mtu: u16,
    now: Span,
    /// Steps of the direction that are over.
    steps_done: usize,
    /// Packets that came in.
    packets: u64,
    counters: Counters,
}

/// Why a direction cannot be emulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unsupported {
    /// CAKE is not implemented.
    #[error("CAKE is not emulated here\n\nhint: use fq_codel, or run the scenario in the lab")]
    Cake,
    /// The trace has no opportunity after 0 ms.
    #[error("the trace has no opportunity after 0 ms\n\nhint: give the milliseconds at which 1500 bytes may leave")]
    EmptyTrace,
    /// A step changes the rate where there is none, or where a trace gives it.
    #[error("a step changes the rate of a link that has none\n\nhint: give the direction a rate, and no trace")]
    StepWithoutRate,
}

impl<T: Clone> OneWay<T> {
    /// A direction at time 0, with nothing on it. `mtu` is the largest IP packet, in bytes, which the default burst is
    /// computed from.
    ///
    /// # Errors
    /// [`Unsupported`] if the direction asks for what is not emulated.
    pub fn new(direction: &PathDirection, mtu: u16, seed: Seed) -> Result<Self, Unsupported> {
        let mut direction = direction.clone();
        direction.steps.sort_by_key(|step| step.at);
        Ok(Self {
            policer: direction.policer.as_ref().map(Policer::new),
            bottleneck: bottleneck(&direction, mtu, seed.derive(1))?,
            bottleneck_seed: seed.derive(1),
            propagation: Propagation::new(&direction, seed.derive(2)),
            direction,
            mtu,
            now: Span::ZERO,
            steps_done: 0,
            packets: 0,
            counters: Counters::default(),
        })
    }

    /// Takes in a packet that arrives at `now`; a time before one given earlier counts as that one.
    ///
    /// Every segment of it is policed, queued, dropped and delayed as a packet of its own.
    pub fn handle_packet(&mut self, now: Span, packet: Packet<T>) {
        self.packets += 1;
        self.handle_run(now, Run::whole(packet, self.packets));
    }

    /// Takes in segments that arrive at `now`, as [`Self::handle_packet`] does.
    pub(crate) fn handle_run(&mut self, now: Span, run: Run<T>) {
        self.advance(now);
        let room = HELD_MAX_PACKETS.saturating_sub(self.counters.held_packets());
        self.counters.arrived.add(run.tally());
        if self.policer.is_none() && self.bottleneck.is_none() && run.segments.len() as u64 <= room {
            return self.propagation.enter(self.now, run, &mut self.counters);
        }
        let (mut rest, mut taken) = (Some(run), 0);
        while let Some(run) = rest {
            let (segment, others) = run.split_first();
            rest = others;
            if taken < room {
                self.handle_segment(segment);
            } else {
                self.counters.drop(DropReason::PathFull, segment.first_bytes());
            }
            taken += 1;
        }
    }

    /// Takes out segments that have left at `now`: those of one packet that follow each other and have all left. `None` if
    /// there are none; it is to be called until then.
    pub fn poll_departure(&mut self, now: Span) -> Option<Departure<T>> {
        self.poll_run(now).map(|(at, run)| Departure::new(at, run))
    }

    /// Takes out what [`Self::poll_departure`] would, with the time it left.
    pub(crate) fn poll_run(&mut self, now: Span) -> Option<(Span, Run<T>)> {
        self.advance(now);
        let (at, run) = self.propagation.pop(self.now)?;
        self.counters.departed.add(run.tally());
        Some((at, run))
    }

    /// When to call [`Self::poll_departure`] next, if nothing comes in before; `None` if nothing is on the path.
    pub fn poll_timeout(&self) -> Option<Span> {
        let leaves = self.propagation.next();
        if leaves.is_some() && self.propagation.is_in_order() {
            return leaves;
        }
        let sent = self.bottleneck.as_ref().and_then(Bottleneck::next);
        let step = self.next_step().filter(|_| sent.is_some());
        [leaves, sent, step].into_iter().flatten().min()
    }

    /// Whether nothing that enters later can leave before what is there.
    pub(crate) const fn is_in_order(&self) -> bool {
        self.propagation.is_in_order()
    }

    /// Changes rate, delay or loss at [`Step::at`], or at the latest time given if that is later. A rate is also given to a
    /// direction that had none, with the queue that the direction asks for.
    ///
    /// # Errors
    /// [`Unsupported`] if a trace gives the rate; then nothing changes.
    pub fn change(&mut self, step: &Step) -> Result<(), Unsupported> {
        if step.rate.is_some() && self.direction.trace.is_some() {
            return Err(Unsupported::StepWithoutRate);
        }
        self.advance(step.at);
        if let (Some(rate), None) = (step.rate, &self.bottleneck) {
            self.direction.rate = Some(rate);
            self.bottleneck = bottleneck(&self.direction, self.mtu, self.bottleneck_seed)?;
        }
        self.apply(&Step { at: self.now, ..step.clone() });
        Ok(())
    }

    /// What it counted until the latest time given.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Segments that wait at the bottleneck, the one being sent included.
    pub fn queued(&self) -> Tally {
        self.bottleneck.as_ref().map_or(Tally::default(), |bottleneck| without_headers(bottleneck.length()))
    }

    /// The most segments that ever waited at the bottleneck, and the most bytes, Ethernet headers included.
    pub fn queue_peak(&self) -> (u32, Bytes) {
        let (packets, bytes) = self.bottleneck.as_ref().map_or((0, 0), Bottleneck::peak);
        (packets, Bytes::new(bytes))
    }

    /// Segments on the path, copies included; takes time in proportion to them.
    pub fn held(&self) -> Tally {
        let mut tally = self.queued();
        tally.add(self.propagation.tally());
        tally
    }

    fn handle_segment(&mut self, segment: Run<T>) {
        // What left at this time makes room, as it does between packets.
        self.advance(self.now);
        let bytes = segment.first_bytes();
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(self.now, bytes)) {
            return self.counters.drop(DropReason::Policer, bytes);
        }
        match &mut self.bottleneck {
            Some(bottleneck) => bottleneck.enter(self.now, segment, &mut self.counters),
            None => self.propagation.enter(self.now, segment, &mut self.counters),
        }
    }

    fn next_step(&self) -> Option<Span> {
        self.direction.steps.get(self.steps_done).map(|step| step.at)
    }

    /// Does everything that is due until `now`, in order of time.
    fn advance(&mut self, now: Span) {
        self.now = self.now.max(now);
        loop {
            let sent = self.bottleneck.as_ref().and_then(Bottleneck::next).filter(|at| *at <= self.now);
            let step = self.next_step().filter(|at| *at <= self.now);
            match (sent, step) {
                (None, None) => return,
                (sent, Some(step)) if sent.is_none_or(|sent| step <= sent) => self.step(),
                _ => {
                    let left = self.bottleneck.as_mut().and_then(|bottleneck| bottleneck.leave(&mut self.counters));
                    if let Some((at, segment)) = left {
                        self.propagation.enter(at, segment, &mut self.counters);
                    }
                }
            }
        }
    }

    fn step(&mut self) {
        let step = self.direction.steps[self.steps_done].clone();
        self.steps_done += 1;
        self.apply(&step);
    }

    fn apply(&mut self, Step { at, rate, delay, loss }: &Step) {
        if let (Some(rate), Some(bottleneck)) = (*rate, &mut self.bottleneck) {
            bottleneck.set_rate(*at, rate, queue::burst(&self.direction, rate, self.mtu));
        }
        delay.iter().for_each(|delay| self.propagation.set_delay(*delay));
        loss.iter().for_each(|loss| self.propagation.set_loss(loss));
    }
}

fn bottleneck<T: Clone>(direction: &PathDirection, mtu: u16, seed: Seed) -> Result<Option<Bottleneck<T>>, Unsupported> {
    if (direction.rate.is_none() || direction.trace.is_some()) && direction.steps.iter().any(|step| step.rate.is_some())
    {
        return Err(Unsupported::StepWithoutRate);
    }
    let (rate, shaper) = match (&direction.trace, direction.rate) {
        (Some(trace), _) => {
            let replay = TraceReplay::new(&trace.opportunities_ms).ok_or(Unsupported::EmptyTrace)?;
            let bits = (replay.mean_bytes_per_second() * 8.0) as u64;
            (Rate::from_bits_per_second(bits), Shaper::Trace(replay))
        }
        (None, Some(rate)) => (rate, Shaper::Rate(TokenBucket::new(rate, queue::burst(direction, rate, mtu)))),
        (None, None) => return Ok(None),
    };
    let queue = Queue::new(direction, rate, mtu, seed).ok_or(Unsupported::Cake)?;
    Ok(Some(Bottleneck::new(queue, shaper, direction.overhead)))
}

/// A queue's length from the IP header on.
fn without_headers((packets, bytes): (u32, u64)) -> Tally {
    let packets = u64::from(packets);
    Tally { packets, bytes: Bytes::new(bytes - packets * LINK_HEADER_BYTES) }
}

#[cfg(test)]
mod tests;
