//! What a capture shows of a connection, as the report has it: each part is there where there is something to tell.

use crate::diagnosis::facts::Facts as DirectionFacts;
use crate::diagnosis::rules::initial_window;
use crate::estimate::partition::MAX_FLAT_ROUNDS;
use crate::estimate::receive_buffer;
use crate::observe::slow_start::Exit;
use crate::tcp::connection::Connection;
use crate::tcp::sender::Sender;
use thalweg_model::{
    BurstLosses, Bursts, CongestionFamily, DelayedAcks, Delivery, Facts, IdleRestarts, InitialWindow, LossClass,
    LossFacts, PathMtu, ReceiveWindow, Reordering, RoundTrips, RttSource, SlowStart, SlowStartExit,
};

/// Part of the episodes of loss that one cause must make out.
const MIN_CLASS_SHARE: f64 = 0.75;

/// The facts of a connection whose data mostly comes from side `main`; `black_hole` is whether lengths were found to vanish.
pub(crate) fn facts(connection: &Connection, main: usize, judged: &DirectionFacts<'_>, black_hole: bool) -> Facts {
    let (opening, signals, sender) = (&connection.opening, &connection.signals, judged.sender);
    Facts {
        tap_duplicates: connection.tap_duplicates,
        missed_bytes: sender.totals.missed_bytes,
        ecn: signals.ecn_of(main, opening),
        fast_open: opening.fast_open(),
        multipath: signals.multipath(opening),
        keep_alives: signals.keep_alives(),
        reordering: reordering(sender),
        rtt: round_trips(sender, judged.ack_wait_s),
        receive_window: receive_window(connection, main),
        initial_window: first_window(judged),
        slow_start: slow_start(judged),
        shared_path: None,
        delivery: delivery(judged),
        flight_max_bytes: sender.totals.flight_max,
        losses: losses(judged),
        bursts: bursts(sender),
        idle_restarts: idle_restarts(sender),
        delayed_acks: (judged.held.delayed.seen.count > 0).then(|| DelayedAcks {
            waits: judged.held.delayed.seen.count,
            waited_ms: judged.held.delayed.time as f64 / 1e6,
        }),
        path_mtu: black_hole.then(|| path_mtu(sender)),
        congestion_control: congestion_control(sender),
    }
}

/// Whose congestion control the sender has: elsewhere than at the sender by what is in flight after losses alone, and not where much came late, which is
/// lost for a while as it seems from there.
fn congestion_control(sender: &Sender) -> Option<CongestionFamily> {
    let seen = &sender.observers.congestion_control;
    if sender.is_exact() {
        return seen.family();
    }
    let late = sender.scoreboard.out_of_order * 2 > sender.losses.total;
    seen.kept().filter(|_| !late)
}

fn reordering(sender: &Sender) -> Option<Box<Reordering>> {
    let found = &sender.observers.reordering;
    (found.packets > 0).then(|| {
        Box::new(Reordering {
            packets: found.packets,
            bytes_max: found.bytes,
            segments_max: found.bytes.div_ceil(sender.space.mss.max(1)),
            late_ms_max: (found.nanos > 0).then_some(found.nanos as f64 / 1e6),
        })
    })
}

fn round_trips(sender: &Sender, ack_wait_s: Option<f64>) -> Option<Box<RoundTrips>> {
    let rtt = &sender.rtt;
    if rtt.samples == 0 {
        return None;
    }
    let source = match (sender.is_exact(), rtt.samples) {
        (true, _) => RttSource::Acknowledgements,
        // The handshake's is the first.
        (false, 1) => RttSource::Handshake,
        (false, _) => RttSource::Timestamps,
    };
    let [p50, p90, p99] = rtt.percentiles([0.5, 0.9, 0.99]).map(|nanos| nanos / 1e6);
    let (mut met, mut delivered) = (0.0, 0.0);
    for slice in sender.observers.time.slices.iter().filter(|slice| slice.rtt_count > 0) {
        met += slice.rtt_sum as f64 / f64::from(slice.rtt_count) * slice.delivered as f64;
        delivered += slice.delivered as f64;
    }
    Some(Box::new(RoundTrips {
        source,
        samples: rtt.samples,
        p50_ms: p50,
        p90_ms: p90,
        p99_ms: p99,
        max_ms: rtt.max as f64 / 1e6,
        loaded_ms: (delivered > 0.0).then(|| met / delivered / 1e6),
        timestamps_min_ms: sender
            .observers
            .timestamp_echo
            .min
            .filter(|_| sender.is_exact())
            .map(|min| min as f64 / 1e6),
        ack_wait_ms: ack_wait_s.map(|wait| wait * 1e3),
    }))
}

