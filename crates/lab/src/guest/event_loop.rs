//! The event loop of a run: sockets, timers, recording and the path's schedule, in one thread.
//!
//! The loop sleeps in `epoll_wait`; between two events no clock is read, so virtual time stands still while it computes.

use super::clock::{self, minus, plus};
use super::hosts::{HostId, Topology};
use super::lines::{self, CONGESTION, CONGESTION_SYSCTL};
use super::path::Schedule;
use super::recorder::{Packets, Samples};
use super::tick_lateness::TickLateness;
use super::timer::{clear, set_time, timer};
use crate::plan::{Clock, PROGRESS_MARK, Plan};
use rustix::event::epoll;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use thalweg_host::HostError;
use thalweg_host::cpu_time::CpuTime;
use thalweg_host::socket::{Tcp, Udp};
use thalweg_model::{self as model, HostSettings, LiveReport, Metric, Metrics, Side, SocketSettings};
use thalweg_units::Span;

const WORK_TIMER: u64 = u64::MAX;
const PROGRESS_TIMER: u64 = u64::MAX - 1;
/// A ring with many packets; all are emptied at every wake-up.
const RING: u64 = u64::MAX - 2;
const SAMPLES: u64 = u64::MAX - 3;
const DRAIN_TIMER: u64 = u64::MAX - 4;
/// How often rings are emptied at least. Samples come with timer interrupts of their own; without these wake-ups a run that is only
/// captured would be another run than it was, as the kernel counts jiffies when timers go off.
const DRAIN_EVERY: Span = Span::from_millis(10);
const PROGRESS_EVERY: Span = Span::from_millis(1_000);

/// Index of a descriptor that the loop watches.
pub(super) type Key = usize;

/// An event of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The descriptor can be read or written.
    Ready { key: Key, readable: bool, writable: bool },
    /// A timer of the workload has expired.
    Timer { token: u64 },
    /// The workload is to begin.
    Start,
}

struct Slot {
    watched: Watched,
    host: HostId,
    owner: usize,
}

