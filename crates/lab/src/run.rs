//! A scenario's arms and repeats, each in a guest of its own, several at a time.

use crate::boot::{BootError, Progress, SILENCE, boot};
use crate::kernel::Kernel;
use crate::plan::{CAPTURE_FILE, CaptureEnds, Measured, Plan, RunOptions, SAMPLES_FILE};
use crate::scratch::Scratch;
use crate::summary::summarize;
use model::{ArmReport, LabReport, Scenario};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use thiserror::Error;
use units::Seed;

/// What is to be run.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Number of the first arm in file names: not 0 where arms run before are reported together with these.
    pub first_arm: usize,
    /// On which kernel.
    pub kernel: &'a Kernel,
    /// Seed of the first repeat.
    pub seed: Seed,
    /// Repeats of each arm, at least 1.
    pub repeats: u32,
    /// Guests at a time, at least 1.
    pub jobs: usize,
    /// What is recorded.
    pub options: RunOptions,
    /// Where captures, samples and the report go; it must exist.
    pub out: &'a Path,
}

/// What a run left.
#[derive(Debug)]
pub struct LabRun {
    /// The report, without diagnoses and expectations, which need the captures read.
    pub report: LabReport,
    /// Things a reader of the report should know, one sentence each.
    pub notes: Vec<String>,
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

/// Why a scenario gave no report.
#[derive(Debug, Error)]
pub enum LabError {
    /// A guest gave no result.
    #[error("arm '{arm}': {source}")]
    Guest {
        /// Its arm.
        arm: String,
        /// Why.
        source: BootError,
    },
    /// A result could not be kept.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl LabError {
    /// Whether the user stopped the run.
    pub const fn is_stop(&self) -> bool {
        matches!(self, Self::Guest { source: BootError::Stopped, .. })
    }
}

/// Runs every arm and repeat. `stop` is looked at often; `event` is called from several threads, one at a time.
///
/// # Errors
/// The first failure; all guests are gone by then, and nothing of the failed run is in `out`.
pub fn run(
    request: &RunRequest<'_>,
    stop: &AtomicBool,
    event: &mut (dyn FnMut(RunEvent) + Send),
) -> Result<LabRun, LabError> {
    let began = Instant::now();
    let arms = &request.scenario.arms;
    let runs = arms.len() * request.repeats as usize;
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let event = Mutex::new(event);
    let tell = |what: RunEvent| event.lock().unwrap_or_else(PoisonError::into_inner)(what);
    let results: Mutex<BTreeMap<usize, Result<Measured, LabError>>> = Mutex::new(BTreeMap::new());
    let processors = host::process::processors();
    std::thread::scope(|scope| {
        for worker in 0..request.jobs.clamp(1, runs.max(1)) {
            let cpu = (!processors.is_empty()).then(|| processors[worker % processors.len()]);
            let (next, failed, results, tell) = (&next, &failed, &results, &tell);
            scope.spawn(move || {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= runs || failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let result = one(request, run, cpu, stop, |progress| tell(RunEvent::Progress { run, progress }));
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(run, result);
                    tell(RunEvent::Finished { run });
                }
            });
        }
    });

    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A run that failed by itself explains more than those that were stopped because of it.
    let (good, mut bad): (Vec<_>, Vec<_>) = results.into_values().partition(Result::is_ok);
    if !bad.is_empty() {
        let first = bad.iter().position(|error| error.as_ref().is_err_and(|error| !error.is_stop())).unwrap_or(0);
        return Err(bad.swap_remove(first).expect_err("invariant: partitioned as errors"));
    }
    let measured: Vec<Measured> = good.into_iter().filter_map(Result::ok).collect();
    Ok(report(request, measured, began))
}

fn one(
    request: &RunRequest<'_>,
    run: usize,
    cpu: Option<usize>,
    stop: &AtomicBool,
    progress: impl FnMut(Progress),
) -> Result<Measured, LabError> {
    let (arm, repeat) = place(request, run);
    let guest = |source| LabError::Guest { arm: request.scenario.arms[arm].name.clone(), source };
    let scratch =
        Scratch::create().map_err(|source| guest(BootError::Scratch { folder: std::env::temp_dir(), source }))?;
    let plan = Plan {
        experiment: request.scenario.arms[arm].experiment.clone(),
        seed: Seed::new(request.seed.get().wrapping_add(repeat as u64)),
        options: request.options,
    };
    let measured = boot(request.kernel, &plan, &scratch, cpu, SILENCE, stop, progress).map_err(guest)?;
    for (from, to) in [(CAPTURE_FILE, capture_name(request, run)), (SAMPLES_FILE, samples_name(request, run))] {
        let from = scratch.path().join(from);
        if from.exists() {
            let path = request.out.join(to);
            carry(&from, &path).map_err(|source| LabError::Write { path, source })?;
        }
    }
    Ok(measured)
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

fn place(request: &RunRequest<'_>, run: usize) -> (usize, usize) {
    (run / request.repeats as usize, run % request.repeats as usize)
}

fn stem(request: &RunRequest<'_>, run: usize) -> String {
    let (arm, repeat) = place(request, run);
    let name: String = request.scenario.arms[arm]
        .name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { ' ' })
        .collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join("-");
    let arm = request.first_arm + arm;
    if request.repeats > 1 { format!("{arm}-{name}.{repeat}") } else { format!("{arm}-{name}") }
}

fn capture_name(request: &RunRequest<'_>, run: usize) -> String {
    format!("{}.pcapng", stem(request, run))
}

fn samples_name(request: &RunRequest<'_>, run: usize) -> String {
    format!("{}.csv", stem(request, run))
}

fn report(request: &RunRequest<'_>, measured: Vec<Measured>, began: Instant) -> LabRun {
    let repeats = request.repeats as usize;
    let mut notes = Vec::new();
    let virtual_s = measured.iter().map(|run| run.virtual_s).sum();
    let mut measured = measured.into_iter();
    let mut arms = Vec::new();
    for (at, arm) in request.scenario.arms.iter().enumerate() {
        let of_arm: Vec<Measured> = measured.by_ref().take(repeats).collect();
        let dropped: u32 = of_arm.iter().map(|run| run.capture_dropped).sum();
        if dropped > 0 {
            notes.push(format!("arm '{}': the capture lost {dropped} packets, its ring was full", arm.name));
        }
        let mut all = of_arm.into_iter();
        let Some(first) = all.next() else { continue };
        let metrics = summarize(std::iter::once(first.metrics).chain(all.map(|run| run.metrics)).collect());
        let run = at * repeats;
        arms.push(ArmReport {
            name: arm.name.clone(),
            settings: first.settings,
            metrics,
            intervals: first.intervals,
            diagnosis: Vec::new(),
            capture: (request.options.capture != CaptureEnds::Off).then(|| capture_name(request, run)),
            samples: request.options.samples.map(|_| samples_name(request, run)),
        });
    }
    let report = LabReport {
        schema: "thalweg.lab/1".to_owned(),
        scenario: request.scenario.name.clone(),
        about: request.scenario.about.clone(),
        kernel: request.kernel.release.clone(),
        engine: "virtual".to_owned(),
        seed: request.seed.get(),
        repeats: request.repeats,
        wall_s: began.elapsed().as_secs_f64(),
        virtual_s,
        arms,
        expect: Vec::new(),
    };
    LabRun { report, notes }
}
