//! A device on the path: what it does, what is on it, and what that counted.

use super::programs::Programs;
use thalweg_host::netns::NetNs;
use thalweg_host::{HostError, link, qdisc};
use thalweg_model::{Experiment, Way};
use thalweg_units::Seed;

/// What a device on the path does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Rate and queue.
    Bottleneck,
    /// Delay, jitter, loss.
    Propagation,
    /// A port of a switch.
    Port,
}

/// A device on the path.
#[derive(Debug)]
pub(super) struct Shaped {
    pub(super) way: Way,
    pub(super) what: What,
    pub(super) router: usize,
    pub(super) device: String,
    /// Which client it is for.
    pub(super) number: u32,
    pub(super) programs: Programs,
}

impl Shaped {
    pub(super) fn new(way: Way, what: What, router: usize, device: &str, number: u32) -> Self {
        Self { way, what, router, device: device.to_owned(), number, programs: Programs::default() }
    }

    /// Puts its programs in place; `has_root` is whether a root discipline is.
    pub(super) fn program(
        &mut self,
        router: &NetNs,
        experiment: &Experiment,
        has_root: bool,
        seed: Seed,
    ) -> Result<(), HostError> {
        let direction = experiment.path.direction(self.way);
        self.programs = router.run(|| {
            let index = link::index(&self.device)?;
            match self.what {
                What::Bottleneck => Programs::before_bottleneck(index, direction),
                What::Propagation => Programs::before_propagation(index, direction, has_root, seed),
                What::Port => Ok(Programs::default()),
            }
        })?;
        Ok(())
    }

    /// Its name in figures: direction and place.
    pub(super) fn label(&self) -> String {
        let way = match self.way {
            Way::Down => "down",
            Way::Up => "up",
        };
        let what = match self.what {
            What::Bottleneck => "bottleneck",
            What::Propagation => "propagation",
            What::Port => "port",
        };
        format!("{way}_{what}")
    }

    /// Its discipline, in one line; `None` where it has none.
    pub(super) fn describe(&self, router: &NetNs) -> Result<Option<String>, HostError> {
        let text = router.run(|| qdisc::describe(link::index(&self.device)?))?;
        Ok((text != "none" && text != "noqueue").then(|| format!("{}: {text}", self.label().replace('_', " "))))
    }

    /// What it dropped and marked: a figure's name and a count, for each that it counts.
    pub(super) fn counts(&self, router: &NetNs) -> Result<Vec<(&'static str, u64)>, HostError> {
        let has_discipline = self.describe(router)?.is_some();
        router.run(|| {
            let index = link::index(&self.device)?;
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