/// A descriptor in the loop.
enum Watched {
    Connection {
        tcp: Tcp,
        /// By which its samples are ended.
        sampled: Option<u64>,
    },
    Listener(Tcp),
    Udp(Udp),
    /// Another descriptor of a workload, such as a pidfd.
    Other(OwnedFd),
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TimerKind {
    Token(u64),
    Start,
}

/// Owner of the path's own schedule, in place of a workload.
const PATH_SCHEDULE: usize = usize::MAX;

/// The loop and all that it watches.
pub(super) struct EventLoop {
    pub(super) topology: Topology,
    client: SocketSettings,
    server: SocketSettings,
    /// Of the hosts of cross traffic.
    others: SocketSettings,
    epoll: OwnedFd,
    slots: Vec<Option<Slot>>,
    /// Connections of each host so far, for the samples.
    connections: Vec<u32>,
    timers: BinaryHeap<Reverse<(Span, usize, TimerKind)>>,
    armed: Option<Span>,
    work_timer: OwnedFd,
    drain_timer: Option<OwnedFd>,
    progress_timer: OwnedFd,
    pending: VecDeque<(usize, Event)>,
    packets: Option<Packets>,
    samples: Option<Samples>,
    schedule: Schedule,
    sockets: BTreeMap<Side, BTreeMap<String, String>>,
    began: Span,
    /// Where time is real.
    ticks: Option<TickLateness>,
    /// The workload that runs now, which owns what is opened.
    pub(super) current: usize,
}

impl EventLoop {
    /// Makes the loop and begins to record.
    pub(super) fn open(topology: Topology, plan: &Plan, schedule: Schedule, folder: &Path) -> Result<Self, HostError> {
        let packets = Packets::start(&topology, plan, folder)?;
        let epoll = call(epoll::create(epoll::CreateFlags::CLOEXEC), "make an epoll")?;
        let (work_timer, progress_timer) = (timer()?, timer()?);
        add(&epoll, &work_timer, WORK_TIMER, epoll::EventFlags::IN)?;
        add(&epoll, &progress_timer, PROGRESS_TIMER, epoll::EventFlags::IN)?;
        let is_real = plan.clock == Clock::Real;
        // Only a lab kernel's rings do not wake the loop for each packet.
        for ring in packets.iter().filter(|_| !is_real).flat_map(Packets::rings) {
            add(&epoll, ring, RING, epoll::EventFlags::IN)?;
        }
        let drains = is_real || packets.is_some() && plan.options.samples.is_none();
        let drain_timer = drains.then(timer).transpose()?;
        if let Some(timer) = &drain_timer {
            add(&epoll, timer, DRAIN_TIMER, epoll::EventFlags::IN)?;
        }
        let began = clock::monotonic();
        set_time(&progress_timer, plus(began, PROGRESS_EVERY), PROGRESS_EVERY)?;
        if let Some(timer) = &drain_timer {
            set_time(timer, plus(began, DRAIN_EVERY), DRAIN_EVERY)?;
        }
        let samples = Samples::start(plan, folder, began)?;
        if let Some(samples) = &samples {
            add(&epoll, samples.sampler(), SAMPLES, epoll::EventFlags::IN)?;
        }
        let connections = vec![0; topology.all()];
        let mut opened = Self {
            topology,
            client: socket_settings(&plan.experiment.client, plan.clock),
            server: socket_settings(&plan.experiment.server, plan.clock),
            others: socket_settings(&HostSettings::default(), plan.clock),
            epoll,
            slots: Vec::new(),
            connections,
            timers: BinaryHeap::new(),
            armed: None,
            work_timer,
            drain_timer,
            progress_timer,
            pending: VecDeque::new(),
            packets,
            samples,
            schedule,
            sockets: BTreeMap::new(),
            began,
            ticks: is_real.then(|| TickLateness::new(plus(began, DRAIN_EVERY), DRAIN_EVERY)),
            current: PATH_SCHEDULE,
        };
        if let Some(at) = opened.schedule.next() {
            opened.timers.push(Reverse((at, PATH_SCHEDULE, TimerKind::Start)));
        }
        Ok(opened)
    }

    /// Time since the loop was opened.
    pub(super) fn now(&self) -> Span {
        minus(clock::monotonic(), self.began)
    }

    /// The clock of the day at the loop's opening: the clock of the kernel's packet timestamps.
    pub(super) fn epoch(&self) -> Span {
        minus(clock::real_time(), self.now())
    }

    /// What is set on the sockets of a host.
    fn settings(&self, host: HostId) -> SocketSettings {
        match self.topology.host(host).side {
            Some(Side::Client) => self.client.clone(),
            Some(Side::Server) => self.server.clone(),
            None => self.others.clone(),
        }
    }

    /// The options the host's sockets get, with a congestion control of its own.
    pub(super) fn settings_with(&self, host: HostId, congestion: Option<&str>) -> SocketSettings {
        let mut settings = self.settings(host);
        settings.congestion = congestion.map(str::to_owned).or(settings.congestion);
        settings
    }

    /// Makes a host listen on a port.
    pub(super) fn listen(&mut self, host: HostId, port: u16) -> Result<Key, HostError> {
        let settings = self.settings(host);
        self.listen_with(host, port, &settings)
    }

    /// Makes a host listen on a port with options of its own.
    pub(super) fn listen_with(&mut self, host: HostId, port: u16, settings: &SocketSettings) -> Result<Key, HostError> {
        let tcp = self.topology.host(host).ns.run(|| Tcp::listen(port, settings))?;
        self.add_watched(Watched::Listener(tcp), host, epoll::EventFlags::IN)
    }

    /// Makes a host begin to connect; its socket becomes writable when it is connected, or may take data for the SYN.
    pub(super) fn connect(&mut self, from: HostId, to: HostId, port: u16) -> Result<Key, HostError> {
        let settings = self.settings(from);
        self.connect_with(from, to, port, &settings)
    }

