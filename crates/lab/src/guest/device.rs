//! A device of a router on the path: its programs, its discipline, and their counters.

use super::bpf_programs::BpfPrograms;
use thalweg_host::netns::NetNs;
use thalweg_host::{HostError, link, qdisc};
use thalweg_model::{Experiment, Way};
use thalweg_units::Seed;

/// The part of the path that a device emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Rate and queue.
    Bottleneck,
    /// Delay, jitter, loss.
    Propagation,
    /// A port of a switch.
    Port,
}

/// A device on the path.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) way: Way,
    pub(super) role: Role,
    pub(super) router: usize,
    /// Its name in the router's namespace.
    pub(super) interface: String,
    /// Which client it is for.
    pub(super) number: u32,
    pub(super) programs: BpfPrograms,
}

impl Device {
    pub(super) fn new(way: Way, role: Role, router: usize, interface: &str, number: u32) -> Self {
        Self { way, role, router, interface: interface.to_owned(), number, programs: BpfPrograms::default() }
    }

    /// Attaches its programs; `has_root`: whether the device has a root discipline.
    pub(super) fn program(
        &mut self,
        router: &NetNs,
        experiment: &Experiment,
        has_root: bool,
        seed: Seed,
    ) -> Result<(), HostError> {
        let direction = experiment.path.direction(self.way);
        self.programs = router.run(|| {
            let index = link::index(&self.interface)?;
            match self.role {
                Role::Bottleneck => BpfPrograms::before_bottleneck(index, direction),
                Role::Propagation => BpfPrograms::before_propagation(index, direction, has_root, seed),
                Role::Port => Ok(BpfPrograms::default()),
            }
        })?;
        Ok(())
    }

    /// Its name in metrics: direction and role.
    pub(super) fn label(&self) -> String {
        let way = match self.way {
            Way::Down => "down",
            Way::Up => "up",
        };
        let role = match self.role {
            Role::Bottleneck => "bottleneck",
            Role::Propagation => "propagation",
            Role::Port => "port",
        };
        format!("{way}_{role}")
    }

    /// Its discipline, in one line; `None` where it has none.
    pub(super) fn describe(&self, router: &NetNs) -> Result<Option<String>, HostError> {
        let text = router.run(|| qdisc::describe(link::index(&self.interface)?))?;
        Ok((text != "none" && text != "noqueue").then(|| format!("{}: {text}", self.label().replace('_', " "))))
    }

    /// Its counters of dropped and marked packets, by metric name.
    pub(super) fn counts(&self, router: &NetNs) -> Result<Vec<(&'static str, u64)>, HostError> {
        let has_discipline = self.describe(router)?.is_some();
        router.run(|| {
            let index = link::index(&self.interface)?;
            let mut counts = self.programs.counts(index)?;
            // Where a link's program queues, the discipline only waits.
            if has_discipline && !self.programs.queues() {
                let found = qdisc::statistics(index)?;
                counts.push(("dropped_packets", found.root.drops));
                let marks = found.child.as_ref().and_then(|child| child.marks).or(found.root.marks);
                counts.extend(marks.map(|marks| ("marked_packets", marks)));
            }
            Ok(counts)
        })
    }
}
