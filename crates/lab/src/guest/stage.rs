//! Where workloads act: their sockets, their clock, their timers, and the loop that waits for them.
//!
//! The loop sleeps in `epoll_wait`; between two events no clock is read, so virtual time stands still while it computes.

use super::clock::{self, minus, plus};
use super::hosts::{HostId, Topology};
use super::path::Schedule;
use super::record::{Packets, Samples};
use crate::plan::{PROGRESS_MARK, RunOptions};
use rustix::event::epoll;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use thalweg_host::HostError;
use thalweg_host::socket::{Tcp, Udp};
use thalweg_model::{Experiment, HostSettings, Side, SocketSettings};
use thalweg_units::Span;

const WORK_TIMER: u64 = u64::MAX;
const RECORD_TIMER: u64 = u64::MAX - 1;
const PROGRESS_TIMER: u64 = u64::MAX - 2;
/// How often rings are emptied where no samples set the pace.
const DRAIN_EVERY: Span = Span::from_millis(10);
const PROGRESS_EVERY: Span = Span::from_millis(1_000);

/// A place on the stage: whatever is watched there.
pub(super) type Key = usize;

/// Something happened to an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// What is at a place can be read or written.
    Ready { key: Key, readable: bool, writable: bool },
    /// A moment it asked for has come.
    Timer { token: u64 },
    /// Its start has come.
    Call,
}

struct Place {
    thing: Thing,
    host: HostId,
    actor: usize,
}

/// What is watched at a place.
enum Thing {
    Connection {
        tcp: Tcp,
        number: u32,
    },
    Listener(Tcp),
    Udp(Udp),
    /// Whatever else an actor opened: a program's end.
    Other(OwnedFd),
}

/// What a moment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Token(u64),
    Call,
}

/// Actor that the stage's own moments belong to.
const NOBODY: usize = usize::MAX;

/// The hosts' sockets and everything that watches them.
pub(super) struct Stage {
    pub(super) topology: Topology,
    client: HostSettings,
    server: HostSettings,
    epoll: OwnedFd,
    places: Vec<Option<Place>>,
    /// Connections of each host so far, for the samples.
    connections: Vec<u32>,
    moments: BinaryHeap<Reverse<(Span, usize, Moment)>>,
    armed: Option<Span>,
    work_timer: OwnedFd,
    record_timer: Option<OwnedFd>,
    progress_timer: OwnedFd,
    pending: VecDeque<(usize, Event)>,
    packets: Option<Packets>,
    samples: Option<Samples>,
    schedule: Schedule,
    sockets: BTreeMap<Side, BTreeMap<String, String>>,
    began: Span,
    /// The actor whose turn it is: what is opened now is its own.
    pub(super) acting: usize,
}

impl Stage {
    /// Makes the event loop and begins to record.
    pub(super) fn open(
        topology: Topology,
        experiment: &Experiment,
        schedule: Schedule,
        options: RunOptions,
        folder: &Path,
    ) -> Result<Self, HostError> {
        let packets = Packets::start(&topology, options, folder)?;
        let samples = Samples::start(options, folder)?;
        let epoll = call(epoll::create(epoll::CreateFlags::CLOEXEC), "make an epoll")?;
        let (work_timer, progress_timer) = (timer()?, timer()?);
        add(&epoll, &work_timer, WORK_TIMER, epoll::EventFlags::IN)?;
        add(&epoll, &progress_timer, PROGRESS_TIMER, epoll::EventFlags::IN)?;
        let record_timer = if packets.is_some() || samples.is_some() {
            let made = timer()?;
            add(&epoll, &made, RECORD_TIMER, epoll::EventFlags::IN)?;
            Some(made)
        } else {
            None
        };
        let began = clock::monotonic();
        set_time(&progress_timer, plus(began, PROGRESS_EVERY), PROGRESS_EVERY)?;
        if let Some(timer) = &record_timer {
            let every = options.samples.unwrap_or(DRAIN_EVERY);
            set_time(timer, plus(began, every), every)?;
        }
        let connections = vec![0; topology.all()];
        let mut stage = Self {
            topology,
            client: experiment.client.clone(),
            server: experiment.server.clone(),
            epoll,
            places: Vec::new(),
            connections,
            moments: BinaryHeap::new(),
            armed: None,
            work_timer,
            record_timer,
            progress_timer,
            pending: VecDeque::new(),
            packets,
            samples,
            schedule,
            sockets: BTreeMap::new(),
            began,
            acting: NOBODY,
        };
        if let Some(at) = stage.schedule.next() {
            stage.moments.push(Reverse((at, NOBODY, Moment::Call)));
        }
        Ok(stage)
    }

