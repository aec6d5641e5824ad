//! Flows of a simulated sender, each held back by one thing, judged from both ends.
//!
//! The simulator is a test's: one sender with slow start, AIMD, SACK and a timer; one path with a rate, a queue, a delay and
//! losses; one receiver with a buffer and a reader. What it writes is a capture with both ends, as the lab does.

mod path;

use path::{Scenario, run};
use thalweg_model::{Code, Flow, Vantage};

/// The flows seen at the sender and at the receiver.
fn judged(scenario: &Scenario) -> (Flow, Flow) {
    let capture = run(scenario);
    let found = thalweg_infer::diagnose_reader(capture.as_slice(), "simulated").expect("a capture").report;
    assert_eq!(found.flows.len(), 2, "{found:#?}");
    let at = |name: &str| found.flows.iter().find(|f| f.interface.as_deref() == Some(name)).expect("interface").clone();
    let (sender, receiver) = (at("server"), at("client"));
    for flow in [&sender, &receiver] {
        assert!((flow.limits.total() - 1.0).abs() < 1e-9, "{:?}", flow.limits);
        assert_eq!(flow.bytes_down, scenario.bytes, "payload is counted once");
    }
    assert_eq!((sender.vantage, receiver.vantage), (Vantage::Sender, Vantage::Receiver));
    (*sender, *receiver)
}

fn expect(scenario: &Scenario, code: Code) -> (Flow, Flow) {
    let (sender, receiver) = judged(scenario);
    for flow in [&sender, &receiver] {
        assert_eq!(
            flow.verdict.code(),
            code,
            "{:?}: {} rtt {:?} {:.1} Mb/s\n{:?}\n{:?}\n{:?}",
            flow.vantage,
            flow.verdict.claim(),
            flow.rtt_min_ms,
            flow.goodput_bps / 1e6,
            flow.limits,
            flow.retransmits,
            flow.findings.iter().map(|f| (f.code(), f.verdict.share, f.verdict.gain)).collect::<Vec<_>>()
        );
    }
    (sender, receiver)
}

#[test]
fn a_small_receive_window_is_the_cause() {
    let scenario = Scenario { bytes: 60_000_000, window: 1_000_000, ..Scenario::default() };
    let (sender, receiver) = expect(&scenario, Code::ReceiveWindow);
    for flow in [sender, receiver] {
        assert!(flow.verdict.share > 0.8, "{:?}", flow.limits);
        // 1 MB over 35 ms is 229 Mb/s of 1 Gb/s.
        let gain = flow.verdict.gain.expect("the path's rate shows in its bursts");
        assert!((2.5..5.0).contains(&gain), "{gain}");
    }
}

#[test]
fn the_same_with_a_large_window_is_the_path() {
    let scenario = Scenario { bytes: 200_000_000, window: 16_000_000, ..Scenario::default() };
    let (sender, receiver) = expect(&scenario, Code::PathRate);
    assert_eq!(sender.retransmits.total + receiver.retransmits.total, 0);
}

#[test]
fn window_scaling_missing_has_its_own_name() {
    let scenario = Scenario { bytes: 10_000_000, window: 65_535, scaling: false, ..Scenario::default() };
    expect(&scenario, Code::WindowScalingMissing);
}

#[test]
fn a_window_that_does_not_bind_is_not_the_cause() {
    // The window is full, but the path is used up all the same.
    let scenario = Scenario { bytes: 60_000_000, window: 4_900_000, ..Scenario::default() };
    let (sender, _) = judged(&scenario);
    assert_ne!(sender.verdict.code(), Code::ReceiveWindow, "{}", sender.verdict.claim());
}

#[test]
fn a_slow_reader_is_the_cause() {
    let scenario = Scenario { bytes: 10_000_000, window: 500_000, read_rate: 20e6, ..Scenario::default() };
    let (sender, receiver) = expect(&scenario, Code::Reader);
    assert!(sender.zero_windows > 0 && receiver.zero_windows > 0);
    assert!(sender.limits.reader > 0.5 && receiver.limits.reader > 0.5, "{:?} {:?}", sender.limits, receiver.limits);
}

