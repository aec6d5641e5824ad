//! What the path does to packets, as the kernel's disciplines.

use thalweg_host::qdisc::{self, AckFilter, Cake, Codel, Fifo, FqCodel, Netem, NetemLoss, Pie, Qdisc, Red, Tbf};
use thalweg_host::{HostError, link};
use thalweg_model::{Discipline, Jitter, Loss, Nic, PathDirection, Queue};
use thalweg_path::distribution;
use thalweg_units::{Bytes, Rate, Ratio, Seed, Span};

/// Ethernet header: what disciplines count on top of an IP packet.
const LINK_HEADER_BYTES: u64 = 14;
/// Packets a delay holds: more than any path has on its way.
const UNLIMITED_PACKETS: u32 = 50_000_000;
/// The wake-up of a queue is never that late in virtual time.
pub(super) const LATE_VIRTUAL: Span = Span::from_micros(20);
/// In real time a path may be that late, so what waits for it longer may be so, too.
pub(super) const LATE_REAL: Span = Span::from_micros(100);
/// A rate that takes no time but makes netem keep packets in order: with a rate it never lets one leave before the one
/// ahead of it. Source: net/sched/sch_netem.c, `netem_enqueue`.
const IN_ORDER: Rate = Rate::from_bits_per_second(8_000_000_000_000_000);

/// Gives a host's own device a rate and a queue; the rate is kept where the queue is woken up to `late` after it could send.
pub(super) fn attach_nic(device: &str, nic: &Nic, mtu: u16, late: Span) -> Result<(), HostError> {
    let index = link::index(device)?;
    let limit = Bytes::new(u64::from(nic.packets) * frame(mtu));
    qdisc::attach(
        index,
        &Qdisc::Tbf(Tbf { rate: nic.rate, burst: bucket(nic.rate, mtu, late), limit, overhead: nic.overhead }),
    )?;
    qdisc::attach_child(index, &Qdisc::Fifo(Fifo::Packets(nic.packets)))
}

/// Bytes of a full frame.
const fn frame(mtu: u16) -> u64 {
    mtu as u64 + LINK_HEADER_BYTES
}

/// A bucket of two frames, or of what the rate sends in the time by which the wake-up of a queue may be late.
fn bucket(rate: Rate, mtu: u16, late: Span) -> Bytes {
    Bytes::new((2 * frame(mtu)).max(rate.bdp(late).get()))
}

/// Rate and queue: the root discipline, and the one under it. A plain queue of packets is netem's own serializer, exact at
/// any rate; all others wait behind a token bucket, whose rate also holds at once for what waits when it changes.
pub(super) fn bottleneck(direction: &PathDirection, mtu: u16) -> (Option<Qdisc>, Option<Qdisc>) {
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
        Discipline::Cake { rtt, ack_filter } => {
            // CAKE counts from the IP packet once it is told of any overhead.
            let overhead = LINK_HEADER_BYTES as i32 + i32::from(overhead);
            let (bandwidth, memory_limit) = (Some(rate), Some(bytes));
            return (
                Some(Qdisc::Cake(Cake {
                    bandwidth,
                    rtt,
                    overhead,
                    raw: false,
                    memory_limit,
                    ack_filter: filter(ack_filter),
                })),
                None,
            );
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
        Discipline::Pie { target, tupdate } => Some(Qdisc::Pie(Pie { target, tupdate, limit: packets, ecn })),
        Discipline::FqCodel { target, interval, flows } => {
            Some(Qdisc::FqCodel(FqCodel { target, interval, flows, limit: packets, ecn, ..FqCodel::default() }))
        }
    };
    let burst =
        direction.burst.unwrap_or_else(|| bucket(rate, mtu, LATE_VIRTUAL)).max(Bytes::new(frame + u64::from(overhead)));
    (Some(Qdisc::Tbf(Tbf { rate, burst, limit: bytes, overhead })), child)
}

const fn filter(asked: thalweg_model::AckFilter) -> AckFilter {
    match asked {
        thalweg_model::AckFilter::Off => AckFilter::Off,
        thalweg_model::AckFilter::On => AckFilter::On,
        thalweg_model::AckFilter::Aggressive => AckFilter::Aggressive,
    }
}

/// The jitter in which one packet follows another. netem cannot do it: what it looks up in a table of delays is the remainder
/// of a correlated number, of which nothing is left.
pub(super) fn correlated(direction: &PathDirection) -> Option<&Jitter> {
    direction.jitter.as_ref().filter(|jitter| jitter.correlation > Ratio::ZERO)
}

/// Delay, jitter and loss. A delay whose jitter is correlated is a program's, and then not here.
pub(super) fn propagation(direction: &PathDirection, seed: Seed) -> Option<Qdisc> {
    let PathDirection { delay, jitter, loss, duplicate, corrupt, reorder, ecn, steps, .. } = direction;
    let delayed_here = correlated(direction).is_none();
    let (delay, jitter) = if delayed_here { (*delay, jitter.as_ref()) } else { (Span::ZERO, None) };
    let changes = steps.iter().any(|step| step.delay.is_some() && delayed_here || step.loss.is_some());
    let nothing = delay == Span::ZERO
        && jitter.is_none()
        && matches!(loss, Loss::None | Loss::List { .. })
        && duplicate.is_none()
        && corrupt.is_none();
    if nothing && !changes {
        return None;
    }
    let limit = direction.delay_limit.unwrap_or(UNLIMITED_PACKETS);
    let mut netem = Netem { delay, ecn: *ecn, limit, seed: seed.get(), ..Netem::default() };
    if let Some(jitter) = jitter {
        netem.jitter = jitter.stddev;
        netem.distribution = distribution::table(&jitter.distribution);
    }
    if jitter.is_some_and(|jitter| !jitter.reorder) || (changes && reorder.is_none()) {
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
    let chances = |chance: &Option<thalweg_model::Chance>| {
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
