//! What the path does to packets, as the kernel's disciplines.

use super::distribution;
use super::hosts::Topology;
use super::programs::{self, Programs};
use host::netns::NetNs;
use host::qdisc::{self, Cake, Codel, Fifo, FqCodel, Netem, NetemLoss, Qdisc, Red, Tbf};
use host::{HostError, link};
use model::{Discipline, Experiment, Loss, Nic, PathDirection, Queue, Way};
use std::collections::VecDeque;
use units::{Bytes, Rate, Ratio, Seed, Span};

/// Ethernet header: what disciplines count on top of an IP packet.
const LINK_HEADER_BYTES: u64 = 14;
/// Packets a delay holds: more than any path has on its way.
const UNLIMITED_PACKETS: u32 = 50_000_000;
/// A rate that takes no time but makes netem keep packets in order: with a rate it never lets one leave before the one
/// ahead of it. Source: net/sched/sch_netem.c, `netem_enqueue`.
const IN_ORDER: Rate = Rate::from_bits_per_second(8_000_000_000_000_000);

/// What a device on the path does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Rate and queue.
    Bottleneck,
    /// Delay, jitter, loss.
    Propagation,
    /// A port of a switch.
    Port,
}

/// A device on the path.
#[derive(Debug)]
pub(super) struct Shaped {
    pub(super) way: Way,
    pub(super) what: What,
    pub(super) router: usize,
    pub(super) device: String,
    /// Which client it is for.
    pub(super) number: u32,
    pub(super) programs: Programs,
}

impl Shaped {
    pub(super) fn new(way: Way, what: What, router: usize, device: &str, number: u32) -> Self {
        Self { way, what, router, device: device.to_owned(), number, programs: Programs::default() }
    }

    /// Its name in figures: direction and place.
    pub(super) fn label(&self) -> String {
        let way = match self.way {
            Way::Down => "down",
            Way::Up => "up",
        };
        let what = match self.what {
            What::Bottleneck => "bottleneck",
            What::Propagation => "propagation",
            What::Port => "port",
        };
        format!("{way}_{what}")
    }

    /// Its discipline, in one line; `None` where it has none.
    pub(super) fn describe(&self, router: &NetNs) -> Result<Option<String>, HostError> {
        let text = router.run(|| qdisc::describe(link::index(&self.device)?))?;
        Ok((text != "none" && text != "noqueue").then(|| format!("{}: {text}", self.label().replace('_', " "))))
    }

    /// What it dropped and marked: a figure's name and a count, for each that it counts.
    pub(super) fn counts(&self, router: &NetNs) -> Result<Vec<(&'static str, u64)>, HostError> {
        let has_discipline = self.describe(router)?.is_some();
        router.run(|| {
            let index = link::index(&self.device)?;
            let mut counts = self.programs.counts(index)?;
            // Where a link's program queues, the discipline only waits.
            if has_discipline && !self.programs.queues() {
                let found = qdisc::statistics(index)?;
                counts.push(("dropped_packets", found.root.drops));
                let marks = found.child.as_ref().and_then(|child| child.marks).or(found.root.marks);
                counts.extend(marks.map(|marks| ("marked_packets", marks)));
            }
            Ok(counts)
        })
    }
}

/// Puts every device's discipline and programs in place.
pub(super) fn shape(topology: &mut Topology, experiment: &Experiment, seed: Seed) -> Result<(), HostError> {
    let mtu = experiment.path.mtu;
    let mut shaped = std::mem::take(&mut topology.shaped);
    for one in &mut shaped {
        let direction = direction(experiment, one.way);
        let (root, child) = match one.what {
            What::Bottleneck => bottleneck(direction, mtu),
            What::Propagation => (propagation(direction, seed_of(seed, one)), None),
            What::Port => (None, None),
        };
        let router = topology.router(one.router);
        router.run(|| {
            let index = link::index(&one.device)?;
            root.iter().try_for_each(|root| qdisc::attach(index, root))?;
            child.iter().try_for_each(|child| qdisc::attach_child(index, child))
        })?;
        one.program(router, experiment)?;
    }
    topology.shaped = shaped;
    programs::attach_links(topology, experiment)
}

