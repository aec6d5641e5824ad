//! Runs that prove a fix, captured and diagnosed.

use crate::arm_findings::ArmFindings;
use crate::bench::{Bench, Ran, Task, complete};
use crate::failure::Failure;
use crate::observer::Observer;
use thalweg_lab::{LabArm, RunOptions};
use thalweg_model::{Arm, FixReport};

/// What a fix found and proved.
#[derive(Debug)]
pub struct Fixed {
    /// The document.
    pub report: FixReport,
    /// What the capture of each arm of the proof shows.
    pub findings: Vec<Option<ArmFindings>>,
}

/// Runs every arm, the others compared with the first.
pub(super) fn prove(bench: &Bench, arms: &[LabArm], repeats: u32, observer: &mut dyn Observer) -> Result<Ran, Failure> {
    let arms: Vec<LabArm> = arms
        .iter()
        .enumerate()
        .map(|(at, one)| {
            let baseline = (at > 0).then(|| arms[0].arm.name.clone());
            LabArm { arm: Arm { baseline, ..one.arm.clone() }, engine: one.engine.clone() }
        })
        .collect();
    let options = RunOptions::default();
    let task = Task { arms: &arms, expect: &[], repeats, part: None, options, journal: None };
    complete(bench.run(&task, observer)?)
}
