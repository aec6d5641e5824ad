//! Any bytes, as a whole capture: refused or diagnosed, with shares that add up.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(found) = infer::diagnose_reader(data, "fuzz") else { return };
    for flow in &found.report.flows {
        let total = flow.limits.total();
        assert!(total == 0.0 || (total - 1.0).abs() < 1e-9);
    }
});