/// Gives a host's own device a rate and a queue.
pub(super) fn attach_nic(device: &str, nic: &Nic, mtu: u16) -> Result<(), HostError> {
    let index = link::index(device)?;
    let limit = Bytes::new(u64::from(nic.packets) * frame(mtu));
    qdisc::attach(index, &Qdisc::Tbf(Tbf { rate: nic.rate, burst: bucket(nic.rate, mtu), limit, overhead: 0 }))?;
    qdisc::attach_child(index, &Qdisc::Fifo(Fifo::Packets(nic.packets)))
}

/// The changes of a path with time.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    steps: VecDeque<Change>,
    mtu: u16,
    seed: Seed,
}

/// One change of one direction.
#[derive(Debug)]
struct Change {
    at: Span,
    /// Which of the direction's changes it is, from 1.
    number: u64,
    way: Way,
    /// Whether rate or propagation change. What does not is left alone: a token bucket that is told its own rate again is full.
    what: [bool; 2],
    /// What the direction is from then on.
    direction: PathDirection,
}

impl Schedule {
    /// Reads the steps of both directions.
    pub(super) fn of(experiment: &Experiment, seed: Seed) -> Self {
        let mut steps = Vec::new();
        for way in [Way::Down, Way::Up] {
            let mut now = direction(experiment, way).clone();
            for (number, step) in (1..).zip(now.steps.clone()) {
                let what = [step.rate.is_some(), step.delay.is_some() || step.loss.is_some()];
                now.rate = step.rate.or(now.rate);
                now.delay = step.delay.unwrap_or(now.delay);
                now.loss = step.loss.unwrap_or(now.loss);
                steps.push(Change { at: step.at, number, way, what, direction: now.clone() });
            }
        }
        steps.sort_by_key(|change| change.at);
        Self { steps: steps.into(), mtu: experiment.path.mtu, seed }
    }

    /// When the next change is due.
    pub(super) fn next(&self) -> Option<Span> {
        self.steps.front().map(|change| change.at)
    }

    /// Makes the changes that are due at `at`.
    pub(super) fn step(&mut self, at: Span, topology: &Topology) -> Result<(), HostError> {
        while self.next().is_some_and(|next| next <= at) {
            let Some(Change { number, way, what, direction, .. }) = self.steps.pop_front() else { break };
            for shaped in topology.shaped.iter().filter(|shaped| shaped.way == way) {
                let root = match shaped.what {
                    What::Bottleneck if what[0] => bottleneck(&direction, self.mtu).0,
                    // The kernel begins its random numbers anew: not with those that were used.
                    What::Propagation if what[1] => propagation(&direction, seed_of(self.seed, shaped).derive(number)),
                    _ => None,
                };
                topology
                    .router(shaped.router)
                    .run(|| root.iter().try_for_each(|root| qdisc::change(link::index(&shaped.device)?, root)))?;
            }
        }
        Ok(())
    }
}

pub(super) fn direction(experiment: &Experiment, way: Way) -> &PathDirection {
    match way {
        Way::Down => &experiment.path.down,
        Way::Up => &experiment.path.up,
    }
}

/// Each device's random numbers are its own.
fn seed_of(seed: Seed, shaped: &Shaped) -> Seed {
    let way = match shaped.way {
        Way::Down => 1,
        Way::Up => 2,
    };
    let own = seed.derive(way);
    if shaped.number <= 1 { own } else { own.derive(u64::from(shaped.number)) }
}

/// Bytes of a full frame.
const fn frame(mtu: u16) -> u64 {
    mtu as u64 + LINK_HEADER_BYTES
}

/// A bucket of two frames, or of what 20 µs send: the wake-up of a queue is never that late in virtual time.
fn bucket(rate: Rate, mtu: u16) -> Bytes {
    Bytes::new((2 * frame(mtu)).max(rate.bdp(Span::from_micros(20)).get()))
}

