//! A connection's samples as each cause makes them.

use super::partition::{CA_LOSS, CA_RECOVERY};
use super::*;

/// A second of samples, ten milliseconds apart, each as `change` makes it of the moment: a bulk transfer whose congestion window is full.
fn flow(change: impl Fn(&mut Sample, u64)) -> Flow {
    let samples: Vec<Sample> = (0..=100u64)
        .map(|n| {
            let mut sample = Sample {
                at_s: 1e9 + n as f64 / 100.0,
                busy_us: n * 10_000,
                bytes_acked: n * 100_000,
                window: 100 + n / 4,
                threshold: 50,
                in_flight: 100 + n / 4,
                segment: 1_448,
                unsent: 500_000,
                buffer: 2_000_000,
                buffered: 1_000_000,
                peer_window: 400_000,
                scaled: true,
                rtt_us: 20_000,
                rtt_min_us: 19_500,
                ..Sample::default()
            };
            change(&mut sample, n);
            sample
        })
        .collect();
    let ends = ["10.0.0.1:443", "10.0.0.2:40000"].map(|end| end.parse().expect("an end"));
    judge(0, ends[0], ends[1], &samples).expect("a flow")
}

/// Less under way than the window lets, and no more to send.
fn has_no_more(sample: &mut Sample) {
    (sample.in_flight, sample.unsent, sample.buffered) = (20, 300, 60_000);
}

/// Three losses, each after a round trip of this many microseconds, in samples of 20.0 to 20.9 ms.
fn losses(before_us: u64) -> Flow {
    flow(move |s, n| {
        s.rtt_us = if n % 30 == 29 { before_us } else { 20_000 + n % 10 * 100 };
        s.sent_again = n / 30;
    })
}

#[test]
fn each_limit_is_told_and_shares_add_up() {
    for (code, found) in [
        (Code::ReceiveWindow, flow(|s, n| s.window_limited_us = n * 9_000)),
        (Code::Reader, flow(|s, n| (s.window_limited_us, s.peer_window) = (n * 9_000, n % 3 * 200_000))),
        (
            Code::WindowScalingMissing,
            flow(|s, n| (s.window_limited_us, s.peer_window, s.scaled) = (n * 9_000, 65_535, false)),
        ),
        (Code::SendBuffer, flow(|s, n| s.buffer_limited_us = n * 9_000)),
        (
            Code::SendBuffer,
            flow(|s, _| {
                has_no_more(s);
                s.buffered = 1_500_000;
            }),
        ),
        (Code::Application, flow(|s, n| s.busy_us = n * 1_000)),
        (Code::Application, flow(|s, _| has_no_more(s))),
        (
            Code::InitialWindow,
            flow(|s, n| {
                (s.window, s.threshold) = (10 + n * n, u64::from(u32::MAX));
                s.in_flight = s.window;
            }),
        ),
        // It creeps up.
        (Code::InitialWindow, flow(|_, _| {})),
        (Code::CongestionWindowClamp, flow(|s, _| (s.window, s.in_flight) = (100, 98))),
        (Code::PathRate, flow(|s, _| s.rtt_us = 60_000)),
        // Paced.
        (Code::PathRate, flow(|s, _| s.in_flight = 50)),
        // Paced, and held by a window that closes now and then: its program reads slowly, though the kernel counts nothing of it.
        (
            Code::Reader,
            flow(|s, n| (s.in_flight, s.peer_window) = if n % 3 > 0 { (20, 20 * 1_448) } else { (50, 300_000) }),
        ),
        (Code::RandomLoss, losses(20_300)),
        (Code::CongestionLoss, losses(21_500)),
        (Code::Reordering, flow(|s, n| (s.sent_again, s.overtaken, s.needless) = (n / 10, n, n / 10))),
        (Code::RetransmissionTimeout, flow(|s, n| (s.sent_again, s.timeouts, s.state) = (n, n, CA_LOSS))),
        // The timer has not run out yet.
        (
            Code::RetransmissionTimeout,
            flow(|s, n| {
                has_no_more(s);
                (s.silent_ms, s.sent_again, s.state) = (n % 25 * 10, n / 25, 0);
            }),
        ),
        (
            Code::PathMtuBlackHole,
            flow(|s, n| {
                let found = n > 60;
                (s.sent_again, s.state) = (n.min(61) / 20, if found { 0 } else { CA_LOSS });
                s.segment = if found { 1_024 } else { 1_448 };
            }),
        ),
    ] {
        assert_eq!(found.verdict.code(), code, "{found:?}");
        assert!((found.limits.total() - 1.0).abs() < 1e-9, "{:?}", found.limits);
        assert_eq!((found.vantage, found.direction), (Vantage::Sender, Way::Down));
        assert_eq!((found.server.as_str(), found.bytes_down), ("10.0.0.1:443", 10_000_000));
    }
}

