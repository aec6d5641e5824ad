//! Other models that the capture fits: what is to be set if one of them is the right one, and what would tell.

use crate::failure::Failure;
use crate::fit::{Fit, SEEDS};
use crate::fix::considerate::considerate;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{AS_FOUND, figure, value};
use crate::search::Tried;
use thalweg_model::{Arm, DistinguishingTest, Flow, OtherFit, Scenario};

/// Figures that are nearer than this part do not tell models apart: goodputs of two runs over one real path differ by more.
const TELLS: f64 = 0.1;

/// Searches on each of the `others`, and runs what helps on one model on the other, too, where it is not the same. The model in use comes as its
/// scenario, with its remedy.
pub(super) fn other_fits(
    lab: &LabRuns<'_>,
    (in_use, winner): (&Scenario, Option<&Tried>),
    others: &[Fit],
    flow: &Flow,
    own_path: bool,
    observer: &mut dyn Observer,
) -> Result<Vec<OtherFit>, Failure> {
    let one = |other: &Fit| {
        let scenario = other.parameters.scenario("fitted")?;
        let set = considerate(lab, (other, &scenario), flow, own_path, observer)?.winner;
        let changes = |tried: &Tried| tried.candidate.changes.clone();
        let differs = set.as_ref().map(changes) != winner.map(changes);
        let sets: Vec<&Tried> = set.iter().chain(winner.filter(|_| differs)).collect();
        let here = figures(lab, &scenario, &sets, observer)?;
        let there = if differs { figures(lab, in_use, &sets, observer)? } else { Vec::new() };
        let pairs = here.iter().zip(&there).skip(1);
        let tests = sets.iter().zip(pairs).map(|(set, (here, there))| DistinguishingTest {
            set: set.candidate.name.clone(),
            in_use: *there,
            other: *here,
        });
        let apart = |test: &DistinguishingTest| (test.other / test.in_use.max(f64::MIN_POSITIVE)).ln().abs();
        let test = tests.max_by(|a, b| apart(a).total_cmp(&apart(b))).filter(|test| apart(test) > TELLS);
        Ok(OtherFit {
            model: other.model.name.clone(),
            before: here[0],
            after: set.as_ref().map(|_| here[1]),
            apply: set
                .as_ref()
                .map_or_else(Vec::new, |set| thalweg_tune::between(&set.candidate.changes, &flow.client, &flow.server)),
            set: set.map(|set| set.candidate),
            test,
        })
    };
    others.iter().map(one).collect()
}

/// The figure as found, and with each of the sets.
fn figures(
    lab: &LabRuns<'_>,
    scenario: &Scenario,
    sets: &[&Tried],
    observer: &mut dyn Observer,
) -> Result<Vec<f64>, Failure> {
    let base = &scenario.arms[0].experiment;
    let numbered = |(at, set): (usize, &&Tried)| Arm::new(at.to_string(), set.on(base.clone()));
    let arms: Vec<Arm> =
        std::iter::once(Arm::new(AS_FOUND, base.clone())).chain(sets.iter().enumerate().map(numbered)).collect();
    let report = lab.report("another model that fits", &arms, SEEDS, observer)?;
    let (metric, _) = figure(&base.workload);
    Ok(report.arms.iter().map(|arm| value(arm, &metric).unwrap_or_default()).collect())
}
