//! The workloads that the lab runs, and cross traffic.

mod burst;
mod command;
mod cross;
mod exchange;
mod stream;
mod topics;
mod udp_train;

use super::hosts::{HostId, Topology};
use super::workload::{RunningWorkload, Scheduled};
use std::path::Path;
use thalweg_model::{Experiment, Workload};
use thalweg_units::{Seed, Span};

/// Port the first workload's server listens on: iperf3's.
const PORT: u16 = 5201;
/// Ports each workload may use: one for each client, at most.
const PORTS: usize = 200;

/// The workloads of an experiment and its cross traffic; programs of the user's own keep their files in `folder`.
pub(super) fn schedule(experiment: &Experiment, topology: &Topology, seed: Seed, folder: &Path) -> Vec<Scheduled> {
    let mut scheduled = Vec::new();
    let mut ports = (PORT..).step_by(PORTS);
    let mut port = move || ports.next().unwrap_or(PORT);
    let foreground = |workload, start, name| Scheduled { workload, start, name, background: false };
    match &experiment.workload {
        Workload::Mixed { parts } => {
            for part in parts {
                let clients = match part.clients.as_slice() {
                    [] => topology.clients(),
                    some => some.iter().map(|number| *number as HostId).collect(),
                };
                let workload = running(&part.workload, clients, port(), seed, folder);
                scheduled.push(foreground(workload, part.start, Some(part.name.clone())));
            }
        }
        one => scheduled.push(foreground(running(one, topology.clients(), port(), seed, folder), Span::ZERO, None)),
    }
    for (number, spec) in (1..).zip(&experiment.cross) {
        let workload = cross::running(spec, topology.cross(), port());
        let name = if experiment.cross.len() == 1 { "cross".to_owned() } else { format!("cross{number}") };
        scheduled.push(Scheduled { workload, name: Some(name), start: spec.start, background: true });
    }
    scheduled
}

fn running(
    workload: &Workload,
    clients: Vec<HostId>,
    port: u16,
    seed: Seed,
    folder: &Path,
) -> Box<dyn RunningWorkload> {
    match workload {
        Workload::Stream(spec) => Box::new(stream::Streams::new(spec.clone(), clients, port)),
        Workload::Rr(spec) => Box::new(exchange::Exchanges::new(*spec, false, clients, port)),
        Workload::Crr(spec) => Box::new(exchange::Exchanges::new(*spec, true, clients, port)),
        Workload::Burst(spec) => Box::new(burst::Bursts::new(spec.clone(), clients, port)),
        Workload::UdpTrain(spec) => Box::new(udp_train::Trains::new(*spec, clients, port)),
        Workload::Command(spec) => Box::new(command::Commands::new(spec.clone(), &clients, folder)),
        Workload::Topics(spec) => Box::new(topics::Publications::new(spec.clone(), port, seed)),
        Workload::Mixed { .. } => unreachable!("invariant: a scenario's reader lets no part be mixed"),
    }
}
