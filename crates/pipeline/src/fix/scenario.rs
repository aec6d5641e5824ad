//! A scenario's first arm: run as found, diagnose, derive the remedy, run again with it, compare.

use crate::bench::{ArmFindings, Bench, Ran, Task};
use crate::failure::Failure;
use crate::observer::Observer;
use crate::remedy::{AS_FOUND, WORTH, apply, figure, merge, ratio, value};
use thalweg_lab::{LabArm, RunOptions};
use thalweg_model::{Arm, ArmReport, Code, Experiment, FixReport, LabReport, Remedy, Scenario, Side};
use thalweg_tune::Facts;
use thalweg_units::Span;

/// Remedies tried one upon the other: behind one limit the next one shows.
const ROUNDS: usize = 3;

/// What a fix found and proved.
#[derive(Debug)]
pub struct Fixed {
    /// The document.
    pub report: FixReport,
    /// What the capture of each arm of the proof shows.
    pub findings: Vec<Option<ArmFindings>>,
}

/// Finds what slows the first arm of `bench`'s scenario, and proves what mends it.
///
/// # Errors
/// Several kernels; what the lab refuses.
pub fn scenario(bench: &Bench, observer: &mut dyn Observer) -> Result<Fixed, Failure> {
    let [(_, kernel)] = bench.kernels.as_slice() else {
        return Err(Failure::user(format!("fix takes one kernel, not {}", bench.kernels.len()))
            .hint("choose one by --kernel; lab run compares several"));
    };
    let mut arms = vec![Arm::new(name(&[]), bench.scenario.arms[0].experiment.clone())];
    let mut found: Vec<Option<ArmFindings>> = Vec::new();
    let mut report: Option<LabReport> = None;
    let mut remedies: Vec<Remedy> = Vec::new();
    loop {
        let arm = arms[arms.len() - 1].clone();
        observer.note(&match remedies.last() {
            None => format!("running '{}' as found on Linux {}", bench.scenario.name, kernel.release),
            Some(remedy) => format!("cause: {}; running again with the remedy", remedy.code),
        });
        let one = LabArm { arm, kernel: kernel.clone() };
        let task = Task {
            arms: &[one],
            expect: &[],
            first_arm: arms.len() - 1,
            repeats: 1,
            part: None,
            options: RunOptions::default(),
        };
        let Ran { report: run, mut findings, .. } = bench.run(&task, observer)?;
        let step = join(&mut report, run);
        found.append(&mut findings);
        let so_far = report.as_ref().map(|report| &report.arms).map(Vec::as_slice).unwrap_or_default();
        if so_far.len() > 1 && !better(so_far, &bench.scenario, step - 1, step) {
            // The last remedy gave nothing: it is not part of the answer, though its run stays in the proof.
            remedies.pop();
            break;
        }
        let planned =
            found[step].as_ref().and_then(|found| plan(&kernel.release, &so_far[step], &arms[step].experiment, found));
        let Some(remedy) = planned.filter(|_| remedies.len() < ROUNDS) else { break };
        let mut experiment = arms[step].experiment.clone();
        remedy.changes.iter().for_each(|change| apply(&mut experiment, change));
        remedies.push(remedy);
        arms.push(Arm::new(name(&remedies), experiment));
    }
    let report = report.expect("invariant: the baseline has run");
    Ok(Fixed { report: conclude(&bench.scenario, report, &found, remedies), findings: found })
}

/// Adds a run's arm to the report; returns its place.
fn join(report: &mut Option<LabReport>, run: LabReport) -> usize {
    match report {
        None => *report = Some(run),
        Some(whole) => {
            let baseline = whole.arms.first().map(|arm| arm.name.clone());
            whole.wall_s += run.wall_s;
            whole.virtual_s += run.virtual_s;
            whole.arms.extend(run.arms.into_iter().map(|arm| ArmReport { baseline: baseline.clone(), ..arm }));
            thalweg_lab::compare_arms(&mut whole.arms, whole.seed);
        }
    }
    report.as_ref().map_or(0, |report| report.arms.len() - 1)
}

/// An arm's name: what it adds to the one before it.
fn name(remedies: &[Remedy]) -> String {
    let Some((last, before)) = remedies.split_last() else { return AS_FOUND.to_owned() };
    let again = if before.iter().any(|remedy| remedy.code == last.code) { " again" } else { "" };
    let plus = if before.is_empty() { "" } else { "+ " };
    format!("{plus}{} mended{again}", last.code)
}

fn better(arms: &[ArmReport], scenario: &Scenario, a: usize, b: usize) -> bool {
    ratio(arms, scenario, a, b).is_some_and(|ratio| ratio >= WORTH)
}

/// Plans for the costliest cause that something can be done about.
fn plan(kernel: &str, arm: &ArmReport, experiment: &Experiment, found: &ArmFindings) -> Option<Remedy> {
    let path = experiment.path.direction(found.flow.direction);
    let mut fixed_buffers = Vec::new();
    for (side, host) in [(Side::Client, &experiment.client), (Side::Server, &experiment.server)] {
        fixed_buffers.extend(host.socket.rcvbuf.map(|_| (side, "rcvbuf")));
        fixed_buffers.extend(host.socket.sndbuf.map(|_| (side, "sndbuf")));
    }
    let seen = Facts::of_flow(&found.flow, thalweg_model::since::release(kernel), &arm.settings);
    let facts = Facts {
        fixed_buffers,
        rtt: found.flow.rtt_min_ms.map_or(experiment.path.rtt(), |ms| Span::from_secs_f64(ms / 1e3)),
        path_rate: path.rate.or(seen.path_rate),
        ..seen
    };
    let first = thalweg_tune::plan(found.lines.first()?.code, &facts);
    first.into_iter().find(|remedy| !remedy.changes.is_empty())
}

fn conclude(scenario: &Scenario, proof: LabReport, found: &[Option<ArmFindings>], remedies: Vec<Remedy>) -> FixReport {
    let cause = found[0].as_ref().and_then(|found| found.lines.first().cloned());
    let cause = cause.unwrap_or(thalweg_model::DiagnosisLine {
        code: Code::Unknown,
        share: 0.0,
        gain: None,
        claim: "The capture holds no connection with data.".to_owned(),
    });
    let last = remedies.len();
    let (metric, _) = figure(scenario, &proof.arms[0]);
    let metric =
        if value(&proof.arms[last], &metric).is_some() { metric } else { figure(scenario, &proof.arms[last]).0 };
    let before = value(&proof.arms[0], &metric).unwrap_or_default();
    let remedy = merge(remedies);
    let proven = remedy.is_some();
    FixReport {
        schema: "thalweg.fix/1".to_owned(),
        cause,
        apply: remedy.as_ref().map(thalweg_tune::apply).unwrap_or_default(),
        undo: remedy.as_ref().map(thalweg_tune::undo).unwrap_or_default(),
        before,
        after: proven.then(|| value(&proof.arms[last], &metric)).flatten(),
        ratio: proven.then(|| ratio(&proof.arms, scenario, 0, last)).flatten(),
        metric,
        capture: None,
        search: Vec::new(),
        rival: None,
        notes: Vec::new(),
        remedy,
        proof: Some(proof),
    }
}
