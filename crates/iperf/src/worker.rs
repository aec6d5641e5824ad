//! Threads that move the data of a test's streams, with an epoll each.

use crate::protocol::MIN_UDP_LENGTH;
use crate::protocol::datagram::{Header, answer};
use crate::protocol::parameters::Parameters;
use crate::stream::{Link, Stream};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::cpu_time::CpuTime;
use thalweg_host::poll::{Poller, Waker, wake_on_time};
use thalweg_host::socket::{DatagramSocket, Tcp};

/// Calls that one stream makes before the next one has its turn.
const TURN: usize = 16;
/// The same of UDP, whose calls move less.
const UDP_TURN: usize = 64;
/// A sender of UDP that was held back makes up for this much, and no more: a longer burst would be a test of the buffers.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Time after which a UDP sender without room looks again: the kernel does not say when a device's queue has room.
const NO_ROOM: Duration = Duration::from_millis(1);
/// Token of the waker among those of the streams.
const WAKER: u64 = u64::MAX;

/// What the workers of a test do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing: the streams are not all there.
    Ready,
    /// Send and receive.
    Running,
    /// Receive what is on its way; the sending is over.
    Ending,
    /// Return.
    Closed,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Ready, Self::Running, Self::Ending, Self::Closed];
}

/// What all workers of a test share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// When the test began, or was made ready.
    pub(crate) begun: Instant,
    phase: AtomicU8,
    /// Bytes that may still be sent; counts only if `is_limited`.
    budget: AtomicU64,
    is_limited: AtomicBool,
    rate_bps: u64,
    burst: u32,
    length: usize,
    wide_counters: bool,
    skip_copy: bool,
    /// A sender closes its streams at the end, as a server does.
    closes: bool,
    pub(crate) file: Option<File>,
}

impl Shared {
    pub(crate) fn new(parameters: &Parameters, closes: bool, file: Option<File>) -> Self {
        Self {
            begun: Instant::now(),
            phase: AtomicU8::new(Phase::Ready as u8),
            budget: AtomicU64::new(0),
            is_limited: AtomicBool::new(false),
            rate_bps: parameters.pace.limit_bps().unwrap_or(0),
            burst: parameters.pace.burst.max(1),
            length: parameters.length as usize,
            wide_counters: parameters.wide_counters,
            skip_copy: parameters.skip_copy,
            closes,
            file,
        }
    }

    fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.phase.load(Ordering::Acquire)).min(3)]
    }

    /// From now on all senders together send this much.
    pub(crate) fn limit(&self, bytes: u64) {
        self.budget.store(bytes, Ordering::Relaxed);
        self.is_limited.store(true, Ordering::Release);
    }

    /// All that may be sent was sent.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_limited.load(Ordering::Acquire) && self.budget.load(Ordering::Relaxed) == 0
    }

    /// Takes up to `most` from the budget.
    fn take(&self, most: u64) -> u64 {
        if !self.is_limited.load(Ordering::Acquire) {
            return most;
        }
        let taken = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - left.min(most)));
        taken.unwrap_or(0).min(most)
    }

    /// Gives back what was taken and not sent.
    fn give_back(&self, bytes: u64) {
        if bytes > 0 && self.is_limited.load(Ordering::Acquire) {
            self.budget.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// The workers of a test. Dropped, they end.
#[derive(Debug)]
pub(crate) struct Workers {
    pub(crate) shared: Arc<Shared>,
    threads: Vec<(Arc<Waker>, JoinHandle<CpuTime>)>,
}

impl Workers {
    /// Starts as many as there are processors, and no more than streams.
    ///
    /// # Errors
    /// When the kernel gives no descriptor or thread.
    pub(crate) fn start(shared: Shared, streams: &[Arc<Stream>]) -> Result<Self, HostError> {
        let shared = Arc::new(shared);
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(streams.len()).max(1);
        let mut workers = Self { shared: Arc::clone(&shared), threads: Vec::new() };
        for number in 0..count {
            let own: Vec<_> = streams.iter().skip(number).step_by(count).map(Arc::clone).collect();
            let waker = Arc::new(Waker::new()?);
            let worker = Worker::new(Arc::clone(&shared), own, Arc::clone(&waker))?;
            let thread = std::thread::Builder::new().name("streams".to_owned()).spawn(move || worker.run());
            let thread = thread.map_err(|source| HostError { act: "start a thread".to_owned(), source })?;
            workers.threads.push((waker, thread));
        }
        Ok(workers)
    }

    /// Goes on to a later phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Release);
        self.threads.iter().for_each(|(waker, _)| waker.wake());
    }

    /// Ends them; returns the time they took on a processor.
    pub(crate) fn close(&mut self) -> CpuTime {
        self.enter(Phase::Closed);
        let times = self.threads.drain(..).map(|(_, thread)| thread.join().expect("invariant: workers do not panic"));
        times.fold(CpuTime::default(), CpuTime::and)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.close();
    }
}

/// A stream as its worker has it.
struct Own {
    stream: Arc<Stream>,
    is_readable: bool,
    is_writable: bool,
    /// When the next datagram is due.
    due: Option<Instant>,
    /// How much of the file is sent.
    offset: u64,
    /// Its sending direction is closed.
    is_closed: bool,
}

/// When a stream needs its worker again.
enum Next {
    /// At once.
    Now,
    At(Instant),
    /// When its socket says so.
    Event,
}

struct Worker {
    shared: Arc<Shared>,
    streams: Vec<Own>,
    poller: Poller,
    waker: Arc<Waker>,
    buffer: Vec<u8>,
}

impl Worker {
    fn new(shared: Arc<Shared>, streams: Vec<Arc<Stream>>, waker: Arc<Waker>) -> Result<Self, HostError> {
        let poller = Poller::new()?;
        poller.add_readable(&*waker, WAKER)?;
        for (token, stream) in (0..).zip(&streams) {
            poller.add_edges(stream.link.as_fd(), token)?;
        }
        let own =
            |stream| Own { stream, is_readable: false, is_writable: true, due: None, offset: 0, is_closed: false };
        // What is sent looks like iperf3's: digits, over and over.
        let buffer = (0..shared.length.max(MIN_UDP_LENGTH as usize)).map(|at| b'0' + (at % 10) as u8).collect();
        Ok(Self { shared, streams: streams.into_iter().map(own).collect(), poller, waker, buffer })
    }

    fn run(mut self) -> CpuTime {
        wake_on_time();
        let before = CpuTime::of_thread();
        let mut ready = Vec::new();
        loop {
            let phase = self.shared.phase();
            if phase == Phase::Closed {
                // It may not have seen the phase before this one.
                self.streams.iter_mut().for_each(|own| own.end_sending(&self.shared));
                return CpuTime::of_thread().since(before);
            }
            let (mut busy, mut due) = (false, None::<Instant>);
            for own in self.streams.iter_mut().filter(|_| phase != Phase::Ready) {
                match own.turn(phase, &self.shared, &mut self.buffer) {
                    Next::Now => busy = true,
                    Next::At(at) => due = Some(due.map_or(at, |due| due.min(at))),
                    Next::Event => {}
                }
            }
            let wait = due.map(|due| due.saturating_duration_since(Instant::now()));
            ready.clear();
            if self.poller.wait(if busy { Some(Duration::ZERO) } else { wait }, &mut ready).is_err() {
                return CpuTime::of_thread().since(before);
            }
            for event in &ready {
                if event.token == WAKER {
                    self.waker.clear();
                } else if let Some(own) = self.streams.get_mut(event.token as usize) {
                    own.is_readable |= event.readable;
                    own.is_writable |= event.writable;
                }
            }
        }
    }
}

impl Own {
    fn turn(&mut self, phase: Phase, shared: &Shared, buffer: &mut [u8]) -> Next {
        let stream = Arc::clone(&self.stream);
        let moved = match (&stream.link, stream.sends) {
            _ if stream.failure().is_some() => Ok(Next::Event),
            (Link::Tcp(tcp), true) => self.send(tcp, phase, shared, buffer),
            (Link::Tcp(tcp), false) => self.receive(tcp, shared, buffer),
            (Link::Udp(udp), true) => self.send_datagrams(udp, phase, shared, buffer),
            (Link::Udp(udp), false) => self.receive_datagrams(udp, shared, buffer),
        };
        moved.unwrap_or_else(|error| {
            // The other end may close before this one: what was counted holds.
            if phase == Phase::Running {
                stream.fail(&error)
            } else {
                stream.end()
            }
            self.is_closed = true;
            Next::Event
        })
    }

    /// Ends what a server sends. A client of iperf3 up to 3.15 waits for a whole block, and sees nothing else until that comes or there is an
    /// end.
    fn end_sending(&mut self, shared: &Shared) {
        if let (Link::Tcp(tcp), true) = (&self.stream.link, self.stream.sends && shared.closes)
            && !std::mem::replace(&mut self.is_closed, true)
        {
            // The client may have closed before.
            let _ = tcp.end_sending();
        }
    }

    fn send(&mut self, tcp: &Tcp, phase: Phase, shared: &Shared, buffer: &[u8]) -> Result<Next, HostError> {
        if phase == Phase::Ending {
            self.end_sending(shared);
            return Ok(Next::Event);
        }
        for _ in 0..TURN {
            if !self.is_writable || self.stream.has_ended() {
                return Ok(Next::Event);
            }
            let most = shared.take(shared.length as u64);
            if most == 0 {
                return Ok(Next::Event);
            }
            let sent = match &shared.file {
                Some(file) => tcp.send_file(file, self.offset, most as usize),
                None => tcp.send(&buffer[..most as usize]),
            };
            let count = sent.as_ref().map_or(0, |sent| sent.unwrap_or(0)) as u64;
            shared.give_back(most - count);
            match sent? {
                Some(0) => self.stream.end(),
                Some(_) => self.stream.count(count, 1, shared.begun.elapsed()),
                None => self.is_writable = false,
            }
            self.offset += count;
        }
        Ok(Next::Now)
    }

    fn receive(&mut self, tcp: &Tcp, shared: &Shared, buffer: &mut [u8]) -> Result<Next, HostError> {
        for _ in 0..TURN {
            if !self.is_readable || self.stream.has_ended() {
                return Ok(Next::Event);
            }
            match if shared.skip_copy { tcp.discard(shared.length)? } else { tcp.receive(buffer)? } {
                Some(0) => self.stream.end(),
                Some(count) => self.stream.count(count as u64, 1, shared.begun.elapsed()),
                None => self.is_readable = false,
            }
        }
        Ok(Next::Now)
    }

    fn send_datagrams(
        &mut self,
        udp: &DatagramSocket,
        phase: Phase,
        shared: &Shared,
        buffer: &mut [u8],
    ) -> Result<Next, HostError> {
        if phase == Phase::Ending || shared.is_spent() {
            return Ok(Next::Event);
        }
        let length = shared.length;
        let gap = if shared.rate_bps == 0 {
            Duration::ZERO
        } else {
            Duration::from_nanos((length as f64 * 8e9 / shared.rate_bps as f64).min(1e18) as u64)
        };
        let now = Instant::now();
        let mut due = self.due.unwrap_or(now).max(now.checked_sub(CATCH_UP).unwrap_or(now));
        for _ in 0..UDP_TURN.max(shared.burst as usize) / shared.burst as usize {
            if gap > Duration::ZERO && due > now {
                break;
            }
            for _ in 0..shared.burst {
                let most = shared.take(length as u64);
                if most == 0 {
                    self.due = Some(due);
                    return Ok(Next::Event);
                }
                let at = shared.begun.elapsed();
                Header { sent: at, number: self.stream.packets() + 1 }.write(buffer, shared.wide_counters);
                if !udp.send(&buffer[..length])? {
                    shared.give_back(most);
                    self.due = Some(due);
                    return Ok(Next::At(now + NO_ROOM));
                }
                self.stream.count(length as u64, 1, at);
                due += gap;
            }
        }
        self.due = Some(due);
        Ok(if gap == Duration::ZERO || due <= now { Next::Now } else { Next::At(due) })
    }

    fn receive_datagrams(
        &mut self,
        udp: &DatagramSocket,
        shared: &Shared,
        buffer: &mut [u8],
    ) -> Result<Next, HostError> {
        for _ in 0..UDP_TURN {
            if !self.is_readable {
                return Ok(Next::Event);
            }
            let Some((length, _)) = udp.receive(buffer)? else {
                self.is_readable = false;
                return Ok(Next::Event);
            };
            let at = shared.begun.elapsed();
            match Header::read(&buffer[..length.min(buffer.len())], shared.wide_counters) {
                Some(header) => {
                    self.stream.received().take(header, at);
                    self.stream.count(length as u64, 1, at);
                }
                // A greeting that came twice, as its answer was late or lost.
                None if shared.closes => drop(udp.send(&answer(&buffer[..length]))?),
                None => {}
            }
        }
        Ok(Next::Now)
    }
}
