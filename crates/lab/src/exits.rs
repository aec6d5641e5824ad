//! What is expected of arms, held against their reports; and that the programs of a `command` workload exit with 0, which need not be written.

use thalweg_model::{ArmReport, Expectation, Metric, Outcome};

/// The exit codes that a scenario may expect, and the figures that say the same of several runs.
const EXITS: [(&str, &[&str]); 2] =
    [("client_exit", &["client_exit", "failed_runs"]), ("server_exit", &["server_exit"])];

/// Holds an expectation against the arms. It is not met if one of its arms gave no result.
pub fn check(line: &Expectation, arms: &[ArmReport]) -> Outcome {
    let outcome = line.check(arms);
    match line.arms().find(|name| !arms.iter().any(|arm| arm.name == **name)) {
        Some(name) => Outcome { got: format!("no result of arm '{name}'"), met: false, ..outcome },
        None => outcome,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_without_a_result_meets_no_expectation() {
        let names = ["a", "b"];
        for (key, wanted) in [("b/duration_s", ">= 0"), ("b/verdict", "none"), ("b/duration_s", "<= 1x a")] {
            let line = Expectation::parse(key, wanted, names).expect("valid");
            let outcome = check(&line, &[]);
            assert!(!outcome.met && outcome.got.starts_with("no result of arm '"), "{outcome:?}");
        }
    }
}
