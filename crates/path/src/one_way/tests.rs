//! Tests of a direction: what is asked for is what is measured, and what holds for any direction and any packets.

use super::*;
use crate::{Departure, Lengths};
use proptest::prelude::*;
use thalweg_model::{AckFilter, Chance, Discipline, Distribution, Jitter, Loss, Queue, Reorder, Trace};
use thalweg_units::Ratio;

const MBIT: u64 = 1_000_000;

fn ratio(ratio: f64) -> Ratio {
    Ratio::new(ratio).expect("a ratio")
}

fn packet(number: u64, lengths: Lengths) -> Packet<u64> {
    Packet {
        data: number,
        lengths,
        flow: (number % 5).wrapping_mul(0x3333_3333_3333_3333),
        ecn_capable: number.is_multiple_of(2),
        is_tcp: true,
    }
}

fn one_way(direction: &PathDirection) -> OneWay<u64> {
    OneWay::new(direction, 1500, Seed::new(7)).expect("supported")
}

/// All departures of packets that arrive at these times, asked for whenever one is due.
fn run(path: &mut OneWay<u64>, packets: &[(Span, Lengths)]) -> Vec<Departure<u64>> {
    let mut departures = Vec::new();
    for (number, (at, lengths)) in (0..).zip(packets) {
        drain(path, Some(*at), &mut departures);
        path.handle_packet(*at, packet(number, *lengths));
    }
    drain(path, None, &mut departures);
    departures
}

fn drain(path: &mut OneWay<u64>, until: Option<Span>, into: &mut Vec<Departure<u64>>) {
    while let Some(next) = path.poll_timeout().filter(|next| until.is_none_or(|until| *next < until)) {
        into.extend(std::iter::from_fn(|| path.poll_departure(next)));
    }
}

fn evenly(count: u64, every: Span, lengths: Lengths) -> Vec<(Span, Lengths)> {
    (0..count).map(|number| (Span::from_nanos(number * every.as_nanos()), lengths)).collect()
}

const FULL: Lengths = Lengths::whole(52, 1448);

#[test]
fn a_delay_is_exact_and_a_frame_stays_whole() {
    let mut path = one_way(&PathDirection { delay: Span::from_millis(35), ..PathDirection::default() });
    let frame = Lengths::segmented(52, 65_160, 1448);
    let departures = run(&mut path, &[(Span::from_micros(3), frame)]);
    assert_eq!(departures.len(), 1);
    assert_eq!((departures[0].at, departures[0].segments.clone()), (Span::from_micros(35_003), 0..45));
    assert_eq!(path.counters().departed.packets, 45);
}

#[test]
fn a_queue_of_packets_holds_its_limit_and_sends_at_the_rate() {
    let rate = Some(Rate::from_bits_per_second(12_112_000)); // A frame of 1514 bytes per millisecond.
    let mut path = one_way(&PathDirection { rate, queue: Queue::Packets(3), ..PathDirection::default() });
    let departures = run(&mut path, &evenly(10, Span::ZERO, FULL));
    let at: Vec<u64> = departures.iter().map(|departure| departure.at.as_micros()).collect();
    assert_eq!(at, [1_000, 2_000, 3_000]);
    assert_eq!(path.counters().dropped(DropReason::QueueFull).packets, 7);
    assert_eq!(path.queue_peak(), (3, Bytes::new(3 * 1514)));
}

#[test]
fn a_frame_leaves_in_parts_where_the_queue_has_no_room() {
    let rate = Some(Rate::from_bits_per_second(12_112_000));
    let mut path = one_way(&PathDirection { rate, queue: Queue::Packets(2), ..PathDirection::default() });
    path.handle_packet(Span::ZERO, packet(0, Lengths::segmented(52, 5 * 1448, 1448)));
    let departure = path.poll_departure(Span::from_millis(2)).expect("left");
    assert_eq!((departure.segments, departure.at), (0..2, Span::from_millis(2)));
    assert_eq!(path.poll_departure(Span::from_millis(9)), None);
    assert_eq!(path.counters().dropped(DropReason::QueueFull).packets, 3);
}

