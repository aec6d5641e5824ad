//! Hosts that stay up in real time, without a workload, until they are asked to end.

use super::hosts::Topology;
use super::{Failed, lines};
use crate::keeper::{Kept, Ready};
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Instant;
use thalweg_host::cpu_time::CpuTime;
use thalweg_host::{HostError, user_namespace};
use thalweg_live::control::{Answer, Listener, Reply, Request};
use thalweg_model::{LiveHost, LiveHostsReport, Metrics};

const SCHEMA: &str = "thalweg.hosts/1";

/// Reads from stdin which hosts there shall be, makes them, says on stdout that they are up, and keeps them. To be called while the
/// process has one thread.
pub(crate) fn keep_main() -> ExitCode {
    let kept: Kept = match serde_json::from_reader(io::stdin()) {
        Ok(kept) => kept,
        Err(error) => {
            let text = format!("thalweg: {error}\n\nhint: thalweg path up starts this by itself\n");
            let _ = io::stderr().write_all(text.as_bytes());
            return ExitCode::from(2);
        }
    };
    let brought = bring(kept);
    let ready = match brought.as_ref().map(|(_, hosts)| hosts.report()) {
        Ok(Ok(report)) => Ready::Up(Box::new(report)),
        Ok(Err(error)) => Ready::Failed(error.to_string()),
        Err(Failed(why)) => Ready::Failed(why.clone()),
    };
    // A session of its own: a terminal that is closed does not end it.
    let _ = rustix::process::setsid();
    let told = serde_json::to_string(&ready).map_err(io::Error::from).and_then(|text| {
        let mut out = io::stdout();
        writeln!(out, "{text}")?;
        out.flush()
    });
    match (brought, ready) {
        (Ok((listener, mut hosts)), Ready::Up(_)) if told.is_ok() => {
            while !hosts.is_over {
                listener.answer_next(&mut |request| hosts.answer(request));
            }
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(3),
    }
}

/// Hosts that are up.
struct KeptHosts {
    kept: Kept,
    topology: Topology,
    began: Instant,
    /// What this thread had taken when the hosts were up.
    before: CpuTime,
    /// Its reader sees the end when this process ends.
    life: (PipeReader, PipeWriter),
    is_over: bool,
}

fn bring(kept: Kept) -> Result<(Listener, KeptHosts), Failed> {
    // In the network namespace in which others look for it.
    let listener = Listener::bind(std::process::id())?;
    super::enter_real_time(None)?;
    let mut topology = Topology::build(&kept.plan)?;
    topology.carry(&kept.plan.experiment.path, kept.plan.seed)?;
    let life = io::pipe().map_err(|source| HostError { act: "make a pipe".to_owned(), source })?;
    let (began, before) = (Instant::now(), CpuTime::of_thread());
    Ok((listener, KeptHosts { kept, topology, began, before, life, is_over: false }))
}

impl KeptHosts {
    fn answer(&mut self, request: Request) -> Reply {
        let refused = |why: String| Answer::Refused(why).into();
        match request {
            Request::Report => self
                .report()
                .map_or_else(|error| refused(error.to_string()), |report| Answer::Hosts(Box::new(report)).into()),
            Request::Change { ways, step } => {
                self.topology.change(&ways, &step).map_or_else(refused, |()| Answer::Done.into())
            }
            Request::Enter(name) => self.entrance(&name).unwrap_or_else(refused),
            Request::End => {
                self.is_over = true;
                Answer::Done.into()
            }
        }
    }

    fn report(&self) -> Result<LiveHostsReport, HostError> {
        let topology = &self.topology;
        let mut figures: Metrics = topology.losses()?;
        let verdict = lines::report(topology.fidelity()?, topology.lost_by_links()?, self.before, &mut figures);
        Ok(LiveHostsReport {
            schema: SCHEMA.to_owned(),
            id: std::process::id(),
            name: self.kept.name.clone(),
            hosts: self.all(),
            between: topology.emulated(&self.kept.plan.experiment.path),
            wall_s: self.began.elapsed().as_secs_f64(),
            figures,
            skipped: topology.skipped.clone(),
            verdict,
        })
    }

    fn all(&self) -> Vec<LiveHost> {
        let hosts = self.topology.hosts();
        hosts.map(|host| LiveHost { name: host.name.clone(), address: host.address.into() }).collect()
    }

    fn entrance(&self, name: &str) -> Result<Reply, String> {
        let Some(host) = self.topology.hosts().find(|host| host.name == name) else {
            let names: Vec<&str> = self.topology.hosts().map(|host| host.name.as_str()).collect();
            return Err(format!("there is no host '{name}' among {}", names.join(", ")));
        };
        let network = host.ns.descriptor().map_err(|error| error.to_string())?;
        let user = user_namespace::own().map_err(|error| error.to_string())?;
        let life: OwnedFd =
            self.life.0.try_clone().map_err(|error| format!("cannot hand over a pipe: {error}"))?.into();
        Ok(Reply::entrance(self.all(), network, user, life))
    }
}
