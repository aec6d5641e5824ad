//! What runs inside the lab kernel, as its first process: one thread, one event loop, no spinning on the clock.

mod act;
mod burst;
mod clock;
mod command;
mod counters;
mod cross;
mod disciplines;
mod exchange;
mod figures;
mod hosts;
mod links;
mod path;
mod programs;
mod record;
mod shaped;
mod stage;
mod stream;
mod topics;
mod udp_train;

use crate::plan::{Measured, OUTCOME_FILE, Outcome, PLAN_FILE, Plan};
use act::{Actor, Findings, Role};
use counters::Counters;
use hosts::{HostId, Topology};
use stage::Stage;
use std::fs;
use std::path::Path;
use thalweg_host::HostError;
use thalweg_model::{Experiment, Metric, Metrics, Side, Workload};
use thalweg_units::{Seed, Span};

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
    let mut cast = cast(&plan.experiment, &topology, plan.seed);
    let schedule = path::Schedule::of(&plan.experiment, plan.seed);
    let mut stage = Stage::open(topology, &plan.experiment, schedule, plan.options, Path::new(FOLDER))?;
    act::play(&mut stage, &mut cast)?;

    let mut found = Findings::default();
    for role in &mut cast {
        let Findings { metrics, intervals, notes } = role.actor.report(&mut stage)?;
        found.notes.extend(notes);
        match &role.name {
            Some(name) => drop(found.metrics.insert(name.clone(), Metric::Group(metrics))),
            None => {
                found.metrics.extend(metrics);
                found.intervals.extend(intervals);
            }
        }
    }
    found.metrics.extend(stage.topology.losses()?);
    found.metrics.extend(kernels(&stage.topology)?);
    settings.client.socket = stage.socket_options(Side::Client);
    settings.server.socket = stage.socket_options(Side::Server);
    let (virtual_s, capture_dropped) = stage.close()?;
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

/// Port the first workload's server listens on: iperf3's.
const PORT: u16 = 5201;
/// Ports each workload may use: one for each client, at most.
const PORTS: usize = 200;

/// Everyone who acts.
fn cast(experiment: &Experiment, topology: &Topology, seed: Seed) -> Vec<Role> {
    let mut cast = Vec::new();
    let mut ports = (PORT..).step_by(PORTS);
    let mut port = move || ports.next().unwrap_or(PORT);
    let foreground = |actor, start, name| Role { actor, start, name, background: false };
    match &experiment.workload {
        Workload::Mixed { parts } => {
            for part in parts {
                let clients = match part.clients.as_slice() {
                    [] => topology.clients(),
                    some => some.iter().map(|number| *number as HostId).collect(),
                };
                let actor = actor(&part.workload, clients, port(), seed);
                cast.push(foreground(actor, part.start, Some(part.name.clone())));
            }
        }
        one => cast.push(foreground(actor(one, topology.clients(), port(), seed), Span::ZERO, None)),
    }
    for (number, spec) in (1..).zip(&experiment.cross) {
        let actor = cross::actor(spec, topology.cross(), port());
        let name = if experiment.cross.len() == 1 { "cross".to_owned() } else { format!("cross{number}") };
        cast.push(Role { actor, name: Some(name), start: spec.start, background: true });
    }
    cast
}

fn actor(workload: &Workload, clients: Vec<HostId>, port: u16, seed: Seed) -> Box<dyn Actor> {
    match workload {
        Workload::Stream(spec) => Box::new(stream::Streams::new(spec.clone(), clients, port)),
        Workload::Rr(spec) => Box::new(exchange::Exchanges::new(*spec, false, clients, port)),
        Workload::Crr(spec) => Box::new(exchange::Exchanges::new(*spec, true, clients, port)),
        Workload::Burst(spec) => Box::new(burst::Bursts::new(spec.clone(), clients, port)),
        Workload::UdpTrain(spec) => Box::new(udp_train::Trains::new(*spec, clients, port)),
        Workload::Command(spec) => Box::new(command::Commands::new(spec.clone(), &clients, Path::new(FOLDER))),
        Workload::Topics(spec) => Box::new(topics::Publications::new(spec.clone(), port, seed)),
        Workload::Mixed { .. } => unreachable!("invariant: a scenario's reader lets no part be mixed"),
    }
}
