//! Packets at known times.

use super::*;
use proptest::prelude::*;
use thalweg_model::BurstSourceKind;
use thalweg_units::{Bytes, Rate};

fn at(us: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000_000 + us * 1_000)
}

fn port(rate: u64, buffer: u64) -> Option<Port> {
    Some(Port { rate: Rate::from_bits_per_second(rate), buffer: Bytes::new(buffer) })
}

fn source() -> BurstSource {
    BurstSource { kind: BurstSourceKind::AfPacket, reason: None, step_us: 0 }
}

#[test]
fn a_burst_shows_in_short_bins_only() {
    // 125,000 bytes within 100 µs once in 10 ms: 100 Mb/s on average, 10 Gb/s in its bin.
    let mut bursts = Bursts::new("eth0", source(), at(0), port(1_000_000_000, 118_912));
    for round in 0..100u64 {
        for packet in 0..100u64 {
            bursts.packet(at(round * 10_000 + 5_000 + packet), 1_250, true, None);
        }
    }
    let report = bursts.report(at(1_000_000), 0);
    let [short, middle, long] = report.sent.bins[..] else { panic!("three widths: {report:?}") };
    assert_eq!(
        (short.count, short.busy, middle.count, middle.busy, long.count, long.busy),
        (10_000, 100, 1_000, 100, 100, 100)
    );
    assert_eq!((short.max_bps, middle.max_bps, long.max_bps), (10e9, 1e9, 100e6));
    assert!((short.max_at_s - 1_000.005).abs() < 1e-9, "{short:?}");
    assert_eq!((short.p50_bps, short.p90_bps), (0.0, 0.0), "most are empty");
    assert!((long.p50_bps / 100e6 - 1.0).abs() < 1e-2 && (short.p999_bps / 10e9 - 1.0).abs() < 1e-2, "{report:?}");
    // A burst takes 100 µs, in which 12,500 bytes are sent: 112.6 kB wait at most, less than the buffer.
    let held = report.sent.port.expect("a port");
    assert_eq!((held.overflows, held.excess_bytes), (0, 0));
    assert!((112_000..113_000).contains(&held.queue_max_bytes), "{held:?}");
    assert_eq!((report.received.packets, report.received.bins[0].count), (0, 10_000));
    // The next interval begins with nothing.
    assert_eq!(bursts.report(at(2_000_000), 3).sent.bins[0].max_bps, 0.0);
}

#[test]
fn what_a_buffer_does_not_hold_is_counted() {
    let mut bursts = Bursts::new("eth0", source(), at(0), port(1_000_000_000, 65_536));
    for round in 0..10u64 {
        for packet in 0..100u64 {
            bursts.packet(at(round * 10_000 + packet), 1_250, false, None);
        }
    }
    let text = bursts_text(&bursts.report(at(100_000), 0));
    assert!(text.contains("a port of 1.00 Gb/s and 64.0 KiB: 10 bursts overflow it, 460 KiB too many"), "{text}");
}

proptest! {
    /// No packet is lost between bins or intervals, in whatever order they come.
    #[test]
    fn bytes_and_bins_are_conserved(packets in prop::collection::vec((0..200_000u64, 40..65_000u64), 0..400), split in 1..200_000u64) {
        let mut bursts = Bursts::new("eth0", source(), at(0), port(1_000_000, 10));
        let (before, after): (Vec<_>, Vec<_>) = packets.iter().partition(|(us, _)| *us < split);
        before.iter().for_each(|(us, bytes)| bursts.packet(at(*us), *bytes, true, None));
        let first = bursts.report(at(split), 0);
        after.iter().for_each(|(us, bytes)| bursts.packet(at(*us), *bytes, true, None));
        let second = bursts.report(at(200_000), 0);
        let bytes: u64 = packets.iter().map(|(_, bytes)| bytes).sum();
        prop_assert_eq!(first.sent.bytes + second.sent.bytes, bytes);
        for (place, width_us) in [100, 1_000, 10_000].into_iter().enumerate() {
            let [a, b] = [&first, &second].map(|report| report.sent.bins[place].count);
            prop_assert!(a + b <= 200_000 / width_us + 1, "{} and {}", a, b);
            prop_assert!(a + b + 1 >= 200_000 / width_us, "{} and {}", a, b);
        }
    }
}
