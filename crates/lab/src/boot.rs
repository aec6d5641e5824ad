//! Booting a lab kernel as an ordinary process, or starting a run in real time, and watching over it.

use crate::kernel::Kernel;
use crate::plan::{Measured, OUTCOME_FILE, Outcome, PLAN_FILE, PROGRESS_MARK, Plan};
use crate::scratch::{Scratch, memory_folder};
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use thiserror::Error;

/// What the guest believes to have; the host gives only what is touched. The kernel's default buffers follow from it, and
/// from 1 GiB on they are those of any larger host. Source: net/ipv4/tcp.c, `tcp_init`.
const MEMORY_MIB: u64 = 1024;
/// A guest tells of progress once a virtual second; one that is silent for so long of real time hangs.
pub(crate) const SILENCE: Duration = Duration::from_secs(120);
/// What this program is called with to be a run in real time.
pub(crate) const LIVE_RUN: &str = "lab-live-run";
/// A run in real time that is not over by then is ended: nobody watches a scenario for so long.
pub(crate) const LIVE_MOST: Duration = Duration::from_secs(300);
/// How often the keeper looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const CONSOLE_TAIL_LINES: usize = 20;
/// 2023-11-14T22:13:20Z: every run begins then, since the date seeds the kernel's random numbers.
const TIME_START: &str = "1700000000";

/// Why a guest gave no result.
#[derive(Debug, Error)]
pub enum BootError {
    /// The folder for the run could not be made or read.
    #[error("cannot prepare a run in {}: {source}", folder.display())]
    Scratch {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No place for the guest's memory.
    #[error(
        "no place for the guest's memory of {MEMORY_MIB} MiB: {reasons}\n\nhint: set TMPDIR to a folder with room that is not mounted noexec"
    )]
    Memory {
        /// Why each place will not do.
        reasons: String,
    },
    /// The kernel could not be started.
    #[error("cannot start the lab kernel {}: {source}", kernel.display())]
    Start {
        /// The kernel.
        kernel: PathBuf,
        /// What the system said.
        source: thalweg_host::HostError,
    },
    /// The guest refused the experiment.
    #[error("the experiment failed inside the lab: {0}")]
    Refused(String),
    /// The guest died.
    #[error("the guest died ({status}) without a result; its console ended with:\n{console}")]
    Died {
        /// How it ended.
        status: String,
        /// The last lines of its console.
        console: String,
    },
    /// The guest hung and was killed.
    #[error("the guest was silent for {} s and was killed; its console ended with:\n{console}", silence.as_secs())]
    Hung {
        /// For how long it was waited.
        silence: Duration,
        /// The last lines of its console.
        console: String,
    },
    /// A run in real time failed.
    #[error("the live run failed: {0}")]
    Live(String),
    /// A run in real time was not over in time.
    #[error("the live run was not over after {} s and was ended\n\nhint: make it shorter by --set, or run it without --live", LIVE_MOST.as_secs())]
    TooLong,
    /// The user stopped the run.
    #[error("stopped")]
    Stopped,
}

/// How far a guest has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Virtual time since boot.
    pub virtual_s: f64,
    /// Part of the workload done, 0 to 1.
    pub done: f64,
}

/// Boots `kernel` with `plan` and waits for its outcome. The capture and samples stay in `scratch`.
///
/// On one processor a guest is four times as fast as on two: the kernel and its programs are separate processes that
/// hand over to each other at every system call and never run at the same time.
///
/// # Errors
/// See [`BootError`]; the guest is gone in every case.
pub(crate) fn boot(
    kernel: &Kernel,
    plan: &Plan,
    scratch: &Scratch,
    cpu: Option<usize>,
    silence: Duration,
    stop: &AtomicBool,
    mut progress: impl FnMut(Progress),
) -> Result<Measured, BootError> {
    let prepare = |source: std::io::Error| BootError::Scratch { folder: scratch.path().to_owned(), source };
    leave(plan, scratch).map_err(prepare)?;
    // Under a constant name, since the kernel mixes its command line into its random numbers.
    let own = std::env::current_exe().map_err(prepare)?;
    let _ = fs::remove_file(scratch.path().join("init"));
    std::os::unix::fs::symlink(own, scratch.path().join("init")).map_err(prepare)?;
    let memory = memory_folder(MEMORY_MIB << 20).map_err(|reasons| BootError::Memory { reasons })?;

    let mut command = Command::new(fs::canonicalize(&kernel.path).map_err(prepare)?);
    command
        .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "init=/proc/self/cwd/init"])
        .args(["con0=null,fd:1", "con=null", "ssl=null", "quiet", "panic=-1"])
        .args(["time-travel=inf-cpu", &format!("time-travel-start={TIME_START}")])
        .args([format!("mem={MEMORY_MIB}M"), format!("random_seed={}", plan.seed)])
        .args(["umid=guest", "uml_dir=/proc/self/cwd/", "THALWEG_GUEST=run"])
        .env_clear()
        .env("TMPDIR", memory)
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = thalweg_host::process::spawn_tied(&mut command, cpu)
        .map_err(|source| BootError::Start { kernel: kernel.path.clone(), source })?;
    match attend(child, scratch, &Patience { silence, most: None }, stop, &mut progress)? {
        Outcome::Done(measured) => Ok(*measured),
        Outcome::Failed(why) => Err(BootError::Refused(why)),
    }
}

