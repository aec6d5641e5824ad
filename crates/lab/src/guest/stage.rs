//! Where a workload acts: its sockets, its clock, its timers, and the loop that waits for them.
//!
//! The loop sleeps in `epoll_wait`; between two events no clock is read, so virtual time stands still while it computes.

use super::record::{Packets, Samples};
use super::topology::Topology;
use crate::plan::{PROGRESS_MARK, RunOptions};
use host::HostError;
use host::socket::Tcp;
use host::tcp_info::TcpInfo;
use model::{Experiment, Side};
use rustix::event::epoll;
use rustix::time::{ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use units::Span;

/// Port the server listens on: iperf3's.
const PORT: u16 = 5201;
const WORK_TIMER: u64 = u64::MAX;
const RECORD_TIMER: u64 = u64::MAX - 1;
const PROGRESS_TIMER: u64 = u64::MAX - 2;
/// How often rings are emptied where no samples set the pace.
const DRAIN_EVERY: Span = Span::from_millis(10);
const PROGRESS_EVERY: Span = Span::from_millis(1_000);

/// A socket's place on the stage.
pub(super) type Key = usize;

/// Something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A socket can be read or written.
    Ready { key: Key, readable: bool, writable: bool },
    /// The workload's timer went off.
    Timer,
}

struct Place {
    tcp: Tcp,
    side: Side,
    listens: bool,
    /// Number of the connection on its side, for the samples.
    connection: u32,
}

/// The hosts' sockets and everything that watches them.
pub(super) struct Stage {
    topology: Topology,
    experiment: Experiment,
    epoll: OwnedFd,
    places: Vec<Option<Place>>,
    connections: [u32; 2],
    work_timer: OwnedFd,
    record_timer: Option<OwnedFd>,
    progress_timer: OwnedFd,
    pending: VecDeque<Event>,
    packets: Option<Packets>,
    samples: Option<Samples>,
    began: Span,
    /// How much of the workload is done, 0 to 1.
    pub(super) done: f64,
}

impl Stage {
    /// Makes the event loop and begins to record.
    pub(super) fn open(
        topology: Topology,
        experiment: Experiment,
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
        let began = clock();
        arm(&progress_timer, began, PROGRESS_EVERY, true)?;
        if let Some(timer) = &record_timer {
            arm(timer, began, options.samples.unwrap_or(DRAIN_EVERY), true)?;
        }
        Ok(Self {
            topology,
            experiment,
            epoll,
            places: Vec::new(),
            connections: [0; 2],
            work_timer,
            record_timer,
            progress_timer,
            pending: VecDeque::new(),
            packets,
            samples,
            began,
            done: 0.0,
        })
    }

    /// Time since the stage was opened.
    pub(super) fn now(&self) -> Span {
        Span::from_nanos(clock().as_nanos() - self.began.as_nanos())
    }

    /// Makes the server listen.
    pub(super) fn listen(&mut self) -> Result<Key, HostError> {
        let tcp = self.topology.server.run(|| Tcp::listen(PORT, &self.experiment.server.socket))?;
        self.place(tcp, Side::Server, true, epoll::EventFlags::IN)
    }

    /// Makes the client begin to connect; its socket becomes writable when it is.
    pub(super) fn connect(&mut self) -> Result<Key, HostError> {
        let to = SocketAddrV4::new(Topology::peer_of(Side::Client), PORT);
        let tcp = self.topology.client.run(|| Tcp::connect(to, &self.experiment.client.socket))?;
        self.place(tcp, Side::Client, false, epoll::EventFlags::OUT)
    }

    /// Takes a connection that waits; it is watched for reading.
    pub(super) fn accept(&mut self, listener: Key) -> Result<Option<Key>, HostError> {
        match self.tcp(listener).accept()? {
            Some(tcp) => self.place(tcp, Side::Server, false, epoll::EventFlags::IN).map(Some),
            None => Ok(None),
        }
    }

