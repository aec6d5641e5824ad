//! Trains through queues that are computed, with clocks that differ and arrivals that are noted late.

use super::*;
use thalweg_units::Seed;

const FRAME: Frame = Frame { payload_bytes: 1_400, is_v6: false, overhead_bytes: 24 };

/// A link with a rate and a buffer, as a train goes through it.
struct Link {
    bps: f64,
    buffer_bytes: u64,
    /// Arrivals are noted late by up to so much.
    jitter_ns: u64,
    /// One packet in this many is lost as well; 0 is none.
    loss: u64,
}

impl Link {
    fn pass(&self, seed: u64, packets: u64, interval_ns: u64) -> Observed {
        let service = FRAME.wire_bytes() as f64 * 8.0 / self.bps * 1e9;
        let draw = |place: u64, salt: u64| Seed::new(seed).derive(salt).derive(place).get() >> 11;
        let (mut leaving, mut arrived): (Vec<f64>, Vec<Option<u64>>) = (Vec::new(), Vec::new());
        let sent: Vec<u64> = (0..packets).map(|place| 5_000_000 + place * interval_ns).collect();
        for (place, at) in (0..).zip(&sent) {
            let waiting = leaving.iter().filter(|leaves| **leaves > *at as f64).count() as u64;
            if (waiting + 1) * FRAME.bytes() > self.buffer_bytes || self.loss > 0 && draw(place, 1) % self.loss == 0 {
                arrived.push(None);
                continue;
            }
            let leaves = leaving.last().copied().unwrap_or(0.0).max(*at as f64) + service;
            leaving.push(leaves);
            let late = if self.jitter_ns > 0 { draw(place, 2) % self.jitter_ns } else { 0 };
            // The receiver's clock counts from another year.
            arrived.push(Some(1_700_000_000_000_000_000 + leaves as u64 + late));
        }
        Observed::new(sent, arrived, TrainEnd::default()).expect("in order")
    }

    fn report(&self, packets: u64, interval_ns: u64) -> UdpTrainReport {
        let trains: Vec<Observed> = (0..10).map(|seed| self.pass(seed, packets, interval_ns)).collect();
        report("192.0.2.1:5201".parse().expect("an address"), Way::Up, FRAME, &[], &trains)
    }
}

#[test]
fn a_gigabit_switch_with_128_kb_is_found_through_late_interrupts() {
    let switch = Link { bps: 1e9, buffer_bytes: 128_000, jitter_ns: 50_000, loss: 0 };
    let found = switch.report(1_024, 8_000);
    assert_eq!(found.finding, TrainFinding::FullBuffer);
    let (rate, buffer) = (found.rate.expect("a rate"), found.buffer.expect("a buffer"));
    assert!((rate.bps / 1e9 - 1.0).abs() < 0.01, "{rate:?}");
    assert!(buffer.low_bytes <= 128_000 && 128_000 <= buffer.high_bytes, "{buffer:?}");
    // 50 µs at 1 Gb/s are 6 KB.
    assert!(buffer.high_bytes - buffer.low_bytes < 10_000, "{buffer:?}");
    assert_eq!(found.queue_course_ms.len(), 11);
    assert!(found.queue_course_ms[10] > 0.9 && found.losses.lost > 100);
}

#[test]
fn a_queue_without_losses_has_a_least_size() {
    let link = Link { bps: 100e6, buffer_bytes: 10_000_000, jitter_ns: 20_000, loss: 0 };
    let found = link.report(1_024, 12_000);
    assert_eq!((found.finding, found.buffer), (TrainFinding::NoLoss, None));
    let held = found.queue_max_bytes.expect("a queue");
    let queued = 1_024.0 * FRAME.wire_bytes() as f64 * (1.0 - 12_000e-9 * 100e6 / 8.0 / FRAME.wire_bytes() as f64);
    assert!((held as f64 / queued - 1.0).abs() < 0.01, "{held} of {queued}");
}

#[test]
fn random_losses_are_no_full_buffer() {
    let link = Link { bps: 100e6, buffer_bytes: 10_000_000, jitter_ns: 20_000, loss: 50 };
    let found = link.report(2_048, 12_000);
    assert_eq!((found.finding, found.buffer), (TrainFinding::ScatteredLosses, None));
    let rate = found.rate.expect("a rate").bps;
    assert!((rate / 100e6 - 1.0).abs() < 0.01, "what was lost before the queue did not use it: {rate}");
}

#[test]
fn a_path_that_is_faster_than_the_sender_has_no_queue() {
    let link = Link { bps: 10e9, buffer_bytes: 128_000, jitter_ns: 20_000, loss: 0 };
    let found = link.report(1_024, 12_000);
    assert_eq!((found.finding, found.rate, found.buffer), (TrainFinding::NoQueue, None, None));
}

#[test]
fn nothing_that_arrives_is_a_report_too() {
    let trains = [Observed::new(vec![1, 2], vec![None, None], TrainEnd::default()).expect("in order")];
    let found = report("192.0.2.1:5201".parse().expect("an address"), Way::Up, FRAME, &[], &trains);
    assert_eq!((found.finding, found.losses.lost, found.losses.longest), (TrainFinding::NoQueue, 2, 2));
    assert_eq!(Observed::new(vec![2, 1], vec![None, None], TrainEnd::default()), None);
    assert_eq!(Observed::new(vec![1, 2], vec![None], TrainEnd::default()), None);
}
