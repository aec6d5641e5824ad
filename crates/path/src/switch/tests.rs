//! Tests of a switch: what it is asked to hold is what it holds, and what is so with any packets.

use super::*;
use crate::{DropReason, Lengths};
use proptest::prelude::*;
use thalweg_model::{Chance, Jitter, Loss};
use thalweg_units::{Rate, Ratio};

const FULL: Lengths = Lengths::whole(52, 1448);
const CLIENTS: u32 = 3;

/// A packet: when it arrives, from which port it comes, to which it goes, and its lengths.
type Sent = (Span, (usize, usize), Lengths);
/// A segment that arrived: at which port, when, whose and which.
type Got = (usize, u64, u64, u32);

fn asked(bits: u64, buffer: u64, shared: bool) -> thalweg_model::Switch {
    let rate = Rate::from_bits_per_second(bits);
    thalweg_model::Switch { rate, buffer: Bytes::new(buffer), shared, overhead: 24 }
}

fn delayed(micros: u64) -> Path {
    let direction = PathDirection { delay: Span::from_micros(micros), ..PathDirection::default() };
    Path { down: direction.clone(), up: direction, ..Path::default() }
}

fn switch(asked: &thalweg_model::Switch, path: &Path) -> Switch<u64> {
    Switch::new(asked, None, path, CLIENTS, Seed::new(7)).expect("supported")
}

fn packet(number: u64, lengths: Lengths) -> Packet<u64> {
    Packet { data: number, lengths, flow: 0, ecn_capable: false, is_tcp: true }
}

fn drain(switch: &mut Switch<u64>, until: Option<Span>, into: &mut Vec<Got>) {
    while let Some(next) = switch.poll_timeout().filter(|next| until.is_none_or(|until| *next < until)) {
        take(switch, next, into);
    }
}

fn take(switch: &mut Switch<u64>, now: Span, into: &mut Vec<Got>) {
    while let Some((port, departure)) = switch.poll_departure(now) {
        let (at, data) = (departure.at.as_nanos(), departure.data);
        into.extend(departure.segments.map(|segment| (port, at, data, segment)));
    }
}

/// All that arrives of these packets, asked for whenever something is due.
fn run(switch: &mut Switch<u64>, packets: &[Sent]) -> Vec<Got> {
    let mut got = Vec::new();
    for (number, (at, between, lengths)) in (0..).zip(packets) {
        drain(switch, Some(*at), &mut got);
        switch.handle_packet(*at, *between, packet(number, *lengths));
    }
    drain(switch, None, &mut got);
    got
}

#[test]
fn a_buffer_holds_as_many_frames_as_fit_whoever_sends_them() {
    // 1514 bytes with Ethernet's header: 86 of them are 130,204 bytes of 131,072.
    for (shared, ports, each) in [(true, 1, 86), (true, 2, 43), (false, 2, 86)] {
        let mut switch = switch(&asked(1_000_000_000, 128 << 10, shared), &Path::default());
        let packets: Vec<Sent> = (0..400).map(|number| (Span::ZERO, (0, 1 + number % ports), FULL)).collect();
        let got = run(&mut switch, &packets);
        for port in 1..=ports {
            assert_eq!(got.iter().filter(|one| one.0 == port).count(), each, "{shared} {ports}");
            assert_eq!(switch.port(port).peak, Bytes::new(each as u64 * 1514));
        }
        assert_eq!(switch.buffer_peak(), Bytes::new((ports * each) as u64 * 1514));
    }
}

#[test]
fn a_frame_that_meets_others_takes_the_wires_the_port_and_the_wire_again() {
    let mut switch = switch(&asked(1_000_000_000, 128 << 10, true), &delayed(100));
    // 1538 bytes take the port 12.304 µs.
    let got = run(&mut switch, &[(Span::ZERO, (1, 2), FULL), (Span::ZERO, (3, 2), FULL), (Span::ZERO, (1, 0), FULL)]);
    assert_eq!(got, [(0, 112_304, 2, 0), (2, 212_304, 0, 0), (2, 224_608, 1, 0)]);
}

#[test]
fn a_frame_is_divided_where_its_segments_meet_different_fates() {
    let mut switch = switch(&asked(1_000_000_000, 3 * 1514, true), &Path::default());
    let frame = Lengths::segmented(52, 5 * 1448, 1448);
    switch.handle_packet(Span::ZERO, (1, 0), packet(0, frame));
    let (port, departure) = switch.poll_departure(Span::from_micros(100)).expect("arrived");
    assert_eq!((port, departure.segments, departure.at.as_nanos()), (0, 0..3, 36_912));
    assert_eq!(switch.poll_departure(Span::from_micros(1_000)), None);
    assert_eq!(switch.port(0).dropped.packets, 2);
}

