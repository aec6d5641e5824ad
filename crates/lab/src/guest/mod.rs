//! What runs inside the lab kernel, as its first process: one thread, one event loop, no spinning on the clock.

mod bpf_programs;
mod clock;
mod counters;
mod device;
mod disciplines;
mod event_loop;
mod hosts;
mod links;
mod metrics;
mod path;
mod recorder;
mod workload;
mod workloads;

use crate::plan::{Measured, OUTCOME_FILE, Outcome, PLAN_FILE, Plan};
use counters::Counters;
use event_loop::EventLoop;
use hosts::Topology;
use std::fs;
use std::path::Path;
use thalweg_host::HostError;
use thalweg_model::{Metric, Metrics, Side};
use workload::Findings;

/// The host's folder for this run: the working directory of the process that is the guest's kernel. A constant name,
/// since the kernel mixes its command line into its random numbers.
const HOST_FOLDER: &str = "/proc/self/cwd";
const FOLDER: &str = "/run/out";

/// Runs the plan in the run's folder, leaves its outcome there, and halts the machine.
pub fn main() -> ! {
    // The first process must not end: the kernel would panic, and nobody would learn why.
    let outcome = match std::panic::catch_unwind(run) {
        Ok(Ok(measured)) => Outcome::Done(Box::new(measured)),
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Err(panic) => {
            let texts = [panic.downcast_ref::<String>().map(String::as_str), panic.downcast_ref::<&str>().copied()];
            let text = texts.into_iter().flatten().next().unwrap_or("no reason given");
            Outcome::Failed(format!("a bug of the lab's own: {text}"))
        }
    };
    if let Err(error) = leave(&outcome) {
        let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("guest: {error}\n").as_bytes());
    }
    thalweg_host::guest::halt()
}

fn leave(outcome: &Outcome) -> std::io::Result<()> {
    let text = serde_json::to_vec(outcome)?;
    let partial = Path::new(FOLDER).join("outcome.partial");
    fs::write(&partial, text)?;
    fs::rename(partial, Path::new(FOLDER).join(OUTCOME_FILE))
}

fn run() -> Result<Measured, HostError> {
    thalweg_host::guest::mount_all(Path::new(HOST_FOLDER))?;
    thalweg_host::guest::wait_for_fine_timers();
    let io = |act: &str, source: std::io::Error| HostError { act: act.to_owned(), source };
    let text = fs::read(Path::new(FOLDER).join(PLAN_FILE)).map_err(|error| io("read the plan", error))?;
    let plan: Plan = serde_json::from_slice(&text).map_err(|error| io("understand the plan", error.into()))?;

    let mut topology = Topology::build(&plan.experiment)?;
    path::shape(&mut topology, &plan.experiment, plan.seed)?;
    let mut settings = topology.read_back(&plan.experiment)?;
    let mut workloads = workloads::schedule(&plan.experiment, &topology, plan.seed, Path::new(FOLDER));
    let schedule = path::Schedule::of(&plan.experiment, plan.seed);
    let mut event_loop = EventLoop::open(topology, &plan.experiment, schedule, plan.options, Path::new(FOLDER))?;
    workload::run_all(&mut event_loop, &mut workloads)?;

    let mut found = Findings::default();
    for scheduled in &mut workloads {
        let Findings { metrics, intervals, notes } = scheduled.workload.report(&mut event_loop)?;
        found.notes.extend(notes);
        match &scheduled.name {
            Some(name) => drop(found.metrics.insert(name.clone(), Metric::Group(metrics))),
            None => {
                found.metrics.extend(metrics);
                found.intervals.extend(intervals);
            }
        }
    }
    found.metrics.extend(event_loop.topology.losses()?);
    found.metrics.extend(kernels(&event_loop.topology)?);
    settings.client.socket = event_loop.socket_options(Side::Client);
    settings.server.socket = event_loop.socket_options(Side::Server);
    let (virtual_s, capture_dropped) = event_loop.close()?;
    let Findings { metrics, intervals, notes } = found;
    Ok(Measured { settings, metrics, intervals, notes, virtual_s, capture_dropped })
}

/// What the hosts' kernels counted of losses and repair; nothing where there were none.
fn kernels(topology: &Topology) -> Result<Option<(String, Metric)>, HostError> {
    let mut hosts = Metrics::new();
    for host in topology.hosts() {
        let counted = Counters::of(&host.ns)?.of_repair();
        if !counted.is_empty() {
            hosts.insert(host.name.clone(), Metric::Group(counted));
        }
    }
    Ok((!hosts.is_empty()).then(|| ("kernel".to_owned(), Metric::Group(hosts))))
}
