//! A capture of many connections: which are kept, what a part of it gives, and the memory that takes.

mod merged;

use thalweg_infer::{Options, PlotSelection, Retain};
use thalweg_model::{Code, Flow};

/// Where an Ethernet frame has the ports of a TCP segment in IPv4.
const SOURCE_PORT: usize = 14 + 20;
const DESTINATION_PORT: usize = SOURCE_PORT + 2;

fn options(wanted: Retain) -> Options {
    Options { drawn: PlotSelection::None, wanted, ..Options::default() }
}

fn diagnosed(bytes: &[u8], wanted: Retain) -> thalweg_infer::CaptureDiagnosis {
    thalweg_infer::diagnose_reader_with(bytes, "merged", options(wanted)).expect("a capture")
}

/// The costliest connections are those that the whole report begins with, and what is said of the others is true.
#[test]
fn the_costliest_are_the_first_of_the_whole_report() {
    let is_clients =
        |frame: &[u8]| frame[SOURCE_PORT..DESTINATION_PORT] > frame[DESTINATION_PORT..DESTINATION_PORT + 2];
    let captures = [
        merged::capture(),
        // What acknowledges data that the capture lacks counts that data, listed or ranked.
        merged::capture_of(is_clients),
        merged::capture_of(|frame| !is_clients(frame)),
    ];
    for bytes in captures {
        let all = diagnosed(&bytes, Retain::All);
        assert!(all.report.flows.len() >= 200, "{} connections", all.report.flows.len());
        assert_eq!(all.connections, all.report.flows.len() as u64);
        for most in [1, 5, 50] {
            let some = diagnosed(&bytes, Retain::Costliest(most));
            assert!(some.report.flows[..] == all.report.flows[..most], "{most}");
            assert_eq!((some.connections, some.slowed), (all.connections, all.slowed), "{most}");
        }
        assert_eq!(all.slowed, all.report.flows.iter().any(|flow| thalweg_infer::is_slowed(flow)));
    }
}

/// A verdict and the shares of time agree.
fn agrees(flow: &Flow) {
    let (verdict, limits) = (&flow.verdict, flow.limits.named());
    let total = flow.limits.total();
    assert!(total == 0.0 || (total - 1.0).abs() < 1e-9, "{total}");
    let slowed = limits.iter().filter(|(name, _)| !["path_rate", "slow_start"].contains(name));
    let largest = slowed.map(|(_, share)| *share).fold(0.0, f64::max);
    assert!(verdict.code() != Code::NothingToGain || largest < 0.3, "{verdict:?} {limits:?}");
    assert!(verdict.gain.is_none_or(|gain| gain.is_finite() && gain >= 1.0), "{verdict:?}");
}

#[test]
fn every_part_of_a_capture_is_diagnosed() {
    let bytes = merged::capture();
    let whole = diagnosed(&bytes, Retain::All).report;
    whole.flows.iter().for_each(|flow| agrees(flow));
    for cut in 1..50 {
        let part = diagnosed(&bytes[..bytes.len() * cut / 50], Retain::All).report;
        assert!(part.packets <= whole.packets && part.flows.len() <= whole.flows.len(), "{cut}");
        part.flows.iter().for_each(|flow| agrees(flow));
    }
}
