//! Arms and repeats, each in a guest of its own, several at a time.

use crate::boot::{BootError, Progress, SILENCE, boot, run_live};
use crate::engine::Engine;
use crate::episodes;
use crate::error::LabError;
use crate::live::alike;
use crate::plan::{CAPTURE_FILE, CaptureEnds, Clock, LOG_SUFFIX, Measured, Plan, RunOptions, SAMPLES_FILE};
use crate::run_journal::RunJournal;
use crate::scratch::Scratch;
use crate::single_run::SingleRun;
use crate::summary::{compare_arms, summarize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use thalweg_model::{
    Arm, ArmReport, Expectation, Expected, FailedRun, LabReport, LiveReport, Metric, Metrics, PathVerdict, RunFigures,
    Scenario, Shard,
};
use thalweg_units::Seed;

/// Bytes of an arm's name that files' names have: with numbers and endings they fit in NAME_MAX, 255 (limits.h).
const NAME_BYTES_MAX: usize = 150;

/// An arm and what runs it.
#[derive(Debug, Clone)]
pub struct LabArm {
    /// The arm.
    pub arm: Arm,
    /// What runs it.
    pub engine: Engine,
}

/// Which part of a run this machine takes: every `of`-th run, beginning with the `index`-th.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From 1 on.
    pub index: u32,
    /// At least `index`.
    pub of: u32,
}

/// What is to be run.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The scenario, for its name and what it is about.
    pub scenario: &'a Scenario,
    /// What is run, at least one.
    pub arms: &'a [LabArm],
    /// What is expected of the arms: carried in the report of a part, to be checked when the parts are joined.
    pub expect: &'a [Expectation],
    /// Seed of the first repeat.
    pub seed: Seed,
    /// Repeats of each arm, at least 1.
    pub repeats: u32,
    /// The part of it to run; `None` for all.
    pub part: Option<Part>,
    /// Guests at a time, at least 1. Runs in real time are made one at a time: they would disturb each other.
    pub jobs: usize,
    /// What is recorded.
    pub options: RunOptions,
    /// Where captures, samples and the report go; it must exist.
    pub out: &'a Path,
    /// Of the same folder: knows runs that are over, and is told of those that end. `None` where nothing is to be resumed.
    pub journal: Option<&'a RunJournal>,
}

/// What a run left.
#[derive(Debug)]
pub struct LabRun {
    /// The report, without diagnoses and expectations, which need the captures read.
    pub report: LabReport,
    /// Every single run, in the order of arms and repeats.
    pub runs: Vec<SingleRun>,
    /// Things a reader of the report should know, one sentence each.
    pub notes: Vec<String>,
    /// Whether the user stopped it before all runs were over.
    pub stopped: bool,
}

/// Lays a scenario's arms out over kernels, each with the name it has in results: with several kernels an arm is run on
/// each, and compared with itself on the first.
pub fn across(scenario: &Scenario, engines: &[(String, Engine)]) -> (Vec<LabArm>, Vec<Expectation>) {
    if let [(_, engine)] = engines {
        let arms = scenario.arms.iter().map(|arm| LabArm { arm: arm.clone(), engine: engine.clone() });
        return (arms.collect(), scenario.expect.clone());
    }
    let suffix = |at: usize| format!(" · Linux {}", engines[at].0);
    let mut arms = Vec::new();
    for arm in &scenario.arms {
        for (at, (_, engine)) in engines.iter().enumerate() {
            let name = format!("{}{}", arm.name, suffix(at));
            let baseline = (at > 0).then(|| format!("{}{}", arm.name, suffix(0)));
            arms.push(LabArm { arm: Arm { name, baseline, ..arm.clone() }, engine: engine.clone() });
        }
    }
    let expect = (0..engines.len()).flat_map(|at| scenario.expect.iter().map(move |line| (at, line)));
    (arms, expect.map(|(at, line)| line.of_arms_with(&suffix(at))).collect())
}

/// What happens while a run goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunEvent {
    /// Run `of` so many, counted from 0, has come so far.
    Progress {
        /// Which.
        run: usize,
        /// How far.
        progress: Progress,
    },
    /// A run is over.
    Finished {
        /// Which.
        run: usize,
    },
}

