//! Frames carried between the TUN devices of several hosts as a switch says, by one thread.
//!
//! One thread, since a frame of any host may find the buffer full of frames of the others: their order is what decides.

use crate::carrier::{BATCH_FRAMES, Carrier, HELD_MAX_BYTES, Turn, since};
use crate::crew::{Carried, Seat};
use crate::direction::{Lost, write};
use crate::error::LiveError;
use crate::frame::Frame;
use crate::frame_pool::{FramePool, Read};
use crate::lateness::Lateness;
use crate::per_way::PerWay;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::poll::Waker;
use thalweg_host::tun::Tun;
use thalweg_model::{Nic, Path, Way};
use thalweg_path::{Counters, PortCounters, Switch};
use thalweg_units::{Seed, Span};

/// The port of the server.
const SERVER: usize = 0;

/// A switch between the devices of several hosts. What is in it when it ends is lost.
#[derive(Debug)]
pub struct SwitchWire {
    shared: Arc<Shared>,
    carried: Option<Carried>,
}

/// What a switch did until now.
#[derive(Debug, Clone)]
pub struct SwitchProgress {
    /// Each port, the server's first.
    pub ports: Vec<PortCounters>,
    /// The wires to clients, and those from them.
    pub wires: PerWay<Counters>,
    /// How late frames reached clients, and how late the server.
    pub lateness: PerWay<Lateness>,
    /// What the emulator lost.
    pub lost: Lost,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    waker: Arc<Waker>,
    is_over: AtomicBool,
}

#[derive(Debug)]
struct State {
    switch: Switch<Arc<Frame>>,
    /// Time 0 of the switch.
    epoch: Instant,
    lateness: PerWay<Lateness>,
    lost: Lost,
}

/// A host's device, and the address by which others reach the host.
pub type Plug = (Arc<Tun>, IpAddr);

impl SwitchWire {
    /// Carries frames from now on, which is time 0 of the path's steps. The first of `hosts` is the server; the others are clients, each
    /// behind `path`. What is read of a host enters the switch no faster than `nic` sends.
    ///
    /// # Errors
    /// When the path asks for what is not emulated, or the thread cannot be started.
    pub fn start(
        asked: &thalweg_model::Switch,
        nic: Option<&Nic>,
        path: &Path,
        seed: Seed,
        hosts: Vec<Plug>,
    ) -> Result<Self, LiveError> {
        let clients = u32::try_from(hosts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let switch = Switch::new(asked, nic, path, clients, seed)?;
        let epoch = Instant::now();
        let state = State {
            switch,
            epoch,
            lateness: PerWay { down: Lateness::new(), up: Lateness::new() },
            lost: Lost::default(),
        };
        let seat = Seat::alone("switch")?;
        let (waker, is_over) = (Arc::clone(&seat.waker), AtomicBool::new(false));
        let shared = Arc::new(Shared { state: Mutex::new(state), waker, is_over });
        let carried = Some(seat.carry(Plugged { shared: Arc::clone(&shared), hosts }));
        Ok(Self { shared, carried })
    }

    /// What it did until now.
    pub fn progress(&self) -> SwitchProgress {
        let state = self.shared.state();
        let switch = &state.switch;
        SwitchProgress {
            ports: (0..switch.ports()).map(|port| switch.port(port)).collect(),
            wires: PerWay { down: switch.wires(Way::Down), up: switch.wires(Way::Up) },
            lateness: state.lateness.clone(),
            lost: state.lost,
        }
    }

    /// Ends it, and waits until nothing uses the devices.
    ///
    /// # Errors
    /// When it failed before.
    pub fn finish(mut self) -> Result<SwitchProgress, HostError> {
        self.shared.end();
        self.carried.take().map_or(Ok(()), Carried::wait)?;
        Ok(self.progress())
    }
}

impl Drop for SwitchWire {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves figures that are still worth reading.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}

/// A switch with the devices of its hosts.
struct Plugged {
    shared: Arc<Shared>,
    hosts: Vec<Plug>,
}

impl Carrier for Plugged {
    fn devices(&self) -> Vec<Arc<Tun>> {
        self.hosts.iter().map(|(tun, _)| Arc::clone(tun)).collect()
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Ordering::Relaxed)
    }

    fn turn(&mut self, readable: &mut [bool], pool: &mut FramePool) -> Result<Turn, HostError> {
        let mut state = self.shared.state();
        let has_released = state.release(&self.hosts, pool)?;
        for (port, waits) in readable.iter_mut().enumerate() {
            *waits = *waits && !state.take_in(port, &self.hosts, pool)?;
        }
        Ok(Turn::new(has_released, state.epoch, state.switch.poll_timeout()))
    }
}

impl State {
    fn now(&self) -> Span {
        since(self.epoch)
    }

    /// Hands over what has reached a host; returns whether anything has.
    fn release(&mut self, hosts: &[Plug], pool: &mut FramePool) -> Result<bool, HostError> {
        let mut any = false;
        let mut now = self.now();
        while let Some((port, departure)) = self.switch.poll_departure(now) {
            any = true;
            let way = if port == SERVER { Way::Up } else { Way::Down };
            let late = self.now().saturating_sub(departure.at);
            self.lateness.of(way).record(late);
            self.lost.refused += write(&departure, &hosts[port].0, None)?;
            pool.take_back(departure.data);
            now = self.now();
        }
        Ok(any)
    }

    /// Takes in frames of a host that wait; returns whether none is left.
    fn take_in(&mut self, from: usize, hosts: &[Plug], pool: &mut FramePool) -> Result<bool, HostError> {
        for _ in 0..BATCH_FRAMES {
            let frame = match pool.read(&hosts[from].0)? {
                Read::Empty => return Ok(true),
                Read::Foreign => continue,
                Read::Frame(frame) => frame,
            };
            let address = frame.destination();
            let to = hosts.iter().position(|(_, own)| *own == address);
            match to {
                // To nobody here, such as a group: no host is behind the port that it would leave by.
                None => pool.take_back(frame),
                Some(_) if self.switch.held_bytes() > HELD_MAX_BYTES => {
                    self.lost.overflow += 1;
                    pool.take_back(frame);
                }
                Some(to) => {
                    let packet = frame.packet(Arc::clone(&frame));
                    self.switch.handle_packet(self.now(), (from, to), packet);
                }
            }
        }
        Ok(false)
    }
}
