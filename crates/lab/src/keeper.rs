//! Hosts in real time that a process of their own keeps up, after the one that asked for them has ended.

use crate::boot::BootError;
use crate::plan::{Clock, Plan, RunOptions};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use thalweg_host::HostError;
use thalweg_model::{Experiment, LiveHostsReport};
use thalweg_units::Seed;

/// What the process that keeps hosts is started with, instead of a verb.
pub(crate) const KEEP_HOSTS: &str = "lab-keep-hosts";

/// What is to be kept up.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// What they are called in lists.
    pub(crate) name: String,
    pub(crate) plan: Plan,
}

/// What the keeper says, in one line, when it has tried.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ready {
    Up(Box<LiveHostsReport>),
    Failed(String),
}

/// Makes the hosts of an experiment and what is between them, and leaves them up: this process may end, and they stay until
/// [`Request::End`](thalweg_live::control::Request::End), or until their keeper is killed. Cross traffic is not made, and the workload is not run.
/// Settings that this host refuses are left out and reported.
///
/// # Errors
/// [`BootError`]; nothing is left then.
pub fn keep_hosts(name: &str, experiment: &Experiment, seed: Seed) -> Result<LiveHostsReport, BootError> {
    let mut experiment = experiment.clone();
    experiment.cross.clear();
    let alike = experiment.client.sysctl.keys().chain(experiment.server.sysctl.keys()).cloned().collect();
    let plan = Plan { experiment, seed, options: RunOptions::default(), clock: Clock::Real, alike };
    let kept = Kept { name: name.to_owned(), plan };
    let failed = |act: &str| {
        let act = act.to_owned();
        move |source: io::Error| BootError::Live(HostError { act, source }.to_string())
    };
    let own = std::env::current_exe().map_err(failed("find this program"))?;
    let mut command = Command::new(own);
    // Neither a mount nor a terminal is held by it.
    command.arg(KEEP_HOSTS).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed("start what keeps the hosts"))?;
    let mut said = || -> io::Result<Ready> {
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        serde_json::to_writer(stdin, &kept)?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    };
    match said().map_err(failed("hear from what keeps the hosts")) {
        Ok(Ready::Up(report)) => Ok(*report),
        Ok(Ready::Failed(why)) => Err(BootError::Live(why)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}