#[test]
fn a_card_with_the_rate_of_the_port_never_fills_it() {
    let (asked, path) = (asked(1_000_000_000, 10_000, true), delayed(100));
    let nic = thalweg_model::Nic::of(&asked);
    let burst: Vec<Sent> = (0..500).map(|_| (Span::ZERO, (1, 0), FULL)).collect();
    let mut without = switch(&asked, &path);
    assert_eq!(run(&mut without, &burst).len(), 6);
    let mut with = Switch::new(&asked, Some(&nic), &path, CLIENTS, Seed::new(7)).expect("supported");
    let got = run(&mut with, &burst);
    // Two frames leave the card at once, the others at its rate.
    assert_eq!((got.len(), with.port(0).peak), (500, Bytes::new(2 * 1514)));
    assert_eq!(got.last().map(|one| one.1), Some(100_000 + 500 * 12_304));
}

/// Wires with losses, copies and jitter.
fn some_path() -> impl Strategy<Value = Path> {
    let ratio = |part| Ratio::new(part).expect("a ratio");
    let chance = move |part| Chance::of(ratio(part));
    let direction = (0u64..300, 0.0..0.2, prop::option::of(0.0..0.1), prop::option::of((1u64..50, any::<bool>())));
    let direction = direction.prop_map(move |(micros, loss, duplicate, jitter)| PathDirection {
        delay: Span::from_micros(micros),
        loss: Loss::random(ratio(loss)),
        duplicate: duplicate.map(chance),
        corrupt: duplicate.map(chance),
        jitter: jitter.map(|(micros, reorder)| Jitter {
            stddev: Span::from_micros(micros),
            distribution: thalweg_model::Distribution::Uniform,
            reorder,
            correlation: Ratio::ZERO,
        }),
        ..PathDirection::default()
    });
    (direction.clone(), direction).prop_map(|(down, up)| Path { down, up, ..Path::default() })
}

fn some_switch() -> impl Strategy<Value = thalweg_model::Switch> {
    (10_000_000u64..2_000_000_000, 1_600u64..60_000, any::<bool>())
        .prop_map(|(bits, buffer, shared)| asked(bits, buffer, shared))
}

/// Packets in order of their arrival, often several at once.
fn some_packets() -> impl Strategy<Value = Vec<Sent>> {
    let lengths = prop_oneof![
        Just(Lengths::whole(52, 0)),
        Just(FULL),
        (1u32..20_000, 500u32..1448).prop_map(|(payload, segment)| Lengths::segmented(52, payload, segment)),
    ];
    let ports = 0..=CLIENTS as usize;
    let one = (prop_oneof![Just(0), 0u64..100_000], (ports.clone(), ports), lengths);
    prop::collection::vec(one, 1..80).prop_map(|packets| {
        let mut now = 0;
        let mut arrive = |(pause, between, lengths)| {
            now += pause;
            (Span::from_nanos(now), between, lengths)
        };
        packets.into_iter().map(&mut arrive).collect()
    })
}

