//! Frames carried between two TUN devices, as a path says.

use crate::carriers::Carriers;
use crate::crew::{Carried, Seat};
use crate::direction::{Direction, Hooks, Lane, Progress};
use crate::error::LiveError;
use crate::handle::Handle;
use crate::per_way::PerWay;
use std::sync::Arc;
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::tun::Tun;
use thalweg_model::{Path, PathDirection, Way};
use thalweg_path::{OneWay, Unsupported};
use thalweg_units::{Rate, Seed};

/// One thread carries both directions up to this rate, and those of other paths: it wakes once for a packet and for the acknowledgement that it
/// reads. Above, and where nothing bounds the rate, each direction has a thread of its own.
const SHARED_MAX: Rate = Rate::from_bits_per_second(1_000_000_000);

/// A path between two devices. What is still on it when it ends is lost.
#[derive(Debug)]
pub struct Wire {
    pub(crate) directions: PerWay<Arc<Direction>>,
    seats: PerWay<Seat>,
    carried: Vec<Carried>,
}

impl Wire {
    /// Carries frames from now on, which is time 0 of the path's steps. `near` is the client's end.
    ///
    /// # Errors
    /// When the path asks for what is not emulated, or a thread cannot be started.
    pub fn start(
        path: &Path,
        seed: Seed,
        carriers: &Carriers,
        near: &Arc<Tun>,
        far: &Arc<Tun>,
    ) -> Result<Self, LiveError> {
        let mut wire = Self::new(path, seed, carriers)?;
        wire.carry(near, far, PerWay { down: Hooks::default(), up: Hooks::default() });
        Ok(wire)
    }

    /// Refuses a path that cannot be emulated.
    pub(crate) fn check(path: &Path) -> Result<(), Unsupported> {
        [&path.down, &path.up]
            .into_iter()
            .try_for_each(|asked| OneWay::<()>::new(asked, path.mtu, Seed::new(0)).map(drop))
    }

    /// A path that carries nothing yet. Its time 0 is now.
    pub(crate) fn new(path: &Path, seed: Seed, carriers: &Carriers) -> Result<Self, LiveError> {
        let is_slow = [&path.down, &path.up].iter().all(|direction| is_slow(direction));
        let seats = if is_slow {
            let seat = carriers.seat()?;
            PerWay { down: seat.clone(), up: seat }
        } else {
            PerWay { down: Seat::alone("down")?, up: Seat::alone("up")? }
        };
        let epoch = Instant::now();
        let direction = |way, salt, seat: &Seat| {
            let waker = Arc::clone(&seat.waker);
            Direction::new(path.direction(way), path.mtu, seed.derive(salt), epoch, waker).map(Arc::new)
        };
        let directions = PerWay { down: direction(Way::Down, 0, &seats.down)?, up: direction(Way::Up, 1, &seats.up)? };
        Ok(Self { directions, seats, carried: Vec::new() })
    }

    /// Begins to carry frames.
    pub(crate) fn carry(&mut self, near: &Arc<Tun>, far: &Arc<Tun>, hooks: PerWay<Hooks>) {
        let PerWay { down, up } = &self.directions;
        let (down, up) = (Lane::new(down, far, near, hooks.down), Lane::new(up, near, far, hooks.up));
        let seats = &self.seats;
        self.carried = if Arc::ptr_eq(&seats.down.waker, &seats.up.waker) {
            vec![seats.down.carry(vec![down, up])]
        } else {
            vec![seats.down.carry(vec![down]), seats.up.carry(vec![up])]
        };
    }

    /// What the directions did until now.
    pub fn progress(&self) -> PerWay<Progress> {
        PerWay { down: self.directions.down.progress(), up: self.directions.up.progress() }
    }

    /// Something that can look at it, and change it, from another thread.
    pub fn handle(&self) -> Handle {
        Handle { directions: self.directions.clone() }
    }

    /// Ends it, and waits until nothing uses the devices.
    ///
    /// # Errors
    /// When a direction failed before.
    pub fn finish(mut self) -> Result<PerWay<Progress>, HostError> {
        self.end();
        self.carried.drain(..).try_for_each(Carried::wait)?;
        Ok(self.progress())
    }

    fn end(&self) {
        self.directions.down.end();
        self.directions.up.end();
    }
}

/// Whether a thread that carries a direction can carry others.
fn is_slow(direction: &PathDirection) -> bool {
    let steps = direction.steps.iter().filter_map(|step| step.rate);
    let most = direction.rate.into_iter().chain(steps).max();
    direction.trace.is_some() || most.is_some_and(|most| most <= SHARED_MAX)
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.end();
    }
}
