//! Frames carried between two TUN devices, as a path says, by a thread for each direction.

use crate::direction::{Direction, Hooks, Progress};
use crate::error::LiveError;
use crate::per_way::PerWay;
use crate::site::spawn;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use thalweg_host::HostError;
use thalweg_host::tun::Tun;
use thalweg_model::{Path, Way};
use thalweg_units::Seed;

/// A path between two devices. What is still on it when it ends is lost.
#[derive(Debug)]
pub struct Wire {
    pub(crate) directions: PerWay<Arc<Direction>>,
    pub(crate) threads: Vec<JoinHandle<Result<(), HostError>>>,
}

impl Wire {
    /// Carries frames from now on, which is time 0 of the path's steps. `near` is the client's end.
    ///
    /// # Errors
    /// When the path asks for what is not emulated, or a thread cannot be started.
    pub fn start(path: &Path, seed: Seed, near: &Arc<Tun>, far: &Arc<Tun>) -> Result<Self, LiveError> {
        let mut wire = Self::new(path, seed)?;
        let PerWay { down, up } = wire.directions.clone();
        for (name, direction, from, to) in [("down", down, far, near), ("up", up, near, far)] {
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            wire.threads.push(spawn(name, move || direction.run(&from, &to, Hooks::default()))?);
        }
        Ok(wire)
    }

    /// A path that carries nothing yet.
    pub(crate) fn new(path: &Path, seed: Seed) -> Result<Self, LiveError> {
        let direction = |way: Way, salt| -> Result<_, LiveError> {
            Ok(Arc::new(Direction::new(path.direction(way), path.mtu, seed.derive(salt))??))
        };
        let directions = PerWay { down: direction(Way::Down, 0)?, up: direction(Way::Up, 1)? };
        Ok(Self { directions, threads: Vec::new() })
    }

    /// What the directions did until now.
    pub fn progress(&self) -> PerWay<Progress> {
        PerWay { down: self.directions.down.progress(), up: self.directions.up.progress() }
    }

    /// Ends it, and waits until nothing uses the devices.
    ///
    /// # Errors
    /// When a direction failed before.
    pub fn finish(mut self) -> Result<PerWay<Progress>, HostError> {
        self.end();
        for thread in self.threads.drain(..) {
            let failed = || HostError { act: "carry packets".to_owned(), source: io::Error::other("a thread failed") };
            thread.join().map_err(|_| failed())??;
        }
        Ok(self.progress())
    }

    fn end(&self) {
        self.directions.down.end();
        self.directions.up.end();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.end();
    }
}