#[test]
fn a_step_changes_rate_delay_and_loss_at_its_time() {
    let step = |at, rate: Option<u64>, delay, loss| Step {
        at: Span::from_millis(at),
        rate: rate.map(Rate::from_bits_per_second),
        delay,
        loss,
    };
    let steps = vec![
        step(10, Some(24_224_000), None, None),
        step(20, None, Some(Span::from_millis(5)), None),
        step(30, None, None, Some(Loss::random(ratio(1.0)))),
    ];
    let rate = Some(Rate::from_bits_per_second(12_112_000));
    let burst = Some(Bytes::new(0));
    let mut path = one_way(&PathDirection { rate, burst, steps, ..PathDirection::default() });
    let departures = run(&mut path, &evenly(100, Span::ZERO, FULL));
    // The first leaves at once by the bucket of one frame; then 10 at 1 ms each, then two each millisecond.
    let at: Vec<u64> = departures.iter().map(|departure| departure.at.as_micros()).collect();
    assert_eq!(at[..12], [0, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000, 10_500]);
    assert_eq!(at[12..32].last(), Some(&25_500));
    assert_eq!(path.counters().departed.packets, 50);
    assert_eq!(path.counters().dropped(DropReason::RandomLoss).packets, 50);
}

#[test]
fn a_running_direction_changes_rate_delay_and_loss() {
    let mut path = one_way(&PathDirection::default());
    let at = Span::from_millis(5);
    let change = |rate, delay, loss| Step { at, rate, delay, loss };
    // Two frames leave at once after a pause, then one each millisecond.
    path.change(&change(Some(Rate::from_bits_per_second(12_112_000)), Some(Span::from_millis(2)), None))
        .expect("taken");
    let departures = run(&mut path, &evenly(4, Span::ZERO, FULL));
    assert_eq!(
        departures.iter().map(|departure| departure.at.as_micros()).collect::<Vec<_>>(),
        [8_000, 9_000, 10_000, 11_000]
    );
    path.change(&change(None, None, Some(Loss::random(ratio(1.0))))).expect("taken");
    assert_eq!(run(&mut path, &evenly(3, Span::ZERO, FULL)), []);
    assert_eq!(path.counters().dropped(DropReason::RandomLoss).packets, 3);
    let trace = Some(Trace { opportunities_ms: vec![1] });
    let refused = one_way(&PathDirection { trace, ..PathDirection::default() }).change(&change(
        Some(Rate::from_bits_per_second(MBIT)),
        None,
        None,
    ));
    assert_eq!(refused, Err(Unsupported::StepWithoutRate));
}

#[test]
fn codel_and_fq_codel_hold_the_queueing_delay_of_a_load_without_control() {
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    for discipline in [Discipline::Codel { target, interval }, Discipline::FqCodel { target, interval, flows: 64 }] {
        let rate = Some(Rate::from_bits_per_second(10 * MBIT));
        let mut path =
            one_way(&PathDirection { rate, queue: Queue::Packets(1000), discipline, ..PathDirection::default() });
        // 5 % more than the rate, for 20 s.
        let departures = run(&mut path, &evenly(17_340, Span::from_micros(1_153), FULL));
        let delays: Vec<u64> = departures
            .iter()
            .filter(|departure| departure.at > Span::from_millis(10_000))
            .map(|departure| departure.at.as_micros() - departure.data * 1_153)
            .collect();
        let mean = delays.iter().sum::<u64>() / delays.len() as u64;
        // Without management the queue would grow by 50 ms a second.
        assert!(mean < 100_000, "{discipline:?}: {mean} µs");
        assert!(path.counters().dropped(DropReason::QueueManagement).packets > 100, "{discipline:?}");
        assert_eq!(path.counters().dropped(DropReason::QueueFull).packets, 0, "{discipline:?}");
    }
}

