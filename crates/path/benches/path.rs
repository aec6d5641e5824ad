//! Packets and bits that one direction carries per second of one processor: the best of seven rounds, since other work on
//! the machine only slows a round down.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;
use thalweg_model::{Discipline, Loss, PathDirection, Queue};
use thalweg_path::{Lengths, OneWay, Packet};
use thalweg_units::{Rate, Ratio, Seed, Span};

const ROUNDS: usize = 7;
const PACKETS: u64 = 20_000;
/// A TSO frame of Linux: 45 segments of 1500 bytes.
const FRAME: Lengths = Lengths::segmented(52, 65_160, 1_448);
const SINGLE: Lengths = Lengths::whole(52, 1_448);

/// Prints the best rate through `direction`, for packets of `lengths` that come at `offered`.
fn measure(name: &str, direction: &PathDirection, lengths: Lengths, offered: Rate) {
    let bytes: u64 = (0..lengths.count()).map(|index| u64::from(lengths.segment_bytes(index))).sum();
    let spacing = bytes * 8_000_000_000 / offered.bits_per_second();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let mut path: OneWay<u64> = OneWay::new(direction, 1500, Seed::new(1)).expect("supported");
        let begin = Instant::now();
        let mut left = 0;
        for number in 0..PACKETS {
            let now = Span::from_nanos(number * spacing);
            path.handle_packet(
                now,
                Packet { data: number, lengths, flow: number << 60, ecn_capable: false, is_tcp: true },
            );
            while let Some(departure) = path.poll_departure(now) {
                left += departure.segments.len();
            }
        }
        black_box(left);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let segments = PACKETS as f64 * f64::from(lengths.count());
    let gigabits = PACKETS as f64 * bytes as f64 * 8.0 / best / 1e9;
    println!("{name:44} {:7.1} M segments/s {gigabits:8.1} Gb/s", segments / best / 1e6);
}

fn main() {
    let gigabits = |gigabits: u64| Rate::from_bits_per_second(gigabits * 1_000_000_000);
    let delay = PathDirection { delay: Span::from_millis(20), ..PathDirection::default() };
    let rate = PathDirection { rate: Some(gigabits(10)), queue: Queue::Packets(10_000), ..delay.clone() };
    let loss = PathDirection { loss: Loss::random(Ratio::new(0.01).expect("a ratio")), ..delay.clone() };
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    let fq_codel = PathDirection { discipline: Discipline::FqCodel { target, interval, flows: 1024 }, ..rate.clone() };
    for (kind, lengths) in [("frames of 45", FRAME), ("single", SINGLE)] {
        measure(&format!("{kind}: delay 20 ms"), &delay, lengths, gigabits(20));
        measure(&format!("{kind}: delay 20 ms, loss 1 %"), &loss, lengths, gigabits(20));
        measure(&format!("{kind}: 10 Gb/s, delay 20 ms"), &rate, lengths, gigabits(10));
        measure(&format!("{kind}: 10 Gb/s, fq_codel, delay 20 ms"), &fq_codel, lengths, gigabits(10));
    }
}