#[test]
fn a_window_that_begins_anew_after_pauses_is_told_before_the_pauses() {
    // A quarter of a second each: a pause of 150 ms, and 100 ms in which the window grows from 10 to 160 segments.
    let found = flow(|s, n| {
        let (turn, busy) = (n / 25, (n % 25).saturating_sub(15));
        s.busy_us = turn * 100_000 + busy * 10_000;
        s.bytes_acked = turn * 1_000_000 + busy * busy * 10_000;
        s.threshold = u64::from(u32::MAX);
        if busy == 0 {
            has_no_more(s);
            s.in_flight = 0;
            s.window = 160;
        } else {
            s.window = 10 << (busy / 2);
            s.in_flight = s.window;
        }
    });
    assert_eq!(found.verdict.code(), Code::IdleRestart, "{found:?}");
}

#[test]
fn what_a_full_path_shows_is_its_rate_and_bounds_what_can_be_gained() {
    // 10 MB/s while a queue stands; half of the time the window is the receiver's, at half of the rate.
    let found = flow(|s, n| {
        (s.bytes_acked, s.window_limited_us) =
            if n < 50 { (n * 100_000, 0) } else { (2_500_000 + n * 50_000, (n - 50) * 10_000) };
        s.rtt_us = if n < 50 { 40_000 } else { 20_000 };
    });
    assert_eq!(found.verdict.code(), Code::ReceiveWindow, "{found:?}");
    let (gain, capacity) = (found.verdict.gain.expect("a gain"), found.measured.capacity_bps.expect("a rate"));
    assert!((capacity / 80e6 - 1.0).abs() < 0.01 && (gain - 1.33).abs() < 0.02, "{capacity} {gain}");
}

#[test]
fn a_full_path_is_the_verdict_beside_a_limit_that_costs_little() {
    // At 10 MB/s behind a queue until this sample, then held by the receiver's window.
    for (until, held_bytes, code) in [
        (76, 50_000, Code::PathRate),
        (61, 50_000, Code::ReceiveWindow),
        (56, 85_000, Code::PathRate),
        (45, 85_000, Code::ReceiveWindow),
    ] {
        let found = flow(move |s, n| {
            let held = n.saturating_sub(until);
            (s.bytes_acked, s.window_limited_us) = ((n - held) * 100_000 + held * held_bytes, held * 10_000);
            s.rtt_us = if n < until { 40_000 } else { 20_000 };
        });
        assert_eq!(found.verdict.code(), code, "{until}: {found:?}");
    }
}

#[test]
fn slow_start_that_overshoots_loses_a_fifth_of_its_window_at_once() {
    for (window, lost, code) in [
        (40, 8, Code::CongestionLoss),
        (30, 7, Code::RandomLoss),
        (44, 8, Code::RandomLoss),
        (60, 12, Code::CongestionLoss),
    ] {
        let found = flow(move |s, n| {
            (s.window, s.in_flight, s.sent_again) = (window, window, if n < 50 { 0 } else { lost });
            s.threshold = if n < 50 { u64::from(u32::MAX) } else { window / 2 };
        });
        assert_eq!(found.verdict.code(), code, "{window} {lost}");
    }
}

#[test]
fn a_window_that_grows_by_a_twentieth_is_in_slow_start() {
    let slow_start = |growth: f64| {
        let found = flow(move |s, n| {
            s.window = (1_000.0 * growth.powi(n as i32)) as u64;
            (s.in_flight, s.threshold) = (s.window, u64::from(u32::MAX));
        });
        found.limits.slow_start
    };
    assert!(slow_start(1.06) > 0.99 && slow_start(1.04) < 0.01);
}

#[test]
fn a_queue_lengthens_round_trips_by_more_than_six_deviations() {
    let path_rate =
        |rtt_var_us: u64| flow(move |s, _| (s.rtt_us, s.rtt_var_us) = (60_000, rtt_var_us)).limits.path_rate;
    assert!(path_rate(6_500) > 0.99 && path_rate(7_000) < 0.01);
}

#[test]
fn packets_that_overtake_make_no_queue_of_the_others_round_trip() {
    let found = flow(|s, n| (s.rtt_min_us, s.overtaken, s.sent_again) = (9_000, n, n / 50));
    assert_eq!(found.verdict.code(), Code::Reordering, "{found:?}");
    assert!(found.limits.path_rate < 0.01, "{:?}", found.limits);
}

#[test]
fn a_receiver_tells_of_its_reader() {
    let receiver = |unread| {
        flow(|s, n| {
            (s.bytes_acked, s.bytes_received) = (0, n * 100_000);
            (s.unread, s.receive_buffer) = (unread, 1_000_000);
        })
    };
    assert_eq!(receiver(500_000).verdict.code(), Code::Reader);
    let found = receiver(100_000);
    assert_eq!((found.verdict.code(), found.vantage, found.direction), (Code::Unknown, Vantage::Receiver, Way::Up));
}

#[test]
fn counters_that_run_back_are_no_harm() {
    let found = flow(|s, n| {
        (s.busy_us, s.window_limited_us, s.sent_again) = (1_000_000 - n, u64::MAX - n, 100 - n);
        (s.silent_ms, s.needless, s.state) = (u64::MAX, u64::MAX - n, CA_RECOVERY);
    });
    assert!((found.limits.total() - 1.0).abs() < 1e-9);
    let end = "10.0.0.1:1".parse().expect("an end");
    assert!(judge(0, end, end, &[Sample::default()]).is_none());
}
