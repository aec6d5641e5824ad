//! Runs arms of a scenario in the lab, and diagnoses what they captured.

use crate::arm_findings::{ArmFindings, read_capture};
use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::out_folder::OutFolder;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thalweg_lab::{Engine, LabArm, Part, RunJournal, RunOptions, RunRequest, SingleRun};
use thalweg_model::{Expectation, HostSettings, LabReport, Scenario, Series};
use thalweg_units::Seed;

/// The kernel scenarios run on unless something else is asked for.
pub(crate) const DEFAULT_KERNEL: &str = "6.12";

/// Arms whose plots are kept: a page of more could not be opened, nor held in memory while it is made.
pub const PLOTS_MAX: usize = 48;

/// A scenario that is ready to run.
#[derive(Debug)]
pub struct Bench {
    /// What is run, for its name and its arms.
    pub scenario: Scenario,
    /// What runs it: at least one, each with the name it has in results.
    pub engines: Vec<(String, Engine)>,
    /// Seed of the first repeat.
    pub seed: Seed,
    /// Guests at a time, at least 1.
    pub jobs: usize,
    /// Where results go.
    pub out: OutFolder,
    stop: Arc<AtomicBool>,
}

/// How a scenario is run.
#[derive(Debug, Clone, Default)]
pub struct BenchOptions {
    /// Versions or paths of lab kernels; none takes the scenario's, or else 6.12.
    pub kernels: Vec<String>,
    /// Seed of the first repeat.
    pub seed: u64,
    /// Guests at a time; `None` is one for each processor.
    pub jobs: Option<usize>,
    /// In real time on this host's kernel, whatever kernels are named.
    pub live: bool,
}

impl BenchOptions {
    /// Guests at a time, at least 1.
    pub(crate) fn jobs(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(processors).max(1)
    }
}

/// What of a bench is to be run.
#[derive(Debug)]
pub struct Task<'a> {
    /// What is run, at least one.
    pub arms: &'a [LabArm],
    /// What is expected of the arms.
    pub expect: &'a [Expectation],
    /// Repeats of each arm, at least 1.
    pub repeats: u32,
    /// The part of it to run; `None` for all.
    pub part: Option<Part>,
    /// What is recorded.
    pub options: RunOptions,
    /// The journal of the bench's folder, where the task is to be resumed if it is stopped.
    pub journal: Option<&'a RunJournal>,
}

/// What running left.
#[derive(Debug)]
pub struct Ran {
    /// With diagnoses, without expectations.
    pub report: LabReport,
    /// Every single run, in the order of arms and repeats.
    pub runs: Vec<SingleRun>,
    /// Of each arm of the report.
    pub findings: Vec<Option<ArmFindings>>,
    /// The user stopped it before all runs were over.
    pub stopped: bool,
}

impl Bench {
    /// Finds the kernels of `scenario`, and makes the folder for results: `folder`, or a fresh one in `thalweg-runs`. `stop` ends
    /// its runs once it is set.
    ///
    /// # Errors
    /// A kernel that is not built, is named twice or lacks a setting of the scenario; a folder that cannot be made; what cannot be run in
    /// real time.
    pub fn prepare(
        scenario: Scenario,
        options: &BenchOptions,
        folder: Option<&Path>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let engines = engines(&scenario, options)?;
        for (_, engine) in &engines {
            if let Some(problem) = settings_against(&scenario, engine, thalweg_model::since::missing).into_iter().next()
            {
                let hint = match engine {
                    Engine::Virtual(_) => {
                        "build another by thalweg lab kernel build --source DIR, and choose it by --kernel"
                    }
                    Engine::Live { .. } => "without --live it runs on a lab kernel",
                };
                return Err(Failure::user(problem).hint(hint));
            }
        }
        let out = OutFolder::prepare(folder, &scenario.name)?;
        let (seed, jobs) = (Seed::new(options.seed), options.jobs());
        Ok(Self { scenario, engines, seed, jobs, out, stop: Arc::clone(stop) })
    }

    /// Runs by one of its engines whose files nobody wants.
    pub(crate) fn lab_runs<'a>(&'a self, engine: &'a Engine) -> LabRuns<'a> {
        LabRuns { engine, jobs: self.jobs, seed: self.seed, stop: &self.stop }
    }