/// Runs every arm and repeat. `stop` is looked at often; `event` is called from several threads, one at a time.
///
/// A run that fails does not end the others: the report names it, and holds what the others measured. All guests are gone in the end, and
/// nothing of a failed run is in `out`.
///
/// A part that has no run, because there are fewer runs than parts, gives a report without arms, which joins with the others.
///
/// # Errors
/// The first failure, if no run gave a result.
pub fn run(
    request: &RunRequest<'_>,
    stop: &AtomicBool,
    event: &mut (dyn FnMut(RunEvent) + Send),
) -> Result<LabRun, LabError> {
    let began = Instant::now();
    let all = request.arms.len() * request.repeats as usize;
    let runs: Vec<usize> = match request.part {
        None => (0..all).collect(),
        Some(Part { index, of }) => (index as usize - 1..all).step_by(of as usize).collect(),
    };
    let next = AtomicUsize::new(0);
    let event = Mutex::new(event);
    let tell = |what: RunEvent| event.lock().unwrap_or_else(PoisonError::into_inner)(what);
    let results: Mutex<BTreeMap<usize, Result<SingleRun, LabError>>> = Mutex::new(BTreeMap::new());
    let processors = thalweg_host::process::processors();
    let jobs = if request.arms.iter().any(|arm| arm.engine.is_live()) { 1 } else { request.jobs };
    std::thread::scope(|scope| {
        for worker in 0..jobs.clamp(1, runs.len().max(1)) {
            let cpu = (!processors.is_empty()).then(|| processors[worker % processors.len()]);
            let (next, results, tell, runs) = (&next, &results, &tell, &runs);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(at).copied() else { break };
                    if stop.load(Ordering::Relaxed) && at > 0 {
                        break;
                    }
                    let result = one(request, run, cpu, stop, |progress| tell(RunEvent::Progress { run, progress }));
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(run, result);
                    tell(RunEvent::Finished { run });
                }
            });
        }
    });

    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (mut good, mut failed) = (Vec::new(), Vec::new());
    for (run, result) in results {
        match result {
            Ok(run) => good.push(run),
            Err(error) => failed.push((run, error)),
        }
    }
    if good.is_empty() && !failed.is_empty() {
        // A run that failed by itself explains more than those that were stopped.
        let first = failed.iter().position(|(_, error)| !error.is_stop()).unwrap_or(0);
        return Err(failed.swap_remove(first).1);
    }
    let mut run = report(request, good, began);
    run.stopped = stop.load(Ordering::Relaxed) && run.runs.len() < runs.len();
    failed.retain(|(_, error)| !error.is_stop());
    run.report.failed = failed.iter().map(|(at, error)| failed_run(request, *at, error)).collect();
    for arm in &mut run.report.arms {
        let told = |name: &String| run.report.failed.iter().any(|failed| failed.arm == *name);
        // Repeats are paired by their places, which are not the same where one is missing.
        if told(&arm.name) || arm.baseline.as_ref().is_some_and(told) {
            arm.differences.clear();
        }
    }
    Ok(run)
}

fn failed_run(request: &RunRequest<'_>, run: usize, error: &LabError) -> FailedRun {
    let (at, repeat) = place(request, run);
    FailedRun {
        arm: request.arms[at].arm.name.clone(),
        seed: request.seed.get().wrapping_add(repeat as u64),
        why: match error {
            LabError::Guest { source, .. } => source.to_string(),
            error @ LabError::Write { .. } => error.to_string(),
        },
    }
}