fn receive_window(connection: &Connection, main: usize) -> Option<Box<ReceiveWindow>> {
    let sender = &connection.sides[main].sender;
    let first = sender.observers.window_growth.first.filter(|_| sender.totals.bytes > 0)?;
    let [own, other] = [main, 1 - main].map(|side| connection.opening.syn[side].wscale);
    let bound = own.and(other).map(receive_buffer::bound);
    Some(Box::new(ReceiveWindow {
        first_bytes: first,
        max_bytes: sender.window.max,
        state: receive_buffer::state(sender),
        buffer_least_bytes: bound.map(|(least, _)| least),
        buffer_below_bytes: bound.and_then(|(_, below)| below),
    }))
}

fn first_window(judged: &DirectionFacts<'_>) -> Option<InitialWindow> {
    let sender = judged.sender;
    let (bytes, exact) = (sender.observers.slow_start.initial_bytes, initial_window::is_known(judged));
    (bytes > 0 && (exact || sender.is_exact())).then(|| InitialWindow {
        bytes,
        segments: bytes as f64 / sender.space.mss.max(1) as f64,
        exact,
    })
}

fn slow_start(judged: &DirectionFacts<'_>) -> Option<SlowStart> {
    let start = &judged.sender.observers.slow_start;
    let growth = &start.growth;
    let exit = match start.exit {
        Some((_, Exit::Loss)) => Some(SlowStartExit::Loss),
        Some((_, Exit::Echo)) => Some(SlowStartExit::EcnEcho),
        Some((_, Exit::Plateau)) => Some(SlowStartExit::GrowthStopped),
        None if growth.since < MAX_FLAT_ROUNDS => None,
        None if growth.limited * 2 >= growth.since => Some(SlowStartExit::ReceiveWindow),
        None if growth.idle * 2 >= growth.since => Some(SlowStartExit::Application),
        None => Some(SlowStartExit::GrowthStopped),
    };
    let at = start.exit.map_or(growth.until, |(at, _)| at);
    let exit_s = exit.map(|_| at as f64 / 1e9);
    let crept = judged.crept_from().is_some();
    (growth.rounds > 0 || crept).then_some(SlowStart { rounds: u64::from(growth.rounds), exit, exit_s, crept })
}

fn delivery(judged: &DirectionFacts<'_>) -> Option<Delivery> {
    let bits = |rate: Option<f64>| rate.map(|rate| rate * 8.0);
    let found =
        Delivery { rate_bps: bits(judged.plateau), capacity_bps: bits(judged.capacity), bdp_bytes: judged.bdp() };
    (found.rate_bps.is_some() || found.capacity_bps.is_some()).then_some(found)
}

fn losses(judged: &DirectionFacts<'_>) -> Option<Box<LossFacts>> {
    let observers = &judged.sender.observers;
    let found = observers.loss_episodes.summary()?;
    let all = (judged.random_losses + judged.congested_losses) as f64;
    let class = match (judged.bucket, judged.random_losses as f64, judged.congested_losses as f64) {
        (Some(_), ..) => Some(LossClass::Policer),
        _ if all == 0.0 => None,
        (_, random, _) if random >= MIN_CLASS_SHARE * all => Some(LossClass::Random),
        (_, _, congested) if congested >= MIN_CLASS_SHARE * all => Some(LossClass::Queue),
        _ => Some(LossClass::Mixed),
    };
    let [p50_ms, p80_ms, p90_ms, p99_ms, max_ms] = found.lengths.map(|micros| micros as f64 / 1e3);
    Some(Box::new(LossFacts {
        class,
        episodes: found.episodes,
        packets: found.packets,
        packets_max: found.most,
        p50_ms,
        p80_ms,
        p90_ms,
        p99_ms,
        max_ms,
        tails: observers.tail_losses.by_probe + observers.tail_losses.by_timer,
    }))
}

fn bursts(sender: &Sender) -> Option<Box<Bursts>> {
    let found = &sender.observers.microbursts;
    let (wide, narrow) = found.peaks();
    (wide > 0).then(|| {
        Box::new(Bursts {
            peak_1ms_bytes: wide,
            peak_100us_bytes: narrow,
            peak_1ms_bps: wide as f64 * 8e3,
            peak_100us_bps: narrow as f64 * 8e4,
            losses: found.joined().map(|joined| BurstLosses {
                joined: joined.losses,
                after_largest: joined.after_largest,
                by_chance: joined.by_chance,
                bytes_max: joined.most,
            }),
        })
    })
}

fn idle_restarts(sender: &Sender) -> Option<Box<IdleRestarts>> {
    let found = &sender.observers.idle_restarts;
    (found.bursts > 0).then(|| {
        Box::new(IdleRestarts {
            pauses: found.bursts,
            restarts: found.restarted.count,
            restarted_ms: found.time as f64 / 1e6,
        })
    })
}

/// Beyond a tap at the receiver the long packets are not seen; what was agreed on is.
fn path_mtu(sender: &Sender) -> PathMtu {
    let longest = u64::from(sender.space.largest_payload);
    let (passed_bytes, vanished_bytes) = if sender.is_exact() {
        (sender.scoreboard.largest_delivered, longest)
    } else {
        (longest, sender.space.agreed.unwrap_or(sender.space.mss))
    };
    PathMtu { passed_bytes, vanished_bytes }
}
