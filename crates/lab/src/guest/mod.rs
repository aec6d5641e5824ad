//! What runs inside the lab kernel, as its first process: one thread, one event loop, no spinning on the clock. The same runs on this
//! host's kernel, in namespaces, where the scenario is run in real time.

mod bpf_programs;
mod clock;
mod counters;
mod device;
mod disciplines;
mod event_loop;
mod hosts;
mod kept_hosts;
mod lines;
mod links;
mod live_switch;
mod metrics;
mod path;
mod recorder;
mod sampler;
mod tick_lateness;
mod timer;
mod workload;
mod workloads;

use crate::plan::{Clock, Measured, OUTCOME_FILE, Outcome, PLAN_FILE, Plan};
use counters::Counters;
use event_loop::EventLoop;
use hosts::Topology;
pub(crate) use kept_hosts::keep_main;
use std::fs;
use std::panic::UnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use thalweg_host::cpu_time::CpuTime;
use thalweg_host::netns::NetNs;
use thalweg_host::{HostError, sandbox, user_namespace};
use thalweg_live::LiveError;
use thalweg_model::{Experiment, Metric, Metrics, Side, SocketSettings};
use workload::Findings;

/// The host's folder for this run: the working directory of the process that is the guest's kernel. A constant name,
/// since the kernel mixes its command line into its random numbers.
const HOST_FOLDER: &str = "/proc/self/cwd";
const FOLDER: &str = "/run/out";
/// The highest priority of a program that is not of real time. Source: sched(7).
const FIRST: i32 = -20;

/// Runs the plan in the run's folder, leaves its outcome there, and halts the machine.
pub fn main() -> ! {
    // The first process must not end: the kernel would panic, and nobody would learn why.
    leave(&caught(run), Path::new(FOLDER));
    thalweg_host::guest::halt()
}

/// Runs the plan in the working directory on this host's kernel, in namespaces of its own, and leaves its outcome there. To be called
/// while the process has one thread.
pub(crate) fn live_main() -> ExitCode {
    let folder = Path::new(".");
    match plan(folder) {
        Ok(plan) => {
            leave(&caught(|| run_live(&plan, folder)), folder);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let text = format!("thalweg: {error}\n\nhint: thalweg lab run --live starts this by itself\n");
            let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
            ExitCode::from(2)
        }
    }
}

fn caught(run: impl FnOnce() -> Result<Measured, Failed> + UnwindSafe) -> Outcome {
    match std::panic::catch_unwind(run) {
        Ok(Ok(measured)) => Outcome::Done(Box::new(measured)),
        Ok(Err(Failed(why))) => Outcome::Failed(why),
        Err(panic) => {
            let texts = [panic.downcast_ref::<String>().map(String::as_str), panic.downcast_ref::<&str>().copied()];
            let text = texts.into_iter().flatten().next().unwrap_or("no reason given");
            Outcome::Failed(format!("a bug of the lab's own: {text}"))
        }
    }
}

fn leave(outcome: &Outcome, folder: &Path) {
    let written = || -> std::io::Result<()> {
        let text = serde_json::to_vec(outcome)?;
        let partial = folder.join("outcome.partial");
        fs::write(&partial, text)?;
        fs::rename(partial, folder.join(OUTCOME_FILE))
    };
    if let Err(error) = written() {
        let _ = std::io::Write::write_all(&mut std::io::stdout(), format!("guest: {error}\n").as_bytes());
    }
}

/// Why a run failed, one sentence, and a hint where there is one.
struct Failed(String);

impl From<HostError> for Failed {
    fn from(error: HostError) -> Self {
        Self(error.to_string())
    }
}

impl From<LiveError> for Failed {
    fn from(error: LiveError) -> Self {
        Self(error.to_string())
    }
}

fn run() -> Result<Measured, Failed> {
    thalweg_host::guest::mount_all(Path::new(HOST_FOLDER))?;
    thalweg_host::guest::wait_for_fine_timers();
    let folder = Path::new(FOLDER);
    experiment(&plan(folder)?, folder)
}