    fn place(&mut self, tcp: Tcp, side: Side, listens: bool, flags: epoll::EventFlags) -> Result<Key, HostError> {
        let key = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        add(&self.epoll, &tcp, key as u64, flags)?;
        let connection = &mut self.connections[side as usize];
        let number = *connection;
        *connection += u32::from(!listens);
        let place = Some(Place { tcp, side, listens, connection: number });
        if key == self.places.len() {
            self.places.push(place);
        } else {
            self.places[key] = place;
        }
        Ok(key)
    }

    /// The socket at `key`.
    pub(super) fn tcp(&self, key: Key) -> &Tcp {
        &self.places[key].as_ref().expect("invariant: a workload uses no socket it closed").tcp
    }

    /// Chooses what to wait for.
    pub(super) fn watch(&self, key: Key, read: bool, write: bool) -> Result<(), HostError> {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, read);
        flags.set(epoll::EventFlags::OUT, write);
        call(epoll::modify(&self.epoll, self.tcp(key), epoll::EventData::new_u64(key as u64), flags), "change an epoll")
    }

    /// Closes the socket at `key`; a last sample of it is taken first.
    pub(super) fn close_socket(&mut self, key: Key) -> Result<(), HostError> {
        let at = self.samples.is_some().then(|| self.now());
        if let Some(place) = self.places[key].take() {
            if let (Some(samples), Some(at), false) = (&mut self.samples, at, place.listens) {
                samples.write(at, place.side, place.connection, &TcpInfo::of(&place.tcp)?)?;
            }
            // The key may be used again before the loop is entered: drop what it still held.
            self.pending.retain(|event| !matches!(event, Event::Ready { key: other, .. } if *other == key));
        }
        Ok(())
    }

    /// Sets the workload's timer: first at `at` since the stage was opened, then every so often, or once.
    pub(super) fn set_timer(&mut self, at: Span, every: Option<Span>) -> Result<(), HostError> {
        let first = Span::from_nanos(self.began.as_nanos() + at.as_nanos());
        set_time(&self.work_timer, first, every.unwrap_or(Span::ZERO))
    }

    /// Waits for the next event; records and tells of progress meanwhile.
    pub(super) fn next(&mut self) -> Result<Event, HostError> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
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
                    WORK_TIMER => {
                        clear(&self.work_timer);
                        self.pending.push_back(Event::Timer);
                    }
                    RECORD_TIMER => self.record()?,
                    PROGRESS_TIMER => self.tell(),
                    key => {
                        let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
                        let readable = broken || flags.contains(epoll::EventFlags::IN);
                        let writable = broken || flags.contains(epoll::EventFlags::OUT);
                        self.pending.push_back(Event::Ready { key: key as Key, readable, writable });
                    }
                }
            }
        }
    }

    fn record(&mut self) -> Result<(), HostError> {
        if let Some(timer) = &self.record_timer {
            clear(timer);
        }
        let now = self.now();
        if let Some(samples) = &mut self.samples {
            for place in self.places.iter().flatten().filter(|place| !place.listens) {
                samples.write(now, place.side, place.connection, &TcpInfo::of(&place.tcp)?)?;
            }
        }
        Ok(())
    }

    fn tell(&self) {
        clear(&self.progress_timer);
        let line = format!("{PROGRESS_MARK} {:.3} {:.4}\n", self.now().as_secs_f64(), self.done.clamp(0.0, 1.0));
        // The keeper on the host watches these lines; one that is lost matters to nobody.
        let _ = io::stdout().write_all(line.as_bytes());
    }

    /// Ends recording; returns virtual seconds since boot and packets the capture lost.
    pub(super) fn close(mut self) -> Result<(f64, u32), HostError> {
        for key in 0..self.places.len() {
            self.close_socket(key)?;
        }
        let dropped = self.packets.map_or(Ok(0), Packets::finish)?;
        self.samples.map_or(Ok(()), Samples::finish)?;
        Ok((clock().as_secs_f64(), dropped))
    }
}

fn clock() -> Span {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    Span::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

fn timer() -> Result<OwnedFd, HostError> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    call(rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags), "make a timer")
}

fn arm(timer: &OwnedFd, from: Span, every: Span, repeat: bool) -> Result<(), HostError> {
    let first = Span::from_nanos(from.as_nanos() + every.as_nanos());
    set_time(timer, first, if repeat { every } else { Span::ZERO })
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