fn one(
    request: &RunRequest<'_>,
    run: usize,
    cpu: Option<usize>,
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Result<SingleRun, LabError> {
    let (at, repeat) = place(request, run);
    let LabArm { arm, engine } = &request.arms[at];
    let guest = |source| LabError::Guest { arm: arm.name.clone(), source };
    let plan = Plan {
        experiment: arm.experiment.clone(),
        seed: Seed::new(request.seed.get().wrapping_add(repeat as u64)),
        options: request.options,
        clock: if engine.is_live() { Clock::Real } else { Clock::Virtual },
        alike: match engine {
            Engine::Live { .. } => alike(&request.arms.iter().map(|arm| &arm.arm.experiment).collect::<Vec<_>>()),
            Engine::Virtual(_) => BTreeSet::new(),
        },
    };
    let stem = stem(request, run);
    let key = request.journal.map(|journal| (journal, RunJournal::key(&stem, &plan, &engine.id())));
    if let Some(known) = key.as_ref().and_then(|(journal, key)| journal.find(key)) {
        return Ok(known);
    }
    let scratch =
        Scratch::create().map_err(|source| guest(BootError::Scratch { folder: std::env::temp_dir(), source }))?;
    let measured = match engine {
        Engine::Virtual(kernel) => boot(kernel, &plan, &scratch, cpu, SILENCE, stop, progress),
        Engine::Live { .. } => run_live(&plan, &scratch, stop, progress),
    };
    let measured = measured.map_err(guest)?;
    let keep = |from: &str, to: String| -> Result<Option<String>, LabError> {
        let from = scratch.path().join(from);
        if !from.exists() {
            return Ok(None);
        }
        let path = request.out.join(&to);
        carry(&from, &path).map_err(|source| LabError::Write { path, source })?;
        Ok(Some(to))
    };
    let capture = keep(CAPTURE_FILE, format!("{stem}.pcapng"))?;
    let samples = keep(SAMPLES_FILE, format!("{stem}.csv"))?;
    for name in names_ending(scratch.path(), LOG_SUFFIX) {
        keep(&name, format!("{stem}.{name}"))?;
    }
    let Measured { settings, mut metrics, intervals, notes, virtual_s, capture_dropped, live } = measured;
    if let (Some(name), CaptureEnds::Both, 0) = (&capture, request.options.capture, capture_dropped) {
        let read = has_drops(&metrics) || delays_vary(&arm.experiment.path);
        let found = if read { episodes::of_capture(&request.out.join(name)) } else { Some(episodes::none()) };
        metrics.extend(found.unwrap_or_default());
    }
    // Of an arm's later runs nothing but figures is told, and there may be very many.
    let earlier = run.checked_sub(request.part.map_or(1, |part| part.of as usize));
    let first = earlier.is_none_or(|earlier| place(request, earlier).0 != at).then_some((settings, intervals));
    let figures = RunFigures { arm: at, repeat: repeat as u32, virtual_s, metrics };
    let done = SingleRun { figures, seed: plan.seed.get(), capture, samples, notes, capture_dropped, live, first };
    if let Some((journal, key)) = key {
        journal.add(&key, &done)?;
    }
    Ok(done)
}

/// Whether delays differ from what the scenario says: in order, each packet waits for the ones before it.
const fn delays_vary(path: &thalweg_model::Path) -> bool {
    path.down.jitter.is_some() || path.up.jitter.is_some()
}

/// Whether the path dropped anything: the capture need not be read for losses otherwise.
fn has_drops(metrics: &Metrics) -> bool {
    let drops = ["dropped_packets", "policed_packets"].into_iter().filter_map(|name| metrics.get(name));
    let mut counts = drops.flat_map(|group| match group {
        Metric::Group(group) => group.values().filter_map(Metric::value).collect(),
        one => Vec::from_iter(one.value()),
    });
    counts.any(|count| count > 0.0)
}

/// Moves a file, by copy where it has to cross file systems; what is half copied is never under the final name.
fn carry(from: &Path, to: &Path) -> io::Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    let partial = to.with_extension("partial");
    fs::copy(from, &partial).and_then(|_| fs::rename(&partial, to)).inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })
}

/// Names of the files in a folder that end so, in order.
fn names_ending(folder: &Path, suffix: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(suffix)).collect();
    names.sort();
    names
}

fn place(request: &RunRequest<'_>, run: usize) -> (usize, usize) {
    (run / request.repeats as usize, run % request.repeats as usize)
}

/// The name of a run's files without their endings. Numbers distinguish arms; of an arm's name, [`NAME_BYTES_MAX`] are kept.
fn stem(request: &RunRequest<'_>, run: usize) -> String {
    let (arm, repeat) = place(request, run);
    let name = file_name(&request.arms[arm].arm.name);
    if request.repeats > 1 { format!("{arm}-{name}.{repeat}") } else { format!("{arm}-{name}") }
}

/// An arm's name as a part of a file's name.
fn file_name(arm: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { ' ' };
    let mut name = arm.chars().map(plain).collect::<String>().split_whitespace().collect::<Vec<_>>().join("-");
    // All of it is ASCII.
    name.truncate(NAME_BYTES_MAX);
    name
}

