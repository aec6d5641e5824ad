//! Frames carried between two TUN devices, as a path says.

use crate::carrier::carry;
use crate::direction::{Direction, Hooks, Lane, Progress};
use crate::error::LiveError;
use crate::per_way::PerWay;
use crate::site::spawn;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::poll::Waker;
use thalweg_host::tun::Tun;
use thalweg_model::{Path, PathDirection, Way};
use thalweg_units::{Rate, Seed};

/// What a thread does.
pub(crate) type Thread = Box<dyn FnOnce() -> Result<(), HostError> + Send>;

/// One thread carries both directions up to this rate: it wakes once for a packet and for the acknowledgement that it reads. Above, and
/// where nothing bounds the rate, each direction has a thread.
const ONE_THREAD_MAX: Rate = Rate::from_bits_per_second(1_000_000_000);

/// A path between two devices. What is still on it when it ends is lost.
#[derive(Debug)]
pub struct Wire {
    pub(crate) directions: PerWay<Arc<Direction>>,
    epoch: Instant,
    threads: Vec<JoinHandle<Result<(), HostError>>>,
}

impl Wire {
    /// Carries frames from now on, which is time 0 of the path's steps. `near` is the client's end.
    ///
    /// # Errors
    /// When the path asks for what is not emulated, or a thread cannot be started.
    pub fn start(path: &Path, seed: Seed, near: &Arc<Tun>, far: &Arc<Tun>) -> Result<Self, LiveError> {
        let mut wire = Self::new(path, seed)?;
        let hooks = PerWay { down: Hooks::default(), up: Hooks::default() };
        wire.carry(near, far, hooks, spawn)?;
        Ok(wire)
    }

    /// A path that carries nothing yet. Its time 0 is now.
    pub(crate) fn new(path: &Path, seed: Seed) -> Result<Self, LiveError> {
        let (epoch, waker) = (Instant::now(), Arc::new(Waker::new()?));
        let is_one = [&path.down, &path.up].iter().all(|direction| is_slow(direction));
        let other = if is_one { Arc::clone(&waker) } else { Arc::new(Waker::new()?) };
        let direction = |way, salt, waker| {
            Direction::new(path.direction(way), path.mtu, seed.derive(salt), epoch, waker).map(Arc::new)
        };
        let directions = PerWay { down: direction(Way::Down, 0, waker)?, up: direction(Way::Up, 1, other)? };
        Ok(Self { directions, epoch, threads: Vec::new() })
    }

    /// Begins to carry frames; `start` starts a thread, in a namespace that it chooses.
    pub(crate) fn carry(
        &mut self,
        near: &Arc<Tun>,
        far: &Arc<Tun>,
        hooks: PerWay<Hooks>,
        start: impl Fn(&'static str, Thread) -> Result<JoinHandle<Result<(), HostError>>, HostError>,
    ) -> Result<(), HostError> {
        let PerWay { down, up } = &self.directions;
        let (waker, other) = (&down.waker, &up.waker);
        let (down, up) = (Lane::new(down, far, near, hooks.down), Lane::new(up, near, far, hooks.up));
        let threads = if Arc::ptr_eq(waker, other) {
            vec![("path", waker, vec![down, up])]
        } else {
            vec![("down", waker, vec![down]), ("up", other, vec![up])]
        };
        for (name, waker, lanes) in threads {
            let (waker, epoch) = (Arc::clone(waker), self.epoch);
            self.threads.push(start(name, Box::new(move || carry(lanes, &waker, epoch)))?);
        }
        Ok(())
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

/// Whether one thread carries a direction and the other.
fn is_slow(direction: &PathDirection) -> bool {
    let steps = direction.steps.iter().filter_map(|step| step.rate);
    let most = direction.rate.into_iter().chain(steps).max();
    direction.trace.is_some() || most.is_some_and(|most| most <= ONE_THREAD_MAX)
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.end();
    }
}
