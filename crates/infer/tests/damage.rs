//! Damaged captures of a simulated flow: never a panic, and shares that add up.

#[path = "simulated/path.rs"]
mod path;

use path::{Scenario, run};
use proptest::prelude::*;
use std::sync::OnceLock;

fn capture() -> &'static [u8] {
    static CAPTURE: OnceLock<Vec<u8>> = OnceLock::new();
    CAPTURE.get_or_init(|| run(&Scenario { bytes: 200_000, loss: 0.02, read_rate: 50e6, ..Scenario::default() }))
}

proptest! {
    #[test]
    fn mutated(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..200)) {
        let mut bytes = capture().to_vec();
        // The section header stays, else nothing is read at all.
        let length = bytes.len() - 64;
        for (at, byte) in changes {
            bytes[64 + at.index(length)] = byte;
        }
        let found = thalweg_infer::diagnose_reader(bytes.as_slice(), "mutated").expect("a capture");
        for flow in found.report.flows {
            let total = flow.limits.total();
            prop_assert!(total == 0.0 || (total - 1.0).abs() < 1e-9, "{}", total);
        }
    }

    #[test]
    fn cut(at in any::<prop::sample::Index>()) {
        let bytes = &capture()[..at.index(capture().len())];
        let whole = thalweg_infer::diagnose_reader(capture(), "whole").expect("a capture").report;
        if let Ok(found) = thalweg_infer::diagnose_reader(bytes, "cut") {
            prop_assert!(found.report.packets <= whole.packets);
        }
    }
}

#[test]
fn files_of_other_kinds_are_named() {
    for (bytes, looks_like) in
        [(&b"\x1f\x8b\x08\0"[..], "gzip"), (b"", "an empty file"), (b"hello\n", "text"), (b"\x7fELF\x02", "a program")]
    {
        let error = thalweg_infer::diagnose_reader(bytes, "x.pcap").expect_err("no capture").to_string();
        assert!(error.contains("x.pcap is not a pcap or pcapng capture") && error.contains(looks_like), "{error}");
    }
    let error =
        thalweg_infer::diagnose_file(std::path::Path::new("/nonexistent/x.pcap")).expect_err("no file").to_string();
    assert!(error.starts_with("cannot open /nonexistent/x.pcap: "), "{error}");
}
