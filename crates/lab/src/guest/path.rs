//! The path: its disciplines and programs put in place, and changed with time.

use super::device::{Device, Role};
use super::disciplines::{bottleneck, propagation};
use super::hosts::Topology;
use super::links;
use std::collections::VecDeque;
use thalweg_host::{HostError, link, qdisc};
use thalweg_model::{Experiment, PathDirection, Way};
use thalweg_units::{Seed, Span};

/// Puts every device's discipline and programs in place.
pub(super) fn shape(topology: &mut Topology, experiment: &Experiment, seed: Seed) -> Result<(), HostError> {
    let mtu = experiment.path.mtu;
    let mut devices = std::mem::take(&mut topology.devices);
    for one in &mut devices {
        let direction = experiment.path.direction(one.way);
        let (root, child) = match one.role {
            Role::Bottleneck => bottleneck(direction, mtu),
            Role::Propagation => (propagation(direction, seed_of(seed, one)), None),
            Role::Port => (None, None),
        };
        let router = topology.router(one.router);
        router.run(|| {
            let index = link::index(&one.interface)?;
            root.iter().try_for_each(|root| qdisc::attach(index, root))?;
            child.iter().try_for_each(|child| qdisc::attach_child(index, child))
        })?;
        one.program(router, experiment, root.is_some(), seed_of(seed, one))?;
    }
    topology.devices = devices;
    links::attach(topology, experiment)
}

/// The changes of a path with time.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    steps: VecDeque<Change>,
    mtu: u16,
    seed: Seed,
}

/// One change of one direction.
#[derive(Debug)]
struct Change {
    at: Span,
    /// Which of the direction's changes it is, from 1.
    number: u64,
    way: Way,
    /// Whether rate or propagation change. The other is left alone: a token bucket that is set to its own rate again is full.
    changed: [bool; 2],
    /// What the direction is from then on.
    direction: PathDirection,
}

impl Schedule {
    /// Reads the steps of both directions.
    pub(super) fn of(experiment: &Experiment, seed: Seed) -> Self {
        let mut steps = Vec::new();
        for way in [Way::Down, Way::Up] {
            let mut now = experiment.path.direction(way).clone();
            for (number, step) in (1..).zip(now.steps.clone()) {
                let changed = [step.rate.is_some(), step.delay.is_some() || step.loss.is_some()];
                now.rate = step.rate.or(now.rate);
                now.delay = step.delay.unwrap_or(now.delay);
                now.loss = step.loss.unwrap_or(now.loss);
                steps.push(Change { at: step.at, number, way, changed, direction: now.clone() });
            }
        }
        steps.sort_by_key(|change| change.at);
        Self { steps: steps.into(), mtu: experiment.path.mtu, seed }
    }

    /// When the next change is due.
    pub(super) fn next(&self) -> Option<Span> {
        self.steps.front().map(|change| change.at)
    }

    /// Makes the changes that are due at `at`.
    pub(super) fn step(&mut self, at: Span, topology: &Topology) -> Result<(), HostError> {
        while self.next().is_some_and(|next| next <= at) {
            let Some(Change { number, way, changed, direction, .. }) = self.steps.pop_front() else { break };
            for device in topology.devices.iter().filter(|device| device.way == way) {
                if changed[1] {
                    topology.router(device.router).run(|| device.programs.set_delay(direction.delay))?;
                }
                let root = match device.role {
                    Role::Bottleneck if changed[0] => bottleneck(&direction, self.mtu).0,
                    // The kernel begins its random numbers anew: not with those that were used.
                    Role::Propagation if changed[1] => {
                        propagation(&direction, seed_of(self.seed, device).derive(number))
                    }
                    _ => None,
                };
                topology
                    .router(device.router)
                    .run(|| root.iter().try_for_each(|root| qdisc::change(link::index(&device.interface)?, root)))?;
            }
        }
        Ok(())
    }
}

/// Each device's random numbers are its own.
fn seed_of(seed: Seed, device: &Device) -> Seed {
    let way = match device.way {
        Way::Down => 1,
        Way::Up => 2,
    };
    let own = seed.derive(way);
    if device.number <= 1 { own } else { own.derive(u64::from(device.number)) }
}