    /// Makes a host begin to connect with options of its own.
    pub(super) fn connect_with(
        &mut self,
        from: HostId,
        to: HostId,
        port: u16,
        settings: &SocketSettings,
    ) -> Result<Key, HostError> {
        let address = SocketAddrV4::new(self.topology.host(to).address, port);
        let tcp = self.topology.host(from).ns.run(|| Tcp::connect(address, settings))?;
        self.add_connection(tcp, from, epoll::EventFlags::OUT)
    }

    /// Takes a connection that waits; it is watched for reading.
    pub(super) fn accept(&mut self, listener: Key) -> Result<Option<Key>, HostError> {
        let host = self.at(listener).host;
        match self.tcp(listener).accept()? {
            Some(tcp) => {
                let key = self.add_connection(tcp, host, epoll::EventFlags::IN)?;
                self.note_socket(key)?;
                Ok(Some(key))
            }
            None => Ok(None),
        }
    }

    /// Says how a connection attempt ended.
    pub(super) fn connected(&mut self, key: Key) -> Result<(), HostError> {
        self.tcp(key).connected()?;
        self.note_socket(key)
    }

    fn add_connection(&mut self, tcp: Tcp, host: HostId, flags: epoll::EventFlags) -> Result<Key, HostError> {
        let number = self.connections[host];
        self.connections[host] += 1;
        let key = self.free_key();
        let name = &self.topology.host(host).name;
        let sampled = self.samples.as_mut().map(|samples| samples.add(key, name, number, &tcp)).transpose()?;
        self.add_watched(Watched::Connection { tcp, sampled }, host, flags)
    }

    /// Watches a UDP socket, for reading.
    pub(super) fn add_udp(&mut self, udp: Udp, host: HostId) -> Result<Key, HostError> {
        self.add_watched(Watched::Udp(udp), host, epoll::EventFlags::IN)
    }

    /// Watches another descriptor, for reading.
    pub(super) fn add_descriptor(&mut self, fd: OwnedFd, host: HostId) -> Result<Key, HostError> {
        self.add_watched(Watched::Other(fd), host, epoll::EventFlags::IN)
    }

    fn add_watched(&mut self, watched: Watched, host: HostId, flags: epoll::EventFlags) -> Result<Key, HostError> {
        let key = self.free_key();
        match &watched {
            Watched::Connection { tcp, .. } | Watched::Listener(tcp) => add(&self.epoll, tcp, key as u64, flags)?,
            Watched::Udp(udp) => add(&self.epoll, udp, key as u64, flags)?,
            Watched::Other(fd) => add(&self.epoll, fd, key as u64, flags)?,
        }
        let slot = Some(Slot { watched, host, owner: self.current });
        if key == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.slots[key] = slot;
        }
        Ok(key)
    }

