//! Running a scenario and reading what it captured: what `lab run` and `fix` share.

use crate::args::LabOptions;
use crate::failure::Failure;
use crate::output::Output;
use crate::{kernel, progress, samples, whole};
use anyhow::anyhow;
use lab::kernel::Kernel;
use lab::{LabArm, Part, RunOptions, RunRequest, SingleRun};
use model::{ArmReport, DiagnosisLine, Expectation, Flow, HostSettings, LabReport, Scenario, Series, Vantage, Verdict};
use report::html::ArmPlots;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::Seed;

/// The kernel scenarios run on unless something else is asked for.
const DEFAULT_KERNEL: &str = "6.12";

/// Arms whose plots are drawn: a page of more could not be opened, nor held in memory while it is made.
const PLOTS_MAX: usize = 48;

/// A scenario that is ready to run.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) scenario: Scenario,
    /// At least one, each with the name it goes by in results.
    pub(crate) kernels: Vec<(String, Kernel)>,
    pub(crate) seed: Seed,
    pub(crate) jobs: usize,
    pub(crate) out: OutFolder,
    stop: Arc<AtomicBool>,
}

/// What of a bench is to be run.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) arms: &'a [LabArm],
    pub(crate) expect: &'a [Expectation],
    /// Number of the first arm in file names.
    pub(crate) first_arm: usize,
    pub(crate) repeats: u32,
    pub(crate) part: Option<Part>,
    pub(crate) options: RunOptions,
}

/// What running left.
#[derive(Debug)]
pub(crate) struct Ran {
    /// With diagnoses, without expectations.
    pub(crate) report: LabReport,
    pub(crate) runs: Vec<SingleRun>,
    /// Of each arm of the report.
    pub(crate) findings: Vec<Option<ArmFindings>>,
}

/// What an arm's capture shows.
#[derive(Debug)]
pub(crate) struct ArmFindings {
    /// Causes, costliest first.
    pub(crate) lines: Vec<DiagnosisLine>,
    /// The connection that speaks for the arm.
    pub(crate) flow: Flow,
    /// Its plots.
    pub(crate) series: Series,
}

impl Bench {
    /// Finds the kernels of `scenario`, and makes the folder for results, `folder` or a fresh one.
    pub(crate) fn prepare(
        scenario: Scenario,
        options: &LabOptions,
        folder: Option<&Path>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let default = [DEFAULT_KERNEL.to_owned()];
        let wanted = [&options.kernel, &scenario.kernels, &default[..]].into_iter().find(|list| !list.is_empty());
        let mut kernels: Vec<(String, Kernel)> = Vec::new();
        for wanted in wanted.unwrap_or_default() {
            let kernel = lab::kernel::find(wanted).map_err(kernel::failure)?;
            if kernels.iter().any(|(_, other)| other.id == kernel.id) {
                return Err(Failure::user(anyhow!("kernel {} is named twice", kernel.id)));
            }
            let short = if wanted.contains('/') { &kernel.release } else { wanted };
            let taken = kernels.iter().any(|(other, _)| other == short);
            kernels.push((if taken { kernel.id.clone() } else { short.clone() }, kernel));
        }
        for (_, kernel) in &kernels {
            if let Some(problem) = settings_against(&scenario, kernel, model::since::missing).into_iter().next() {
                let hint = "build another by thalweg lab kernel build --source DIR, and choose it by --kernel";
                return Err(Failure::user(anyhow!("{problem}")).hint(hint));
            }
        }
        let out = OutFolder::prepare(folder, &scenario.name)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = options.jobs.unwrap_or(processors).max(1);
        Ok(Self { scenario, kernels, seed: Seed::new(options.seed), jobs, out, stop: Arc::clone(stop) })
    }