/// What arrives of packets over wires of a constant `delay`, by arithmetic on all segments at once: segments that are in the switch
/// are those taken earlier that have not left yet.
fn by_arithmetic(asked: &thalweg_model::Switch, delay: u64, packets: &[Sent]) -> Vec<Got> {
    let wire = |port: usize| if port == 0 { 0 } else { delay };
    let mut arriving: Vec<(u64, usize, usize, u64, u32, u64)> = Vec::new();
    for (number, (at, (from, to), lengths)) in (0..).zip(packets) {
        let at = at.as_nanos() + wire(*from);
        let segments = 0..lengths.count();
        arriving.extend(segments.map(|index| (at, *from, *to, number, index, u64::from(lengths.segment_bytes(index)))));
    }
    // At the same time come those on wires, of the lower port first, and then what arrives as it is sent; each in its order.
    let is_direct = |from: usize| wire(from) == 0;
    arriving.sort_by_key(|(at, from, ..)| (*at, is_direct(*from), if is_direct(*from) { 0 } else { *from }));
    let mut inside: Vec<(u128, usize, u64)> = Vec::new();
    let mut got = Vec::new();
    let mut busy_until = vec![0u128; 1 + CLIENTS as usize];
    for (at, _, to, number, index, bytes) in arriving {
        // In bits times nanoseconds per second, so that nothing is rounded but what is compared with whole nanoseconds.
        let bits = u128::from(asked.rate.bits_per_second());
        let rounded = |exact: u128| exact.div_ceil(bits) as u64;
        inside.retain(|(leaves, ..)| rounded(*leaves) > at);
        let held =
            inside.iter().filter(|(_, port, _)| asked.shared || *port == to).map(|(.., bytes)| bytes).sum::<u64>();
        if held + bytes + 14 > asked.buffer.get() {
            continue;
        }
        let begins = busy_until[to].max(u128::from(at) * bits);
        busy_until[to] = begins + u128::from(bytes + 14 + 24) * 8_000_000_000;
        inside.push((busy_until[to], to, bytes + 14));
        got.push((to, rounded(busy_until[to]) + wire(to), number, index));
    }
    got
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_arrives_is_what_arithmetic_says(asked in some_switch(), micros in 0u64..300, packets in some_packets()) {
        let mut got = run(&mut switch(&asked, &delayed(micros)), &packets);
        let mut expected = by_arithmetic(&asked, micros * 1_000, &packets);
        for list in [&mut got, &mut expected] {
            list.sort_by_key(|(port, at, data, segment)| (*port, *at, *data, *segment));
        }
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn what_came_in_arrived_or_was_dropped_or_is_held(
        asked in some_switch(),
        path in some_path(),
        packets in some_packets(),
        until_us in 0u64..2_000,
    ) {
        let mut switch = switch(&asked, &path);
        let mut came = 0;
        for (number, (at, between, lengths)) in (0..).zip(&packets) {
            switch.handle_packet(*at, *between, packet(number, *lengths));
            came += u64::from(lengths.count());
        }
        let mut got = Vec::new();
        take(&mut switch, packets.last().expect("a packet").0 + Span::from_micros(until_us), &mut got);
        let held = |switch: &Switch<u64>| -> u64 {
            let of = |end: &End<u64>| {
                end.from_host.held().packets + end.port.counters().queued.packets + end.to_host.held().packets
            };
            switch.ends.iter().map(of).sum()
        };
        let gone = |switch: &Switch<u64>| -> u64 {
            let ports: u64 = (0..switch.ports()).map(|port| switch.port(port).dropped.packets).sum();
            ports + [Way::Down, Way::Up].map(|way| switch.wires(way).dropped_in_all().packets).iter().sum::<u64>()
        };
        let copies = |switch: &Switch<u64>| -> u64 {
            [Way::Down, Way::Up].map(|way| switch.wires(way).duplicated.packets).iter().sum()
        };
        prop_assert_eq!(came + copies(&switch), got.len() as u64 + gone(&switch) + held(&switch));
        prop_assert_eq!(switch.held_bytes() == 0, held(&switch) == 0);
        // And in the end nothing is left in it.
        drain(&mut switch, None, &mut got);
        prop_assert_eq!(came + copies(&switch), got.len() as u64 + gone(&switch));
        prop_assert_eq!((switch.held_bytes(), switch.used), (0, 0));
        let lost = switch.wires(Way::Down).dropped(DropReason::QueueFull).packets;
        prop_assert_eq!(lost, 0, "only ports have queues");
    }

    #[test]
    fn no_buffer_ever_holds_more_than_it_can(asked in some_switch(), path in some_path(), packets in some_packets()) {
        let mut switch = switch(&asked, &path);
        run(&mut switch, &packets);
        prop_assert!((0..switch.ports()).all(|port| switch.port(port).peak <= asked.buffer));
        prop_assert!(!asked.shared || switch.buffer_peak() <= asked.buffer);
        let most = (0..switch.ports()).map(|port| switch.port(port).peak).max().expect("a port");
        prop_assert!(switch.buffer_peak() >= most);
    }

    #[test]
    fn the_same_seed_gives_the_same_result_whenever_it_is_asked_for(
        asked in some_switch(),
        path in some_path(),
        packets in some_packets(),
        every_us in 1u64..500,
    ) {
        let expected = run(&mut switch(&asked, &path), &packets);
        let mut late = switch(&asked, &path);
        let mut got = Vec::new();
        let mut coming = (0u64..).zip(&packets).peekable();
        let mut now = Span::ZERO;
        while coming.peek().is_some() || late.poll_timeout().is_some() {
            now = now + Span::from_micros(every_us);
            while let Some((number, (at, between, lengths))) = coming.next_if(|(_, (at, ..))| *at <= now) {
                late.handle_packet(*at, *between, packet(number, *lengths));
            }
            take(&mut late, now, &mut got);
        }
        // Segments of several times may arrive together, at the last one's, but the same ones, at each port in the same order.
        for port in 0..late.ports() {
            let of = |all: &[Got]| all.iter().filter(|one| one.0 == port).copied().collect::<Vec<_>>();
            let (exact, got) = (of(&expected), of(&got));
            let strip = |all: &[Got]| all.iter().map(|(_, _, data, segment)| (*data, *segment)).collect::<Vec<_>>();
            prop_assert_eq!(strip(&exact), strip(&got));
            prop_assert!(exact.iter().zip(&got).all(|(exact, got)| got.1 >= exact.1));
        }
    }
}