fn report(request: &RunRequest<'_>, mut runs: Vec<SingleRun>, began: Instant) -> LabRun {
    let mut notes = Vec::new();
    let mut arms = Vec::new();
    let mut rest = runs.as_mut_slice();
    while let Some(first) = rest.first() {
        let LabArm { arm, engine } = &request.arms[first.figures.arm];
        let count = rest.iter().take_while(|run| run.figures.arm == first.figures.arm).count();
        let (of_arm, later) = rest.split_at_mut(count);
        rest = later;
        let mut told = of_arm.iter().filter(|run| !run.notes.is_empty());
        if let Some(run) = told.next() {
            notes.extend(run.notes.iter().map(|note| format!("arm '{}', seed {}: {note}", arm.name, run.seed)));
            let others = told.count();
            if others > 0 {
                notes.push(format!(
                    "arm '{}': {others} more of its runs have something to tell; see their logs",
                    arm.name
                ));
            }
        }
        let dropped: u32 = of_arm.iter().map(|run| run.capture_dropped).sum();
        if dropped > 0 {
            notes.push(format!("arm '{}': the capture lost {dropped} packets, its ring was full", arm.name));
        }
        let metrics = summarize(of_arm.iter().map(|run| run.figures.metrics.clone()).collect());
        let (settings, intervals) = of_arm[0].first.take().unwrap_or_default();
        arms.push(ArmReport {
            name: arm.name.clone(),
            kernel: engine.release().to_owned(),
            matrix: arm.matrix.iter().cloned().collect(),
            baseline: arm.baseline.clone(),
            settings,
            metrics,
            differences: BTreeMap::new(),
            outliers: Vec::new(),
            intervals,
            diagnosis: Vec::new(),
            capture: of_arm[0].capture.clone(),
            samples: of_arm[0].samples.clone(),
            live: live_of(of_arm),
        });
    }
    // The pairs of a part are not whole.
    if request.part.is_none() {
        compare_arms(&mut arms, request.seed.get());
    }
    let mut releases: Vec<&str> = Vec::new();
    for arm in request.arms {
        if !releases.contains(&arm.engine.release()) {
            releases.push(arm.engine.release());
        }
    }
    let report = LabReport {
        schema: "thalweg.lab/1".to_owned(),
        scenario: request.scenario.name.clone(),
        about: request.scenario.about.clone(),
        kernel: releases.join(", "),
        engine: request.arms.first().map_or("virtual", |arm| arm.engine.name()).to_owned(),
        seed: request.seed.get(),
        repeats: request.repeats,
        wall_s: began.elapsed().as_secs_f64(),
        virtual_s: runs.iter().map(|run| run.figures.virtual_s).sum(),
        arms,
        failed: Vec::new(),
        expect: Vec::new(),
        shard: request.part.map(|part| shard(request, part, &runs)),
    };
    LabRun { report, runs, notes, stopped: false }
}

/// How true an arm's runs in real time were: as asked for if all were.
fn live_of(runs: &[SingleRun]) -> Option<LiveReport> {
    let mut joined: Option<LiveReport> = None;
    for run in runs {
        let Some(one) = &run.live else { continue };
        let joined = joined.get_or_insert_with(|| LiveReport {
            verdict: PathVerdict { faithful: true, faults: Vec::new() },
            skipped: one.skipped.clone(),
        });
        joined.verdict.faithful &= one.verdict.faithful;
        joined.verdict.faults.extend(one.verdict.faults.iter().map(|fault| format!("seed {}: {fault}", run.seed)));
    }
    joined
}

fn shard(request: &RunRequest<'_>, part: Part, runs: &[SingleRun]) -> Shard {
    let expect =
        |line: &Expectation| Expected { metric: format!("{}/{}", line.arm, line.metric), wanted: line.wanted.clone() };
    Shard {
        index: part.index,
        of: part.of,
        arms: request.arms.iter().map(|arm| arm.arm.name.clone()).collect(),
        expect: request.expect.iter().map(expect).collect(),
        runs: runs.iter().map(|run| run.figures.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::{Experiment, Path, Topology, Workload};

    #[test]
    fn a_part_that_has_no_run_gives_a_report_without_arms() {
        let experiment = Experiment {
            topology: Topology::default(),
            path: Path::default(),
            workload: Workload::Mixed { parts: Vec::new() },
            cross: Vec::new(),
            client: Default::default(),
            server: Default::default(),
        };
        let arm = Arm::new("only", experiment);
        let scenario = Scenario {
            name: "x".to_owned(),
            about: String::new(),
            kernels: Vec::new(),
            arms: vec![arm.clone()],
            expect: Vec::new(),
        };
        let request = RunRequest {
            scenario: &scenario,
            arms: &[LabArm { arm, engine: Engine::live() }],
            expect: &[],
            seed: Seed::new(1),
            repeats: 1,
            part: Some(Part { index: 2, of: 2 }),
            jobs: 1,
            options: RunOptions::default(),
            out: std::path::Path::new("/nonexistent"),
            journal: None,
        };
        let run = run(&request, &AtomicBool::new(false), &mut |_| {}).expect("an empty part");
        assert!(run.runs.is_empty() && run.report.arms.is_empty() && run.report.failed.is_empty());
        let shard = run.report.shard.expect("a part");
        assert_eq!((shard.index, shard.of, shard.arms), (2, 2, vec!["only".to_owned()]));
    }

    #[test]
    fn an_arms_files_have_a_part_of_its_name() {
        for (arm, name) in [("a b", "a-b"), ("../x", "..-x"), ("grün", "gr-n"), ("漢", "")] {
            assert_eq!(file_name(arm), name);
        }
        assert_eq!(file_name(&"x".repeat(400)).len(), 150);
    }
}