/// Rate and queue: the root discipline, and the one under it. A plain queue of packets is netem's own serializer, exact at
/// any rate; all others wait behind a token bucket, whose rate also holds at once for what waits when it changes.
fn bottleneck(direction: &PathDirection, mtu: u16) -> (Option<Qdisc>, Option<Qdisc>) {
    let Some(rate) = direction.rate else { return (None, None) };
    let changes = direction.steps.iter().any(|step| step.rate.is_some());
    let overhead = direction.overhead;
    if let (Queue::Packets(limit), Discipline::Fifo, None, false) =
        (direction.queue, direction.discipline, direction.burst, changes)
    {
        let netem = Netem { rate: Some(rate), packet_overhead: i32::from(overhead), limit, ..Netem::default() };
        return (Some(Qdisc::Netem(netem)), None);
    }
    let (frame, ecn) = (frame(mtu), direction.ecn);
    let bytes = match direction.queue {
        Queue::Packets(packets) => Bytes::new(u64::from(packets) * frame),
        Queue::Bytes(bytes) => bytes,
        Queue::Time(span) => Bytes::new(rate.bdp(span).get().max(frame)),
    };
    let packets = match direction.queue {
        Queue::Packets(packets) => packets,
        _ => u32::try_from(bytes.get().div_ceil(frame)).unwrap_or(u32::MAX),
    };
    let child = match direction.discipline {
        Discipline::Cake { rtt } => {
            // CAKE counts from the IP packet once it is told of any overhead.
            let overhead = LINK_HEADER_BYTES as i32 + i32::from(overhead);
            let (bandwidth, memory_limit) = (Some(rate), Some(bytes));
            return (Some(Qdisc::Cake(Cake { bandwidth, rtt, overhead, raw: false, memory_limit })), None);
        }
        Discipline::Fifo => match direction.queue {
            Queue::Packets(packets) => Some(Qdisc::Fifo(Fifo::Packets(packets))),
            _ => None,
        },
        Discipline::Red { min, max, probability } => Some(Qdisc::Red(Red {
            limit: bytes,
            min: Some(min),
            max: Some(max),
            probability,
            avpkt: Bytes::new(1000.min(frame)),
            bandwidth: rate,
            ecn,
            ..Red::default()
        })),
        Discipline::Codel { target, interval } => Some(Qdisc::Codel(Codel { target, interval, limit: packets, ecn })),
        Discipline::FqCodel { target, interval, flows } => {
            Some(Qdisc::FqCodel(FqCodel { target, interval, flows, limit: packets, ecn, ..FqCodel::default() }))
        }
    };
    let burst = direction.burst.unwrap_or_else(|| bucket(rate, mtu)).max(Bytes::new(frame + u64::from(overhead)));
    (Some(Qdisc::Tbf(Tbf { rate, burst, limit: bytes, overhead })), child)
}

fn propagation(direction: &PathDirection, seed: Seed) -> Option<Qdisc> {
    let PathDirection { delay, jitter, loss, duplicate, corrupt, reorder, ecn, steps, .. } = direction;
    let changes = steps.iter().any(|step| step.delay.is_some() || step.loss.is_some());
    let nothing = *delay == Span::ZERO
        && jitter.is_none()
        && matches!(loss, Loss::None | Loss::List { .. })
        && duplicate.is_none()
        && corrupt.is_none();
    if nothing && !changes {
        return None;
    }
    let mut netem = Netem { delay: *delay, ecn: *ecn, limit: UNLIMITED_PACKETS, seed: seed.get(), ..Netem::default() };
    if let Some(jitter) = jitter {
        netem.jitter = jitter.stddev;
        netem.delay_correlation = jitter.correlation;
        netem.distribution = distribution::table(&jitter.distribution);
    }
    if jitter.as_ref().is_some_and(|jitter| !jitter.reorder) || (changes && reorder.is_none()) {
        netem.rate = Some(IN_ORDER);
    }
    match *loss {
        Loss::None | Loss::List { .. } => {}
        Loss::Random(chance) => {
            netem.loss = NetemLoss::Random(chance.probability);
            netem.loss_correlation = chance.correlation;
        }
        Loss::GilbertElliott { p, r, h, k } => netem.loss = NetemLoss::GilbertElliott([p, r, h, k]),
    }
    let chances = |chance: &Option<model::Chance>| {
        chance.map_or((Ratio::ZERO, Ratio::ZERO), |chance| (chance.probability, chance.correlation))
    };
    (netem.duplicate, netem.duplicate_correlation) = chances(duplicate);
    (netem.corrupt, netem.corrupt_correlation) = chances(corrupt);
    if let Some(reorder) = reorder {
        (netem.reorder, netem.reorder_correlation) = (reorder.chance.probability, reorder.chance.correlation);
        netem.reorder_gap = reorder.gap;
    }
    Some(Qdisc::Netem(netem))
}