    /// Time since the stage was opened.
    pub(super) fn now(&self) -> Span {
        minus(clock::monotonic(), self.began)
    }

    /// The clock of the day at the stage's opening: what kernels stamp packets with.
    pub(super) fn epoch(&self) -> Span {
        minus(clock::real_time(), self.now())
    }

    /// What is set on the sockets of a host.
    fn settings(&self, host: HostId) -> SocketSettings {
        match self.topology.host(host).side {
            Some(Side::Client) => self.client.socket.clone(),
            Some(Side::Server) => self.server.socket.clone(),
            None => SocketSettings::default(),
        }
    }

    /// Whether options were asked for on either side's sockets.
    pub(super) fn has_socket_settings(&self) -> bool {
        [&self.client, &self.server].iter().any(|settings| settings.socket != SocketSettings::default())
    }

    /// The options the acting host's sockets get, with a congestion control of its own.
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
        self.place(Thing::Listener(tcp), host, epoll::EventFlags::IN)
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
        self.place_connection(tcp, from, epoll::EventFlags::OUT)
    }

    /// Takes a connection that waits; it is watched for reading.
    pub(super) fn accept(&mut self, listener: Key) -> Result<Option<Key>, HostError> {
        let host = self.at(listener).host;
        match self.tcp(listener).accept()? {
            Some(tcp) => {
                let key = self.place_connection(tcp, host, epoll::EventFlags::IN)?;
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

    fn place_connection(&mut self, tcp: Tcp, host: HostId, flags: epoll::EventFlags) -> Result<Key, HostError> {
        let number = self.connections[host];
        self.connections[host] += 1;
        self.place(Thing::Connection { tcp, number }, host, flags)
    }

    /// Watches a UDP socket, for reading.
    pub(super) fn place_udp(&mut self, udp: Udp, host: HostId) -> Result<Key, HostError> {
        self.place(Thing::Udp(udp), host, epoll::EventFlags::IN)
    }

    /// Watches something of an actor's own, for reading.
    pub(super) fn place_other(&mut self, fd: OwnedFd, host: HostId) -> Result<Key, HostError> {
        self.place(Thing::Other(fd), host, epoll::EventFlags::IN)
    }

    fn place(&mut self, thing: Thing, host: HostId, flags: epoll::EventFlags) -> Result<Key, HostError> {
        let key = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        match &thing {
            Thing::Connection { tcp, .. } | Thing::Listener(tcp) => add(&self.epoll, tcp, key as u64, flags)?,
            Thing::Udp(udp) => add(&self.epoll, udp, key as u64, flags)?,
            Thing::Other(fd) => add(&self.epoll, fd, key as u64, flags)?,
        }
        let place = Some(Place { thing, host, actor: self.acting });
        if key == self.places.len() {
            self.places.push(place);
        } else {
            self.places[key] = place;
        }
        Ok(key)
    }

    fn at(&self, key: Key) -> &Place {
        self.places[key].as_ref().expect("invariant: an actor uses no place it left")
    }

    /// The socket at `key`.
    pub(super) fn tcp(&self, key: Key) -> &Tcp {
        match &self.at(key).thing {
            Thing::Connection { tcp, .. } | Thing::Listener(tcp) => tcp,
            Thing::Udp(_) | Thing::Other(_) => {
                unreachable!("invariant: an actor knows which of its places are TCP sockets")
            }
        }
    }

    /// The UDP socket at `key`.
    pub(super) fn udp(&self, key: Key) -> &Udp {
        match &self.at(key).thing {
            Thing::Udp(udp) => udp,
            _ => unreachable!("invariant: an actor knows which of its places are UDP sockets"),
        }
    }

    /// A connection's own end, as its peer's [`Stage::peer`].
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
        let at = self.samples.is_some().then(|| self.now());
        if let Some(place) = self.places[key].take() {
            if let (Some(samples), Some(at), Thing::Connection { tcp, number }) = (&mut self.samples, at, &place.thing)
            {
                samples.write(at, self.topology.host(place.host), *number, tcp)?;
            }
            // The key may be used again before the loop is entered: drop what it still held.
            self.pending.retain(|(_, event)| !matches!(event, Event::Ready { key: other, .. } if *other == key));
        }
        Ok(())
    }

    /// Asks for a [`Event::Timer`] with `token` at a moment, counted from the opening of the stage.
    pub(super) fn wake_at(&mut self, at: Span, token: u64) {
        self.moments.push(Reverse((at, self.acting, Moment::Token(token))));
    }

    /// Asks for a [`Event::Call`] at a moment.
    pub(super) fn call_at(&mut self, at: Span) {
        self.moments.push(Reverse((at, self.acting, Moment::Call)));
    }

    /// Waits for the next event and says whose it is; records, changes the path and tells of progress meanwhile.
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
                    WORK_TIMER => self.ring()?,
                    RECORD_TIMER => self.record()?,
                    PROGRESS_TIMER => self.tell(&done),
                    key => {
                        let Some(Some(place)) = self.places.get(key as Key) else { continue };
                        let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
                        let readable = broken || flags.contains(epoll::EventFlags::IN);
                        let writable = broken || flags.contains(epoll::EventFlags::OUT);
                        let ready = Event::Ready { key: key as Key, readable, writable };
                        self.pending.push_back((place.actor, ready));
                    }
                }
            }
        }
    }

    /// Sets the timer to the earliest moment asked for.
    fn arm(&mut self) -> Result<(), HostError> {
        let first = self.moments.peek().map(|Reverse((at, ..))| *at);
        if first != self.armed {
            if let Some(at) = first {
                // A moment of exactly zero would disarm it.
                set_time(&self.work_timer, plus(self.began, at).max(Span::from_nanos(1)), Span::ZERO)?;
            }
            self.armed = first;
        }
        Ok(())
    }

    /// Hands out every moment that has come: those up to the one the timer was set to.
    fn ring(&mut self) -> Result<(), HostError> {
        clear(&self.work_timer);
        let Some(armed) = self.armed.take() else { return Ok(()) };
        while let Some(Reverse((at, actor, moment))) = self.moments.peek().copied().filter(|of| of.0.0 <= armed) {
            self.moments.pop();
            match moment {
                _ if actor == NOBODY => {
                    self.schedule.step(at, &self.topology)?;
                    if let Some(next) = self.schedule.next() {
                        self.moments.push(Reverse((next, NOBODY, Moment::Call)));
                    }
                }
                Moment::Token(token) => self.pending.push_back((actor, Event::Timer { token })),
                Moment::Call => self.pending.push_back((actor, Event::Call)),
            }
        }
        Ok(())
    }

    fn record(&mut self) -> Result<(), HostError> {
        if let Some(timer) = &self.record_timer {
            clear(timer);
        }
        let now = self.now();
        if let Some(samples) = &mut self.samples {
            for place in self.places.iter().flatten() {
                if let Thing::Connection { tcp, number } = &place.thing {
                    samples.write(now, self.topology.host(place.host), *number, tcp)?;
                }
            }
        }
        Ok(())
    }

    fn tell(&self, done: &impl Fn(Span) -> f64) {
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

    /// Ends recording; returns virtual seconds since boot and packets the capture lost.
    pub(super) fn close(mut self) -> Result<(f64, u32), HostError> {
        for key in 0..self.places.len() {
            self.close_socket(key)?;
        }
        let dropped = self.packets.map_or(Ok(0), Packets::finish)?;
        self.samples.map_or(Ok(()), Samples::finish)?;
        Ok((clock::monotonic().as_secs_f64(), dropped))
    }
}