#[test]
fn pie_holds_the_queueing_delay_it_is_given_and_marks_what_can_be_marked() {
    for ecn in [false, true] {
        let (target, tupdate) = (Span::from_millis(15), Span::from_millis(15));
        let discipline = Discipline::Pie { target, tupdate };
        let rate = Some(Rate::from_bits_per_second(10 * MBIT));
        let mut path =
            one_way(&PathDirection { rate, queue: Queue::Packets(1000), discipline, ecn, ..PathDirection::default() });
        let mut delays = Vec::new();
        // 5 % more than the rate, for 20 s.
        for number in 0..17_340u64 {
            let at = Span::from_micros(number * 1_153);
            path.handle_packet(at, Packet { data: number, flow: 0, lengths: FULL, ecn_capable: ecn, is_tcp: true });
            while let Some(departure) = path.poll_departure(at) {
                if departure.at > Span::from_millis(10_000) {
                    delays.push(departure.at.as_micros() - departure.data * 1_153);
                }
            }
        }
        let mean = delays.iter().sum::<u64>() / delays.len() as u64;
        let dropped = path.counters().dropped(DropReason::QueueManagement).packets;
        if ecn {
            // A load that does not slow down is marked up to a tenth, and dropped beyond it.
            assert!(path.counters().marked.packets > 100, "{:?}", path.counters());
        } else {
            assert!((10_000..20_000).contains(&mean), "{mean} µs");
            // What is beyond the rate, 1,212 of 1,153 µs, of 20 s.
            assert!((700..1_000).contains(&dropped), "{dropped}");
        }
        assert_eq!(path.counters().dropped(DropReason::QueueFull).packets, 0);
    }
}

#[test]
fn a_delay_holds_as_many_packets_as_its_limit() {
    let delay = Span::from_millis(100);
    let mut path = one_way(&PathDirection { delay, delay_limit: Some(20), ..PathDirection::default() });
    // A hundred would be on their way.
    let departures = run(&mut path, &evenly(1_000, Span::from_millis(1), FULL));
    assert_eq!(departures.len(), 200);
    assert_eq!(path.counters().dropped(DropReason::DelayFull).packets, 800);
    assert_eq!(departures[20].at, departures[0].at + delay);
    // The parts of a frame that find room pass.
    let mut path = one_way(&PathDirection { delay, delay_limit: Some(20), ..PathDirection::default() });
    path.handle_packet(
        Span::ZERO,
        Packet { data: 0, flow: 0, lengths: Lengths::segmented(52, 65_160, 1448), ecn_capable: false, is_tcp: true },
    );
    assert_eq!((path.held().packets, path.counters().dropped(DropReason::DelayFull).packets), (20, 25));
}

#[test]
fn fq_codel_gives_a_sparse_flow_no_queueing_delay() {
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    let discipline = Discipline::FqCodel { target, interval, flows: 1024 };
    let rate = Some(Rate::from_bits_per_second(10 * MBIT));
    let mut path = one_way(&PathDirection { rate, discipline, ..PathDirection::default() });
    let mut late = Span::ZERO;
    for number in 0..2_000u64 {
        let at = Span::from_micros(number * 1_000);
        let is_sparse = number.is_multiple_of(50);
        let (data, flow) = if is_sparse { (1_000_000 + number, 1 << 63) } else { (number, 0) };
        path.handle_packet(at, Packet { data, flow, lengths: FULL, ecn_capable: false, is_tcp: true });
        while let Some(departure) = path.poll_departure(at) {
            if departure.data >= 1_000_000 {
                late = late.max(departure.at.saturating_sub(Span::from_micros((departure.data - 1_000_000) * 1_000)));
            }
        }
    }
    // No more than the segment being sent and one other of the quantum.
    assert!(late <= Span::from_micros(3 * 1_212), "{late}");
    assert!(path.queued().packets > 100);
}

#[test]
fn red_drops_before_the_queue_is_full_and_marks_what_can_be_marked() {
    for ecn in [false, true] {
        let discipline = Discipline::Red { min: Bytes::new(30_000), max: Bytes::new(90_000), probability: ratio(0.1) };
        let rate = Some(Rate::from_bits_per_second(10 * MBIT));
        let queue = Queue::Bytes(Bytes::new(500_000));
        let mut path = one_way(&PathDirection { rate, queue, discipline, ecn, ..PathDirection::default() });
        let departures = run(&mut path, &evenly(8_000, Span::from_micros(1_150), FULL));
        let counters = path.counters();
        assert!(counters.dropped(DropReason::QueueManagement).packets > 50, "{counters:?}");
        assert_eq!(counters.dropped(DropReason::QueueFull).packets, 0);
        assert!(path.queue_peak().1 < Bytes::new(200_000), "{:?}", path.queue_peak());
        assert_eq!(counters.marked.packets > 50, ecn);
        assert!(departures.iter().all(|departure| !departure.is_marked || departure.data.is_multiple_of(2)));
    }
}

