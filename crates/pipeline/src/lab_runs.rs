//! Runs of experiments whose figures or captures are wanted, not their files.

use crate::arm_findings::{ArmFindings, read_capture};
use crate::chance::meets_chance;
use crate::failure::Failure;
use crate::observer::Observer;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use thalweg_lab::{CaptureEnds, Engine, LabArm, RunOptions, RunRequest, Scratch, SingleRun};
use thalweg_model::{Arm, ArmReport, Experiment, Flow, LabReport, Scenario, Series};
use thalweg_units::Seed;

/// A kernel, and how many guests at a time run on it.
#[derive(Debug, Clone)]
pub(crate) struct LabRuns<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) jobs: usize,
    /// Seed of the first repeat, of every arm: repeats are paired by it.
    pub(crate) seed: Seed,
    pub(crate) stop: &'a AtomicBool,
}

/// A run's connection with most data, and its plots.
pub(crate) type Captured = Option<(Flow, Series)>;

impl LabRuns<'_> {
    /// Runs every arm `repeats` times, or once where chance has no part in any of them; the report compares them with the first.
    pub(crate) fn report(
        &self,
        title: &str,
        arms: &[Arm],
        repeats: u32,
        observer: &mut dyn Observer,
    ) -> Result<LabReport, Failure> {
        let options = RunOptions { capture: CaptureEnds::Off, samples: None };
        self.run(title, arms, repeats, options, &scratch()?, observer).map(|(report, _)| report)
    }

    /// Runs every arm `repeats` times, or once where chance has no part in any of them, and diagnoses what each captured at one end.
    pub(crate) fn captured(
        &self,
        title: &str,
        arms: &[Arm],
        repeats: u32,
        at: CaptureEnds,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Captured>, Failure> {
        let options = RunOptions { capture: at, samples: None };
        let scratch = scratch()?;
        let (_, runs) = self.run(title, arms, repeats, options, &scratch, observer)?;
        self.diagnose(scratch.path(), &runs)
    }

    /// Runs one experiment once, captured at both ends: its figures, and what the capture shows.
    pub(crate) fn diagnosed(
        &self,
        title: &str,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Option<(ArmReport, Option<ArmFindings>)>, Failure> {
        let scratch = scratch()?;
        let arms = [Arm::new(title, experiment.clone())];
        let (report, _) = self.run(title, &arms, 1, RunOptions::default(), &scratch, observer)?;
        let arm = report.arms.into_iter().next();
        arm.map(|arm| read_capture(scratch.path(), &arm).map(|found| (arm, found))).transpose()
    }

    fn run(
        &self,
        title: &str,
        arms: &[Arm],
        repeats: u32,
        options: RunOptions,
        scratch: &Scratch,
        observer: &mut dyn Observer,
    ) -> Result<(LabReport, Vec<SingleRun>), Failure> {
        // Every seed would give the same run. Only where BBR begins its cycle differs, by a ten-thousandth of the goodput.
        let repeats = if arms.iter().any(|arm| meets_chance(&arm.experiment)) { repeats } else { 1 };
        let scenario = Scenario {
            name: title.to_owned(),
            about: String::new(),
            kernels: Vec::new(),
            arms: arms.to_vec(),
            expect: Vec::new(),
        };
        let baseline = arms.first().map(|arm| arm.name.clone());
        let arms: Vec<LabArm> = arms
            .iter()
            .enumerate()
            .map(|(at, arm)| LabArm {
                arm: Arm { baseline: baseline.clone().filter(|_| at > 0), ..arm.clone() },
                engine: self.engine.clone(),
            })
            .collect();
        observer.begin(title, arms.len() * repeats as usize);
        let run = thalweg_lab::run(
            &RunRequest {
                scenario: &scenario,
                arms: &arms,
                expect: &[],
                seed: self.seed,
                repeats,
                part: None,
                jobs: self.jobs,
                options,
                out: scratch.path(),
                journal: None,
            },
            self.stop,
            &mut |event| observer.event(event),
        );
        observer.end();
        let run = run?;
        if run.stopped { Err(Failure::stopped()) } else { Ok((run.report, run.runs)) }
    }

    /// Diagnoses the captures of runs, as many at a time as guests run.
    fn diagnose(&self, folder: &Path, runs: &[SingleRun]) -> Result<Vec<Captured>, Failure> {
        let one = |run: &SingleRun| run.capture.as_ref().map_or(Ok(None), |name| longest(&folder.join(name)));
        let share = runs.len().div_ceil(self.jobs).max(1);
        std::thread::scope(|scope| {
            let parts: Vec<_> = runs
                .chunks(share)
                .map(|part| scope.spawn(|| part.iter().map(one).collect::<Result<Vec<_>, _>>()))
                .collect();
            let parts = parts.into_iter().map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
            Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
        })
    }
}

fn scratch() -> Result<Scratch, Failure> {
    Scratch::create().map_err(|error| {
        Failure::host(format!("cannot make a folder in {}: {error}", std::env::temp_dir().display()))
            .hint("set TMPDIR to a folder that can be written")
    })
}

/// The connection of a capture that carried most.
fn longest(path: &Path) -> Result<Captured, Failure> {
    let capture = thalweg_infer::diagnose_file(path).map_err(|error| Failure::host(error.to_string()))?;
    Ok(capture.into_flows().max_by_key(|(flow, _)| flow.bytes_up + flow.bytes_down))
}