fn address(of: rustix::io::Result<rustix::net::SocketAddrAny>, act: &str) -> Result<SocketAddrV4, HostError> {
    let any = call(of, act)?;
    call(SocketAddrV4::try_from(any), act)
}

fn timer() -> Result<OwnedFd, HostError> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    call(rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags), "make a timer")
}

fn set_time(timer: &OwnedFd, first: Span, every: Span) -> Result<(), HostError> {
    let spec = |span: Span| Timespec {
        tv_sec: (span.as_nanos() / 1_000_000_000) as i64,
        tv_nsec: (span.as_nanos() % 1_000_000_000) as i64,
    };
    let when = Itimerspec { it_interval: spec(every), it_value: spec(first) };
    call(rustix::time::timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &when), "set a timer").map(drop)
}

fn clear(timer: &OwnedFd) {
    let mut count = [0u8; 8];
    // Would-block means another event of the same batch cleared it.
    let _ = rustix::io::read(timer, &mut count);
}

fn add(epoll: &OwnedFd, fd: impl AsFd, key: u64, flags: epoll::EventFlags) -> Result<(), HostError> {
    call(epoll::add(epoll, fd, epoll::EventData::new_u64(key), flags), "add to an epoll")
}

fn call<T>(result: rustix::io::Result<T>, act: &str) -> Result<T, HostError> {
    result.map_err(|errno| HostError { act: act.to_owned(), source: errno.into() })
}