    /// Runs the task, and diagnoses every arm's capture.
    pub(crate) fn run(&self, task: &Task<'_>, output: &Output) -> Result<Ran, Failure> {
        for (_, kernel) in &self.kernels {
            settings_against(&self.scenario, kernel, model::since::without_effect)
                .iter()
                .for_each(|why| output.note(why));
        }
        let all = task.arms.len() * task.repeats as usize;
        let count = task.part.map_or(all, |part| (part.index as usize - 1..all).step_by(part.of as usize).len());
        let mut bar = progress::Runs::new(output, &self.scenario.name, count);
        let request = RunRequest {
            scenario: &self.scenario,
            arms: task.arms,
            expect: task.expect,
            first_arm: task.first_arm,
            seed: self.seed,
            repeats: task.repeats,
            part: task.part,
            jobs: self.jobs,
            options: task.options,
            out: self.out.path(),
        };
        let run = lab::run(&request, &self.stop, &mut |event| bar.event(event));
        bar.finish();
        let run = run.map_err(|error| if error.is_stop() { Failure::stopped() } else { Failure::host(error) })?;
        run.notes.iter().for_each(|note| output.note(note));
        let mut report = run.report;
        if report.arms.len() > PLOTS_MAX {
            output.note(&format!("the page plots the first {PLOTS_MAX} arms"));
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
        Ok(Ran { report, runs: run.runs, findings })
    }
}

/// What `look` finds in the settings of all arms on a kernel, each sentence once.
fn settings_against(
    scenario: &Scenario,
    kernel: &Kernel,
    look: fn(&HostSettings, model::since::Release) -> Vec<String>,
) -> Vec<String> {
    let Some(release) = model::since::release(&kernel.release) else { return Vec::new() };
    let hosts = scenario.arms.iter().flat_map(|arm| [&arm.experiment.client, &arm.experiment.server]);
    let mut found: Vec<String> = hosts.flat_map(|host| look(host, release)).collect();
    found.sort();
    found.dedup();
    found
}

/// Reads an arm's capture; `None` where there is none, or no connection in it.
fn read_capture(out: &Path, arm: &ArmReport) -> Result<Option<ArmFindings>, Failure> {
    let Some(name) = &arm.capture else { return Ok(None) };
    let path = out.join(name);
    let capture = infer::diagnose_file(&path).map_err(|error| Failure::host(anyhow!("{error}")))?;
    let mut series = capture.series.into_iter().peekable();
    let flows = capture.report.flows.into_iter().enumerate();
    let flows: Vec<(Flow, Series)> = flows
        .map(|(index, flow)| {
            (*flow, series.next_if(|(at, _)| *at == index).map(|(_, drawn)| drawn).unwrap_or_default())
        })
        .collect();
    // Samples count from when the client began to connect, plots from the first packet where they were captured.
    let connect = flows.iter().map(|(flow, _)| flow.start).fold(f64::INFINITY, f64::min);
    let mut found = speak_for(flows);
    if let (Some(found), Some(samples)) = (&mut found, &arm.samples) {
        let late_s = found.flow.start - connect;
        found.series.cwnd_bytes = samples::congestion_window(&out.join(samples), found.flow.direction, late_s)
            .map_err(|error| Failure::host(anyhow!("cannot read the samples '{samples}': {error}")))?;
    }
    Ok(found)
}

/// Weighs the connections seen at the sender, each by its time: the code with most time comes first, told by the longest
/// connection that has it.
fn speak_for(flows: Vec<(Flow, Series)>) -> Option<ArmFindings> {
    let at_sender = flows.iter().any(|(flow, _)| flow.vantage == Vantage::Sender);
    let seen: Vec<(Flow, Series)> =
        flows.into_iter().filter(|(flow, _)| !at_sender || flow.vantage == Vantage::Sender).collect();
    let total: f64 = seen.iter().map(|(flow, _)| flow.duration_s).sum();
    let mut by_code: BTreeMap<model::Code, (f64, usize, usize)> = BTreeMap::new();
    for (at, (flow, _)) in seen.iter().enumerate() {
        let (time, count, longest) = by_code.entry(flow.verdict.code).or_insert((0.0, 0, at));
        *time += flow.duration_s;
        *count += 1;
        if flow.duration_s > seen[*longest].0.duration_s {
            *longest = at;
        }
    }
    let mut ranked: Vec<(f64, usize, usize)> = by_code.into_values().collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
    let count = seen.len();
    let lines = ranked
        .iter()
        .map(|&(time, of, longest)| {
            let Verdict { code, share, claim, gain, .. } = &seen[longest].0.verdict;
            let (share, claim) = if count > 1 {
                (share * time / total.max(f64::MIN_POSITIVE), format!("{of} of {count} connections: {claim}"))
            } else {
                (*share, claim.clone())
            };
            DiagnosisLine { code: *code, share, gain: *gain, claim }
        })
        .chain((count == 1).then(|| seen[0].0.findings.iter()).into_iter().flatten().map(|finding| DiagnosisLine {
            code: finding.code,
            share: finding.share,
            gain: finding.gain,
            claim: finding.claim.clone(),
        }))
        .collect();
    let longest = ranked.first()?.2;
    let (flow, series) = seen.into_iter().nth(longest)?;
    Some(ArmFindings { lines, flow, series })
}

/// The plots of the first arms that have some.
pub(crate) fn plots(report: &LabReport, findings: Vec<Option<ArmFindings>>) -> Vec<ArmPlots> {
    report
        .arms
        .iter()
        .zip(findings)
        .take(PLOTS_MAX)
        .filter_map(|(arm, found)| found.map(|found| ArmPlots::of_flow(arm.name.clone(), &found.flow, found.series)))
        .collect()
}

/// The folder results go to; taken back if it was made and stays empty.
#[derive(Debug)]
pub(crate) struct OutFolder {
    path: PathBuf,
    made: bool,
}

impl OutFolder {
    fn prepare(given: Option<&Path>, name: &str) -> Result<Self, Failure> {
        let cannot = |path: &Path, error: io::Error| {
            Failure::user(anyhow!("cannot make the folder {}: {error}", path.display()))
                .hint("choose another by --out DIR")
        };
        if let Some(path) = given {
            let made = !path.exists();
            fs::create_dir_all(path).map_err(|error| cannot(path, error))?;
            return Ok(Self { path: path.to_owned(), made });
        }
        let parent = Path::new("thalweg-runs");
        fs::create_dir_all(parent).map_err(|error| cannot(parent, error))?;
        for number in 1u32.. {
            let path = parent.join(format!("{name}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, made: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot(&path, error)),
            }
        }
        unreachable!("invariant: a free number is found long before they run out")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file whole or not at all; returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        whole::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        if self.made {
            // Fails unless it is empty, which is what is wanted.
            let _ = fs::remove_dir(&self.path);
        }
    }
}