/// Runs `plan` on this host's kernel, in real time, in a process of its own with namespaces of its own.
///
/// # Errors
/// See [`BootError`]; the process and its namespaces are gone in every case.
pub(crate) fn run_live(
    plan: &Plan,
    scratch: &Scratch,
    stop: &AtomicBool,
    mut progress: impl FnMut(Progress),
) -> Result<Measured, BootError> {
    let prepare = |source: std::io::Error| BootError::Scratch { folder: scratch.path().to_owned(), source };
    leave(plan, scratch).map_err(prepare)?;
    let own = std::env::current_exe().map_err(prepare)?;
    let mut command = Command::new(&own);
    command.arg(LIVE_RUN).current_dir(scratch.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = thalweg_host::process::spawn_tied(&mut command, None)
        .map_err(|source| BootError::Start { kernel: own, source })?;
    match attend(child, scratch, &Patience { silence: SILENCE, most: Some(LIVE_MOST) }, stop, &mut progress)? {
        Outcome::Done(measured) => Ok(*measured),
        Outcome::Failed(why) => Err(BootError::Live(why)),
    }
}

/// Leaves the plan where the run finds it.
fn leave(plan: &Plan, scratch: &Scratch) -> std::io::Result<()> {
    fs::write(scratch.path().join(PLAN_FILE), serde_json::to_vec(plan)?)
}

/// How long a run is waited for.
struct Patience {
    /// Without a word of progress.
    silence: Duration,
    /// In all.
    most: Option<Duration>,
}

/// Waits for the end of a run's process, and reads what it left.
fn attend(
    mut child: Child,
    scratch: &Scratch,
    patience: &Patience,
    stop: &AtomicBool,
    progress: &mut impl FnMut(Progress),
) -> Result<Outcome, BootError> {
    let lines = console(&mut child);
    let ended = keep(&lines, patience, stop, progress);
    let status = match ended {
        // The console closes as the kernel's process ends.
        Ok(_) => child.wait().map(|status| status.to_string()).unwrap_or_default(),
        Err(_) => String::new(),
    };
    thalweg_host::process::kill_group(&mut child);
    let console = ended?;
    let outcome = fs::read(scratch.path().join(OUTCOME_FILE)).ok().and_then(|text| serde_json::from_slice(&text).ok());
    outcome.ok_or(BootError::Died { status, console })
}

/// Reads the console on a thread of its own, which ends with it.
fn console(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(stdout);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

/// Waits until the console closes; returns its last lines.
fn keep(
    lines: &Receiver<String>,
    patience: &Patience,
    stop: &AtomicBool,
    progress: &mut impl FnMut(Progress),
) -> Result<String, BootError> {
    let mut tail: VecDeque<String> = VecDeque::new();
    let began = Instant::now();
    let mut heard = began;
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => {
                heard = Instant::now();
                let mut words = line.split_whitespace();
                if words.next() == Some(PROGRESS_MARK) {
                    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
                    progress(Progress { virtual_s: number(), done: number() });
                } else if !line.is_empty() {
                    tail.push_back(line);
                    if tail.len() > CONSOLE_TAIL_LINES {
                        tail.pop_front();
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(joined(&tail)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.load(Ordering::Relaxed) {
            return Err(BootError::Stopped);
        }
        if heard.elapsed() > patience.silence {
            return Err(BootError::Hung { silence: patience.silence, console: joined(&tail) });
        }
        if patience.most.is_some_and(|most| began.elapsed() > most) {
            return Err(BootError::TooLong);
        }
    }
}

fn joined(tail: &VecDeque<String>) -> String {
    tail.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Clock, RunOptions};
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;
    use thalweg_units::Seed;

    /// Boots a shell script in a kernel's place.
    fn boot_script(script: &str, silence: Duration, stop: bool) -> (Result<Measured, BootError>, PathBuf) {
        let scratch = Scratch::create().expect("a folder");
        let path = scratch.path().join("kernel");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("mode");
        let text = "name = \"x\"\n[workload]\nkind = \"stream\"\nbytes = 1\n";
        let scenario =
            thalweg_config::parse_scenario("x.toml", text, &[], &|_| Err(std::io::ErrorKind::NotFound.into()))
                .expect("valid");
        let plan = Plan {
            experiment: scenario.arms[0].experiment.clone(),
            seed: Seed::new(1),
            options: RunOptions::default(),
            clock: Clock::Virtual,
            alike: BTreeSet::new(),
        };
        let kernel = Kernel { release: "0".to_owned(), id: "0".to_owned(), path };
        let result = boot(&kernel, &plan, &scratch, None, silence, &AtomicBool::new(stop), |_| {});
        (result, scratch.path().to_owned())
    }

    #[test]
    fn a_guest_that_panics_is_reported_with_its_consoles_tail() {
        let script = "for i in $(seq 100); do echo line $i; done; echo Kernel panic - not syncing: dead; exit 134";
        let (result, folder) = boot_script(script, Duration::from_secs(10), false);
        let text = result.expect_err("it died").to_string();
        assert!(text.contains("134") && text.contains("Kernel panic - not syncing: dead"), "{text}");
        assert!(text.contains("line 99") && !text.contains("line 50\n"), "{text}");
        assert!(!folder.exists());
    }

    #[test]
    fn a_guest_that_hangs_is_killed_with_all_it_started() {
        let (result, folder) = boot_script("echo hello; sleep 987 & sleep 987", Duration::from_millis(300), false);
        let error = result.expect_err("it hung");
        assert!(matches!(&error, BootError::Hung { console, .. } if console.contains("hello")), "{error}");
        assert!(!folder.exists());
        let left = fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\0987\0"));
        assert!(!left, "a process is left");
    }

    #[test]
    fn a_stop_ends_it_at_once() {
        let began = Instant::now();
        let (result, _) = boot_script("sleep 986", Duration::from_secs(60), true);
        assert!(matches!(result, Err(BootError::Stopped)));
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