    fn free_key(&self) -> Key {
        self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len())
    }

    fn at(&self, key: Key) -> &Slot {
        self.slots[key].as_ref().expect("invariant: a workload uses no key that it closed")
    }

    /// The socket at `key`.
    pub(super) fn tcp(&self, key: Key) -> &Tcp {
        match &self.at(key).watched {
            Watched::Connection { tcp, .. } | Watched::Listener(tcp) => tcp,
            Watched::Udp(_) | Watched::Other(_) => {
                unreachable!("invariant: a workload knows which of its keys are TCP sockets")
            }
        }
    }

    /// The UDP socket at `key`.
    pub(super) fn udp(&self, key: Key) -> &Udp {
        match &self.at(key).watched {
            Watched::Udp(udp) => udp,
            _ => unreachable!("invariant: a workload knows which of its keys are UDP sockets"),
        }
    }

    /// A connection's own end, as its peer's [`EventLoop::peer`].
    pub(super) fn local(&self, key: Key) -> Result<SocketAddrV4, HostError> {
        address(rustix::net::getsockname(self.tcp(key)), "read a socket's own address")
    }

    /// A connection's other end.
    pub(super) fn peer(&self, key: Key) -> Result<SocketAddrV4, HostError> {
        let peer = rustix::net::getpeername(self.tcp(key)).and_then(|peer| peer.ok_or(rustix::io::Errno::NOTCONN));
        address(peer, "read a socket's peer")
    }

    /// Chooses what to wait for.
    pub(super) fn watch(&self, key: Key, read: bool, write: bool) -> Result<(), HostError> {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, read);
        flags.set(epoll::EventFlags::OUT, write);
        call(epoll::modify(&self.epoll, self.tcp(key), epoll::EventData::new_u64(key as u64), flags), "change an epoll")
    }

    /// Closes what is at `key`; a last sample of a connection is taken first.
    pub(super) fn close_socket(&mut self, key: Key) -> Result<(), HostError> {
        if let Some(slot) = self.slots[key].take() {
            if let (Some(samples), Watched::Connection { sampled: Some(id), .. }) = (&mut self.samples, &slot.watched) {
                samples.remove(*id)?;
            }
            // The key may be used again before the loop is entered: drop what it still held.
            self.pending.retain(|(_, event)| !matches!(event, Event::Ready { key: other, .. } if *other == key));
        }
        Ok(())
    }

    /// Asks for a [`Event::Timer`] with `token` at a time since the loop was opened.
    pub(super) fn wake_at(&mut self, at: Span, token: u64) {
        self.timers.push(Reverse((at, self.current, TimerKind::Token(token))));
    }

    /// Asks for a [`Event::Start`] at a time since the loop was opened.
    pub(super) fn start_at(&mut self, at: Span) {
        self.timers.push(Reverse((at, self.current, TimerKind::Start)));
    }

    /// Waits for the next event and returns it with its owner; meanwhile records, changes the path and reports progress.
    pub(super) fn next(&mut self, done: impl Fn(Span) -> f64) -> Result<(usize, Event), HostError> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            self.arm()?;
            let mut events =
                [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 64];
            let count = match epoll::wait(&self.epoll, &mut events, None) {
                Err(rustix::io::Errno::INTR) => 0,
                other => call(other, "wait for events")?,
            };
            if let Some(packets) = &mut self.packets {
                packets.drain()?;
            }
            for event in &events[..count] {
                let flags = event.flags;
                match event.data.u64() {
                    WORK_TIMER => self.expire()?,
                    RING => {}
                    DRAIN_TIMER => self.note_tick(),
                    SAMPLES => self.samples.as_mut().map_or(Ok(()), Samples::drain)?,
                    PROGRESS_TIMER => self.report_progress(&done),
                    key => {
                        let Some(Some(slot)) = self.slots.get(key as Key) else { continue };
                        let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
                        let readable = broken || flags.contains(epoll::EventFlags::IN);
                        let writable = broken || flags.contains(epoll::EventFlags::OUT);
                        let ready = Event::Ready { key: key as Key, readable, writable };
                        self.pending.push_back((slot.owner, ready));
                    }
                }
            }
        }
    }

    /// Sets the timer to the earliest of the timers.
    fn arm(&mut self) -> Result<(), HostError> {
        let first = self.timers.peek().map(|Reverse((at, ..))| *at);
        if first != self.armed {
            if let Some(at) = first {
                // A time of exactly zero would disarm it.
                set_time(&self.work_timer, plus(self.began, at).max(Span::from_nanos(1)), Span::ZERO)?;
            }
            self.armed = first;
        }
        Ok(())
    }

    /// Queues the event of each expired timer: those up to the one that the descriptor was set to.
    fn expire(&mut self) -> Result<(), HostError> {
        clear(&self.work_timer);
        let Some(armed) = self.armed.take() else { return Ok(()) };
        while let Some(Reverse((at, owner, kind))) = self.timers.peek().copied().filter(|of| of.0.0 <= armed) {
            self.timers.pop();
            match kind {
                _ if owner == PATH_SCHEDULE => {
                    self.schedule.step(at, &self.topology)?;
                    if let Some(next) = self.schedule.next() {
                        self.timers.push(Reverse((next, PATH_SCHEDULE, TimerKind::Start)));
                    }
                }
                TimerKind::Token(token) => self.pending.push_back((owner, Event::Timer { token })),
                TimerKind::Start => self.pending.push_back((owner, Event::Start)),
            }
        }
        Ok(())
    }

    fn note_tick(&mut self) {
        let count = self.drain_timer.as_ref().map_or(0, clear);
        if let Some(ticks) = &mut self.ticks {
            ticks.note(clock::monotonic(), count);
        }
    }

    /// How true a run in real time was, and what it cost since this thread had taken `before`; the figures go to `metrics`.
    pub(super) fn live_report(
        &self,
        path: &model::Path,
        before: CpuTime,
        metrics: &mut Metrics,
    ) -> Result<LiveReport, HostError> {
        let (carried, lost) = (self.topology.fidelity()?, self.topology.lost_by_links()?);
        let mut verdict = lines::report(carried, lost, before, metrics);
        if let Some(ticks) = &self.ticks {
            metrics.insert("programs_late_us".to_owned(), Metric::One(ticks.p99().as_nanos() as f64 / 1e3));
            verdict.faults.extend(ticks.fault(path.rtt()));
            verdict.faithful = verdict.faults.is_empty();
        }
        Ok(LiveReport { verdict, skipped: self.topology.skipped.clone() })
    }

    fn report_progress(&self, done: &impl Fn(Span) -> f64) {
        clear(&self.progress_timer);
        let now = self.now();
        let line = format!("{PROGRESS_MARK} {:.3} {:.4}\n", now.as_secs_f64(), done(now).clamp(0.0, 1.0));
        // The keeper on the host watches these lines; one that is lost matters to nobody.
        let _ = io::stdout().write_all(line.as_bytes());
    }

    /// Reads the options of a connection back, unless an earlier one of that side was.
    fn note_socket(&mut self, key: Key) -> Result<(), HostError> {
        if let Some(side) = self.topology.host(self.at(key).host).side
            && !self.sockets.contains_key(&side)
        {
            let options = self.tcp(key).read_back()?;
            self.sockets.insert(side, options);
        }
        Ok(())
    }

    /// Options of the first connection of a side, as the kernel has them.
    pub(super) fn socket_options(&self, side: Side) -> BTreeMap<String, String> {
        self.sockets.get(&side).cloned().unwrap_or_default()
    }

    /// Ends recording; returns seconds since boot, or in real time since it began, and packets the capture lost.
    pub(super) fn close(mut self) -> Result<(f64, u32), HostError> {
        // The capture ends with the workloads: that the machine takes their connections down is nothing that a program did.
        let dropped = self.packets.take().map_or(Ok(0), Packets::finish)?;
        for key in 0..self.slots.len() {
            self.close_socket(key)?;
        }
        self.samples.map_or(Ok(()), Samples::finish)?;
        let since = self.ticks.as_ref().map_or(Span::ZERO, |_| self.began);
        Ok((minus(clock::monotonic(), since).as_secs_f64(), dropped))
    }
}

/// What is set on a host's sockets. In real time their congestion control is set, too: a namespace's default is the host's, or one of
/// those that anybody may use. Source: net/ipv4/tcp_cong.c, `tcp_set_default_congestion_control`.
fn socket_settings(host: &HostSettings, clock: Clock) -> SocketSettings {
    let mut settings = host.socket.clone();
    if clock == Clock::Real {
        let default = host.sysctl.get(CONGESTION_SYSCTL).map_or(CONGESTION, String::as_str);
        settings.congestion.get_or_insert_with(|| default.to_owned());
    }
    settings
}

fn address(of: rustix::io::Result<rustix::net::SocketAddrAny>, act: &str) -> Result<SocketAddrV4, HostError> {
    let any = call(of, act)?;
    call(SocketAddrV4::try_from(any), act)
}

fn add(epoll: &OwnedFd, fd: impl AsFd, key: u64, flags: epoll::EventFlags) -> Result<(), HostError> {
    call(epoll::add(epoll, fd, epoll::EventData::new_u64(key), flags), "add to an epoll")
}

fn call<T>(result: rustix::io::Result<T>, act: &str) -> Result<T, HostError> {
    result.map_err(|errno| HostError { act: act.to_owned(), source: errno.into() })
}