fn run_live(plan: &Plan, folder: &Path) -> Result<Measured, Failed> {
    enter_real_time(plan.experiment.workload.has_programs().then_some(folder))?;
    experiment(plan, folder)
}

/// Moves this process to where hosts in real time are made, and into a sandbox whose folder is given.
fn enter_real_time(sandboxed: Option<&Path>) -> Result<(), Failed> {
    let refused = |error| LiveError::NoNamespaces { error, hint: user_namespace::why_refused() };
    user_namespace::enter().map_err(refused)?;
    sandboxed.map_or(Ok(()), sandbox::enter)?;
    // From here on every namespace is one that a user namespace may enter again.
    NetNs::enter_new("home").map_err(refused)?;
    thalweg_host::poll::wake_on_time();
    // Before others, where this user may: what runs late measures the host's other work.
    let _ = rustix::process::setpriority_process(None, FIRST);
    Ok(())
}

fn plan(folder: &Path) -> Result<Plan, HostError> {
    let io = |act: &str, source: std::io::Error| HostError { act: act.to_owned(), source };
    let text = fs::read(folder.join(PLAN_FILE)).map_err(|error| io("read the plan", error))?;
    serde_json::from_slice(&text).map_err(|error| io("understand the plan", error.into()))
}

fn experiment(plan: &Plan, folder: &Path) -> Result<Measured, Failed> {
    let mut topology = Topology::build(plan)?;
    if plan.clock == Clock::Virtual {
        path::shape(&mut topology, &plan.experiment, plan.seed)?;
    }
    let mut settings = topology.read_back(&plan.experiment)?;
    let mut workloads = workloads::schedule(&plan.experiment, &topology, plan.seed, folder);
    // Asking costs a guest virtual time.
    let before = (plan.clock == Clock::Real).then(CpuTime::of_thread);
    let schedule = match plan.clock {
        Clock::Virtual => path::Schedule::of(&plan.experiment, plan.seed),
        Clock::Real => {
            // The emulator makes the path's changes itself, counted from here.
            topology.carry(&plan.experiment.path, plan.seed)?;
            path::Schedule::default()
        }
    };
    let mut event_loop = EventLoop::open(topology, plan, schedule, folder)?;
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
    found.notes.extend(not_applied(&plan.experiment));
    found.notes.extend(forces_nothing(&plan.experiment));
    found.metrics.extend(event_loop.topology.losses()?);
    found.metrics.extend(kernels(&event_loop.topology)?);
    let live =
        before.map(|before| event_loop.live_report(&plan.experiment.path, before, &mut found.metrics)).transpose()?;
    settings.client.socket = event_loop.socket_options(Side::Client);
    settings.server.socket = event_loop.socket_options(Side::Server);
    let (virtual_s, capture_dropped) = event_loop.close()?;
    let Findings { metrics, intervals, notes } = found;
    Ok(Measured { settings, metrics, intervals, notes, virtual_s, capture_dropped, live })
}

/// A note where the scenario has socket options that no socket gets.
fn not_applied(experiment: &Experiment) -> Option<String> {
    let is_asked = [&experiment.client, &experiment.server].iter().any(|host| host.socket != SocketSettings::default());
    (is_asked && experiment.workload.has_programs()).then(|| {
        "socket options are for the lab's own workloads: programs set their own, and those of this scenario were not applied"
            .to_owned()
    })
}

/// A note for each host whose `socket.force` has no buffer that it could force.
fn forces_nothing(experiment: &Experiment) -> Vec<String> {
    let hosts = [("client", &experiment.client.socket), ("server", &experiment.server.socket)];
    let none = |socket: &SocketSettings| socket.sndbuf.is_none() && socket.rcvbuf.is_none();
    let idle = hosts.into_iter().filter(|(_, socket)| socket.force == Some(true) && none(socket));
    idle.map(|(host, _)| {
        format!("{host}.socket.force has no effect without {host}.socket.sndbuf or rcvbuf, whose sizes it forces")
    })
    .collect()
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