#[test]
fn a_policer_lets_its_rate_pass_and_a_trace_its_opportunities() {
    let policer = thalweg_model::Policer { rate: Rate::from_bits_per_second(10 * MBIT), burst: Bytes::new(30_000) };
    let mut path = one_way(&PathDirection { policer: Some(policer), ..PathDirection::default() });
    run(&mut path, &evenly(10_000, Span::from_micros(600), FULL)); // 20 Mb/s for 6 s.
    let passed = path.counters().departed.packets as f64 * 1514.0 * 8.0 / 6.0;
    assert!((passed / 1e7 - 1.0).abs() < 0.01, "{passed}");

    let trace = Some(Trace { opportunities_ms: vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10] });
    let mut path = one_way(&PathDirection { trace, queue: Queue::Packets(100_000), ..PathDirection::default() });
    let departures = run(&mut path, &evenly(1_000, Span::ZERO, FULL));
    assert_eq!(departures.last().expect("left").at, Span::from_millis(1_000));
}

#[test]
fn loss_duplication_corruption_and_reordering_have_their_probabilities() {
    let direction = PathDirection {
        delay: Span::from_millis(10),
        loss: Loss::random(ratio(0.02)),
        duplicate: Some(Chance::of(ratio(0.03))),
        corrupt: Some(Chance::of(ratio(0.01))),
        reorder: Some(Reorder { chance: Chance::of(ratio(0.05)), gap: 1 }),
        ..PathDirection::default()
    };
    let mut path = one_way(&direction);
    let departures = run(&mut path, &evenly(50_000, Span::from_micros(100), FULL));
    let counters = *path.counters();
    let part = |count: u64| count as f64 / 50_000.0;
    assert!((part(counters.duplicated.packets) - 0.03).abs() < 0.003);
    assert!((part(counters.dropped(DropReason::RandomLoss).packets) - 0.02 * 1.03).abs() < 0.002);
    assert!((part(counters.corrupted.packets) - 0.01).abs() < 0.002);
    let early = departures.iter().filter(|one| one.at == Span::from_micros(one.data * 100)).count();
    assert!((part(early as u64) - 0.05).abs() < 0.005, "{early}");
    assert!(departures.iter().all(|departure| departure.flipped_bit.is_none_or(|bit| bit < 1500 * 8)));
}

#[test]
fn a_black_hole_swallows_long_packets_and_a_list_its_numbers() {
    let loss = Loss::List { of: thalweg_model::Counted::Segments, numbers: vec![2, 4] };
    let mut path = one_way(&PathDirection { loss, black_hole: Some(1400), ..PathDirection::default() });
    let acknowledgement = Lengths::whole(52, 0);
    let short = Lengths::segmented(52, 4 * 1000, 1000);
    let packets = [acknowledgement, short, FULL].map(|lengths| (Span::ZERO, lengths));
    let left: Vec<(u64, std::ops::Range<u32>)> =
        run(&mut path, &packets).into_iter().map(|departure| (departure.data, departure.segments)).collect();
    assert_eq!(left, [(0, 0..1), (1, 0..1), (1, 2..3)]);
    assert_eq!(path.counters().dropped(DropReason::Listed).packets, 2);
    assert_eq!(path.counters().dropped(DropReason::BlackHole).packets, 1);
}

#[test]
fn a_path_that_is_full_drops_with_that_reason() {
    let mut path = one_way(&PathDirection { delay: Span::from_millis(10), ..PathDirection::default() });
    let frames = HELD_MAX_PACKETS / 45 + 2;
    for number in 0..frames {
        path.handle_packet(Span::ZERO, packet(number, Lengths::segmented(52, 65_160, 1448)));
    }
    assert_eq!(path.held().packets, HELD_MAX_PACKETS);
    assert_eq!(path.counters().dropped(DropReason::PathFull).packets, frames * 45 - HELD_MAX_PACKETS);
}

