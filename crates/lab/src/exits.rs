//! Programs of a `command` workload that ended badly: an expectation nobody had to write.

use thalweg_model::{ArmReport, Expectation, Metric, Outcome};

/// The exit codes that a scenario may expect, and the figures that say the same of several runs.
const EXITS: [(&str, &[&str]); 2] =
    [("client_exit", &["client_exit", "failed_runs"]), ("server_exit", &["server_exit"])];

/// An expectation that was not met for each arm whose program ended with an exit code other than 0, unless the scenario expects
/// something of that code.
pub fn unexpected_exits(arms: &[ArmReport], expect: &[Expectation]) -> Vec<Outcome> {
    let one = |arm: &ArmReport, (figure, known): (&str, &[&str])| {
        let values = Metric::named(&arm.metrics, figure)?.values();
        let code = values.into_iter().find(|code| *code != 0.0)?;
        let expected = expect.iter().any(|line| line.arm == arm.name && known.contains(&line.metric.as_str()));
        (!expected).then(|| Outcome {
            metric: format!("{}/{figure}", arm.name),
            wanted: "0".to_owned(),
            got: code.to_string(),
            met: false,
        })
    };
    arms.iter().flat_map(|arm| EXITS.into_iter().filter_map(move |exit| one(arm, exit))).collect()
}