#[test]
fn a_small_send_buffer_is_the_cause() {
    let scenario = Scenario { bytes: 10_000_000, send_buffer: 40_000, ..Scenario::default() };
    let (sender, _) = expect(&scenario, Code::SendBuffer);
    assert!(sender.limits.send_buffer > 0.8, "{:?}", sender.limits);
}

#[test]
fn a_short_transfer_is_its_slow_start() {
    let scenario = Scenario { bytes: 1_000_000, rtt: 0.1, rate: 10e9, window: 6_000_000, ..Scenario::default() };
    let (sender, _) = expect(&scenario, Code::InitialWindow);
    assert!(sender.limits.slow_start > 0.8, "{:?}", sender.limits);
    let gain = sender.verdict.gain.expect("gain");
    assert!((4.0..8.0).contains(&gain), "{gain}");
}

#[test]
fn a_burst_before_a_live_stream_is_its_slow_start() {
    let scenario = Scenario {
        bytes: 3_000_000,
        rtt: 0.1,
        rate: 10e9,
        window: 6_000_000,
        burst: 1_000_000,
        stream_rate: 3.4e6,
        ..Scenario::default()
    };
    let (sender, _) = judged(&scenario);
    assert_eq!(sender.verdict.code(), Code::InitialWindow, "{:#?} {:#?}", sender.verdict, sender.findings);
    assert!(sender.limits.application > 0.5, "{:?}", sender.limits);
}

#[test]
fn a_sender_without_data_is_the_application() {
    let scenario = Scenario { bytes: 3_000_000, rtt: 0.1, burst: 10_000, stream_rate: 3.4e6, ..Scenario::default() };
    expect(&scenario, Code::Application);
}

#[test]
fn rare_random_losses_on_a_long_path() {
    let scenario = Scenario {
        bytes: 150_000_000,
        rtt: 0.21,
        window: 60_000_000,
        queue: 30_000_000,
        loss: 0.0005,
        ..Scenario::default()
    };
    let (sender, receiver) = expect(&scenario, Code::RandomLoss);
    assert!(sender.verdict.gain.expect("gain") > 1.5);
    for flow in [sender, receiver] {
        assert!(flow.retransmits.fast > 0, "{:?}", flow.retransmits);
        assert!(flow.retransmits.fast >= 9 * flow.retransmits.rto, "{:?}", flow.retransmits);
    }
}

#[test]
fn losses_of_a_full_queue_are_congestion() {
    // A queue of a fifth of what the path holds: after each loss the window is too small for a while.
    let scenario = Scenario { bytes: 60_000_000, rate: 100e6, window: 8_000_000, queue: 90_000, ..Scenario::default() };
    let (sender, _) = judged(&scenario);
    let codes: Vec<Code> =
        std::iter::once(sender.verdict.code()).chain(sender.findings.iter().map(|f| f.code())).collect();
    assert!(codes.contains(&Code::CongestionLoss), "{codes:?} {:?}", sender.limits);
    assert!(!codes.contains(&Code::RandomLoss), "{codes:?}");
    assert!(matches!(sender.verdict.code(), Code::CongestionLoss | Code::PathRate), "{codes:?}");
}

#[test]
fn silences_are_timeouts_and_not_fast_recovery() {
    let scenario = Scenario { bytes: 2_000_000, rate: 1e9, blackout: Some((0.15, 0.9)), ..Scenario::default() };
    // A receiver that lost a whole flight sees a silence and then new data: only the sender's end tells a timeout from an idle
    // application.
    let (sender, _) = judged(&scenario);
    assert_eq!(sender.verdict.code(), Code::RetransmissionTimeout, "{:#?}", sender.verdict);
    assert!(sender.retransmits.rto >= 1 && sender.retransmits.fast == 0, "{:?}", sender.retransmits);
    assert!(sender.limits.timeout > 0.4, "{:?}", sender.limits);
}