#[test]
fn cake_an_empty_trace_and_a_step_without_a_rate_are_refused() {
    let rate = Some(Rate::from_bits_per_second(MBIT));
    let discipline = Discipline::Cake { rtt: Span::from_millis(100), ack_filter: AckFilter::Off };
    let refused = |direction| OneWay::<u64>::new(&direction, 1500, Seed::default()).err();
    assert_eq!(refused(PathDirection { rate, discipline, ..PathDirection::default() }), Some(Unsupported::Cake));
    let trace = Some(Trace { opportunities_ms: vec![0] });
    assert_eq!(refused(PathDirection { trace, ..PathDirection::default() }), Some(Unsupported::EmptyTrace));
    let steps = vec![Step { at: Span::ZERO, rate, delay: None, loss: None }];
    assert_eq!(refused(PathDirection { steps, ..PathDirection::default() }), Some(Unsupported::StepWithoutRate));
}

fn some_chance() -> impl Strategy<Value = Chance> {
    (0.0..0.3, prop_oneof![Just(0.0), 0.1..0.9]).prop_map(|(probability, correlation)| Chance {
        probability: ratio(probability),
        correlation: ratio(correlation),
    })
}

fn some_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        some_chance().prop_map(Loss::Random),
        (0.0..0.5, 0.1..1.0).prop_map(|(p, r)| Loss::GilbertElliott {
            p: ratio(p),
            r: ratio(r),
            h: ratio(0.1),
            k: ratio(1.0)
        }),
        prop::collection::btree_set(1u64..60, 1..6).prop_map(|numbers| Loss::List {
            of: thalweg_model::Counted::Segments,
            numbers: numbers.into_iter().collect()
        }),
    ]
}

fn some_jitter() -> impl Strategy<Value = Jitter> {
    let distributions =
        prop_oneof![Just(Distribution::Uniform), Just(Distribution::Normal), Just(Distribution::Pareto)];
    (1u64..5_000, distributions, any::<bool>(), prop_oneof![Just(0.0), Just(0.7)]).prop_map(
        |(micros, distribution, reorder, correlation)| Jitter {
            stddev: Span::from_micros(micros),
            distribution,
            reorder,
            correlation: ratio(correlation),
        },
    )
}

fn some_discipline() -> impl Strategy<Value = Discipline> {
    let (target, interval) = (Span::from_micros(500), Span::from_millis(5));
    prop_oneof![
        3 => Just(Discipline::Fifo),
        1 => Just(Discipline::Codel { target, interval }),
        1 => Just(Discipline::FqCodel { target, interval, flows: 4 }),
        1 => Just(Discipline::Pie { target, tupdate: target }),
        1 => Just(Discipline::Red { min: Bytes::new(5_000), max: Bytes::new(20_000), probability: ratio(0.2) }),
    ]
}

fn some_queue() -> impl Strategy<Value = Queue> {
    prop_oneof![
        (1u32..60).prop_map(Queue::Packets),
        (1_600u64..90_000).prop_map(|bytes| Queue::Bytes(Bytes::new(bytes))),
        (1u64..30).prop_map(|millis| Queue::Time(Span::from_millis(millis))),
    ]
}

fn some_direction() -> impl Strategy<Value = PathDirection> {
    let propagation = (
        0u64..20_000,
        prop::option::of(some_jitter()),
        some_loss(),
        prop::option::of(some_chance()),
        prop::option::of(some_chance()),
        prop::option::weighted(0.2, (some_chance(), 1u32..4)),
        prop::option::weighted(0.2, 600u16..1400),
        prop::option::weighted(0.2, 1u32..40),
    );
    let bottleneck = (
        prop::option::weighted(0.8, MBIT..500 * MBIT),
        prop::option::weighted(0.2, prop::collection::vec(1u32..20, 1..8)),
        prop::option::weighted(0.2, (MBIT..100 * MBIT, 2_000u64..50_000)),
        prop::option::weighted(0.3, 0u64..20_000),
        some_queue(),
        some_discipline(),
        any::<bool>(),
        prop::option::weighted(0.3, (1u64..30_000, MBIT..500 * MBIT, 0u64..20_000)),
    );
    (propagation, bottleneck).prop_map(|(propagation, bottleneck)| {
        let (delay, jitter, loss, duplicate, corrupt, reorder, black_hole, delay_limit) = propagation;
        let (rate, trace, policer, burst, queue, discipline, ecn, step) = bottleneck;
        let has_rate = rate.is_some() && trace.is_none();
        let step = step.map(|(at, bits, delay)| Step {
            at: Span::from_micros(at),
            rate: has_rate.then(|| Rate::from_bits_per_second(bits)),
            delay: Some(Span::from_micros(delay)),
            loss: None,
        });
        let trace = trace.map(|mut opportunities_ms| {
            opportunities_ms.sort_unstable();
            Trace { opportunities_ms }
        });
        let policer = policer.map(|(bits, burst)| thalweg_model::Policer {
            rate: Rate::from_bits_per_second(bits),
            burst: Bytes::new(burst),
        });
        PathDirection {
            delay: Span::from_micros(delay),
            jitter,
            loss,
            duplicate,
            corrupt,
            reorder: reorder.map(|(chance, gap)| Reorder { chance, gap }),
            black_hole,
            policer,
            rate: rate.map(Rate::from_bits_per_second),
            trace,
            overhead: 24,
            burst: burst.map(Bytes::new),
            queue,
            discipline,
            delay_limit,
            ecn,
            steps: step.into_iter().collect(),
        }
    })
}

