//! What the fuzz target of infer does with an input, and the corpus test, too.

/// Any bytes, as a whole capture: refused or diagnosed, with shares that add up; returns how many connections there were.
pub(crate) fn diagnose(data: &[u8]) -> usize {
    let Ok(found) = thalweg_infer::diagnose_reader(data, "fuzz") else { return 0 };
    for flow in &found.report.flows {
        let total = flow.limits.total();
        assert!(total == 0.0 || (total - 1.0).abs() < 1e-9);
    }
    found.report.flows.len()
}