    /// Notes what the scenario asks for in vain, of its path or its kernels, each sentence once.
    pub fn note_vain_settings(&self, observer: &mut dyn Observer) {
        let arms = self.scenario.arms.iter();
        let mut vain: Vec<String> = arms.flat_map(|arm| thalweg_config::without_effect(&arm.experiment)).collect();
        vain.sort();
        vain.dedup();
        vain.iter().for_each(|why| observer.note(why));
        for (_, engine) in &self.engines {
            settings_against(&self.scenario, engine, thalweg_model::since::without_effect)
                .iter()
                .for_each(|why| observer.note(why));
        }
    }

    /// Runs the task, and diagnoses every arm's first capture.
    ///
    /// # Errors
    /// What the lab refused, or a capture that cannot be read.
    pub fn run(&self, task: &Task<'_>, observer: &mut dyn Observer) -> Result<Ran, Failure> {
        let all = task.arms.len() * task.repeats as usize;
        let count = task.part.map_or(all, |part| (part.index as usize - 1..all).step_by(part.of as usize).len());
        observer.begin(&self.scenario.name, count);
        let request = RunRequest {
            scenario: &self.scenario,
            arms: task.arms,
            expect: task.expect,
            seed: self.seed,
            repeats: task.repeats,
            part: task.part,
            jobs: self.jobs,
            options: task.options,
            out: self.out.path(),
            journal: task.journal,
        };
        let run = thalweg_lab::run(&request, &self.stop, &mut |event| observer.event(event));
        observer.end();
        let run = run?;
        run.notes.iter().for_each(|note| observer.note(note));
        let mut report = run.report;
        if report.arms.len() > PLOTS_MAX {
            observer.note(&format!("the page plots the first {PLOTS_MAX} arms"));
        }
        let mut findings = Vec::new();
        for (at, arm) in report.arms.iter_mut().enumerate() {
            let mut found = read_capture(self.out.path(), arm)?;
            arm.diagnosis = found.as_ref().map(|found| found.lines.clone()).unwrap_or_default();
            if let Some(found) = found.as_mut().filter(|_| at >= PLOTS_MAX) {
                found.series = Series::default();
            }
            findings.push(found);
        }
        Ok(Ran { report, runs: run.runs, findings, stopped: run.stopped })
    }
}

/// What runs a scenario, each with the name it has in results.
fn engines(scenario: &Scenario, options: &BenchOptions) -> Result<Vec<(String, Engine)>, Failure> {
    if options.live {
        thalweg_lab::check_live(scenario).map_err(Failure::user)?;
        let engine = Engine::live();
        return Ok(vec![(engine.release().to_owned(), engine)]);
    }
    let default = [DEFAULT_KERNEL.to_owned()];
    let wanted = [&options.kernels, &scenario.kernels, &default[..]].into_iter().find(|list| !list.is_empty());
    let mut engines: Vec<(String, Engine)> = Vec::new();
    for wanted in wanted.unwrap_or_default() {
        let kernel = thalweg_lab::kernel::find(wanted)?;
        if engines.iter().any(|(_, other)| other.id() == kernel.id) {
            return Err(Failure::user(format!("kernel {} is named twice", kernel.id)));
        }
        let short = if wanted.contains('/') { &kernel.release } else { wanted };
        let taken = engines.iter().any(|(other, _)| other == short);
        engines.push((if taken { kernel.id.clone() } else { short.clone() }, Engine::Virtual(kernel)));
    }
    Ok(engines)
}

/// What `look` finds in the settings of all arms on a kernel, each sentence once.
fn settings_against(
    scenario: &Scenario,
    engine: &Engine,
    look: fn(&HostSettings, thalweg_model::since::Release) -> Vec<String>,
) -> Vec<String> {
    let Some(release) = thalweg_model::since::release(engine.release()) else { return Vec::new() };
    let hosts = scenario.arms.iter().flat_map(|arm| [&arm.experiment.client, &arm.experiment.server]);
    let mut found: Vec<String> = hosts.flat_map(|host| look(host, release)).collect();
    found.sort();
    found.dedup();
    found
}

/// Refuses what is not whole: where one arm is missing there is nothing to compare.
pub(crate) fn complete(ran: Ran) -> Result<Ran, Failure> {
    match ran.report.failed.first() {
        _ if ran.stopped => Err(Failure::stopped()),
        Some(failed) => Err(Failure::host(format!("arm '{}', seed {}: {}", failed.arm, failed.seed, failed.why))),
        None => Ok(ran),
    }
}