fn some_lengths() -> impl Strategy<Value = Lengths> {
    prop_oneof![
        Just(Lengths::whole(52, 0)),
        (1u32..1448).prop_map(|payload| Lengths::whole(52, payload)),
        (1u32..65_160, 500u32..1448).prop_map(|(payload, segment)| Lengths::segmented(52, payload, segment)),
    ]
}

/// Packets in order of arrival, with pauses between them that are often none.
fn some_packets() -> impl Strategy<Value = Vec<(Span, Lengths)>> {
    prop::collection::vec((prop_oneof![Just(0), 0u64..3_000_000], some_lengths()), 1..60).prop_map(|packets| {
        let mut now = 0;
        let mut arrive = |(pause, lengths)| {
            now += pause;
            (Span::from_nanos(now), lengths)
        };
        packets.into_iter().map(&mut arrive).collect()
    })
}

/// One line per segment that left: when, whose, which, marked, flipped.
fn segments(departures: &[Departure<u64>]) -> Vec<(u64, u64, u32, bool, Option<u32>)> {
    let each = |one: &Departure<u64>| {
        let (at, data, marked, flipped) = (one.at.as_nanos(), one.data, one.is_marked, one.flipped_bit);
        one.segments.clone().map(move |segment| (at, data, segment, marked, flipped)).collect::<Vec<_>>()
    };
    departures.iter().flat_map(each).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_came_in_left_or_was_dropped_or_is_held(direction in some_direction(), packets in some_packets(), until_ms in 0u64..60) {
        let mut path = one_way(&direction);
        for (number, (at, lengths)) in (0..).zip(&packets) {
            path.handle_packet(*at, packet(number, *lengths));
        }
        let now = packets.last().expect("a packet").0 + Span::from_millis(until_ms);
        let mut left = Tally::default();
        while let Some(departure) = path.poll_departure(now) {
            let lengths = packets[departure.data as usize].1;
            departure.segments.for_each(|segment| left.count(lengths.segment_bytes(segment)));
        }
        let counters = path.counters();
        prop_assert_eq!(left, counters.departed);
        let (mut came, mut went) = (counters.arrived, counters.departed);
        came.add(counters.duplicated);
        went.add(counters.dropped_in_all());
        went.add(path.held());
        prop_assert_eq!(came, went);
        prop_assert_eq!(path.held().packets, counters.held_packets());
        // And in the end everything leaves.
        run(&mut path, &[]);
        prop_assert_eq!(path.held(), Tally::default());
        prop_assert_eq!(path.queued(), Tally::default());
    }

    #[test]
    fn packets_keep_their_order_unless_another_is_asked_for(direction in some_direction(), packets in some_packets()) {
        let keeps = direction.reorder.is_none()
            && direction.jitter.as_ref().is_none_or(|jitter| !jitter.reorder);
        let is_fair = matches!(direction.discipline, Discipline::FqCodel { .. });
        let mut path = one_way(&direction);
        let departures = run(&mut path, &packets);
        prop_assert!(departures.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let left: Vec<(u64, u32)> = segments(&departures).into_iter().map(|(_, data, segment, ..)| (data, segment)).collect();
        prop_assert!(!keeps || is_fair || left.is_sorted(), "{:?}", left);
        for flow in 0..5 {
            let of_flow = || left.iter().filter(|(data, _)| data % 5 == flow);
            prop_assert!(!keeps || of_flow().is_sorted(), "{:?}", left);
        }
    }

    #[test]
    fn nothing_leaves_early(direction in some_direction(), packets in some_packets()) {
        let direction = PathDirection { jitter: None, reorder: None, steps: Vec::new(), ..direction };
        let mut path = one_way(&direction);
        for departure in run(&mut path, &packets) {
            prop_assert!(departure.at >= packets[departure.data as usize].0 + direction.delay);
        }
    }

    #[test]
    fn no_window_has_more_than_the_rate_and_the_burst(
        direction in some_direction(),
        packets in some_packets(),
        bits in MBIT..500 * MBIT,
    ) {
        let rate = Rate::from_bits_per_second(bits);
        let direction = PathDirection {
            rate: Some(rate),
            trace: None,
            jitter: None,
            reorder: None,
            duplicate: None,
            steps: Vec::new(),
            ..direction
        };
        let mut path = one_way(&direction);
        let bytes = |data: u64, segment| {
            u128::from(packets[data as usize].1.segment_bytes(segment)) + 14 + u128::from(direction.overhead)
        };
        let left: Vec<(u64, u128)> = segments(&run(&mut path, &packets))
            .into_iter()
            .map(|(at, data, segment, ..)| (at, bytes(data, segment)))
            .collect();
        let burst = u128::from(queue::burst(&direction, rate, 1500).get());
        // In units of bits times nanoseconds per second. The first of a window may have begun before it.
        for first in 0..left.len() {
            let mut sent = 0;
            for (at, bytes) in &left[first + 1..] {
                sent += bytes * 8_000_000_000;
                let allowed = burst * 8_000_000_000 + u128::from(at - left[first].0 + 1) * u128::from(bits);
                prop_assert!(sent <= allowed, "{} of {} from {}", sent, allowed, first);
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_result_whenever_it_is_asked_for(
        direction in some_direction(),
        packets in some_packets(),
        every_us in 1u64..20_000,
    ) {
        let expected = segments(&run(&mut one_way(&direction), &packets));
        let mut path = one_way(&direction);
        prop_assert_eq!(&segments(&run(&mut path, &packets)), &expected);
        let counters = *path.counters();

        // Asked at fixed times, segments of several times may leave together, but the same ones and no earlier.
        let mut path = one_way(&direction);
        let mut late = Vec::new();
        let mut coming = (0u64..).zip(&packets).peekable();
        let mut now = Span::ZERO;
        while coming.peek().is_some() || path.poll_timeout().is_some() {
            now = now + Span::from_micros(every_us);
            while let Some((number, (at, lengths))) = coming.next_if(|(_, (at, _))| *at <= now) {
                path.handle_packet(*at, packet(number, *lengths));
            }
            late.extend(std::iter::from_fn(|| path.poll_departure(now)));
        }
        let strip = |(_, data, segment, marked, flipped): (u64, u64, u32, bool, Option<u32>)| (data, segment, marked, flipped);
        let late = segments(&late);
        prop_assert_eq!(late.len(), expected.len());
        for (late, exact) in late.into_iter().zip(expected) {
            prop_assert!(late.0 >= exact.0);
            prop_assert_eq!(strip(late), strip(exact));
        }
        prop_assert_eq!(path.counters(), &counters);
    }

    #[test]
    fn a_frame_is_treated_as_its_segments_one_by_one(direction in some_direction(), packets in some_packets()) {
        let together = segments(&run(&mut one_way(&direction), &packets));
        let mut path = one_way(&direction);
        let mut departures = Vec::new();
        let mut names = Vec::new();
        for (number, (at, lengths)) in (0u64..).zip(&packets) {
            drain(&mut path, Some(*at), &mut departures);
            for segment in 0..lengths.count() {
                let bytes = lengths.segment_bytes(segment);
                let alone = Lengths::whole(52, bytes - 52);
                path.handle_packet(*at, Packet { data: names.len() as u64, ..packet(number, alone) });
                names.push((number, segment));
            }
        }
        drain(&mut path, None, &mut departures);
        let alone: Vec<_> = departures
            .iter()
            .map(|one| {
                let (number, segment) = names[one.data as usize];
                (one.at.as_nanos(), number, segment, one.is_marked, one.flipped_bit)
            })
            .collect();
        prop_assert_eq!(together, alone);
    }
}
