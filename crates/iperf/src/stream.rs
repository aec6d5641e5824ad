//! One stream: its socket, and what it has carried.

use crate::protocol::datagram::Received;
use crate::protocol::parameters::Parameters;
use rustix::io::ioctl_fionread;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use thalweg_host::HostError;
use thalweg_host::socket::{DatagramSocket, Tcp};
use thalweg_model::{SocketSettings, Way};
use thalweg_units::{Bytes, Rate};

/// What a paced sender has written and not sent yet, at most: as much as it sends in this time. More would be counted as sent long
/// before it is.
const UNSENT: Duration = Duration::from_millis(100);
/// The same in bytes, at least: a few segments of any path.
const UNSENT_LEAST: u64 = 16 << 10;

/// The socket of a stream.
#[derive(Debug)]
pub(crate) enum Link {
    Tcp(Tcp),
    Udp(DatagramSocket),
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(tcp) => tcp.as_fd(),
            Self::Udp(udp) => udp.as_fd(),
        }
    }
}

impl Link {
    /// Bytes that have come and were not read.
    pub(crate) fn unread(&self) -> u64 {
        ioctl_fionread(self).unwrap_or(0)
    }
}

/// A stream of a test. A worker moves its data; others read what it has carried.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Its number in the results.
    pub(crate) id: u32,
    pub(crate) way: Way,
    /// This end is the sender.
    pub(crate) sends: bool,
    pub(crate) link: Link,
    bytes: AtomicU64,
    packets: AtomicU64,
    /// When data moved last, in nanoseconds since the test began.
    last_ns: AtomicU64,
    received: Mutex<Received>,
    ended: AtomicBool,
    failure: OnceLock<String>,
}

impl Stream {
    pub(crate) fn new(id: u32, way: Way, sends: bool, link: Link) -> Self {
        Self {
            id,
            way,
            sends,
            link,
            bytes: AtomicU64::new(0),
            packets: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
            received: Mutex::default(),
            ended: AtomicBool::new(false),
            failure: OnceLock::new(),
        }
    }

    /// Counts what was sent or received.
    pub(crate) fn count(&self, bytes: u64, packets: u64, at: Duration) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.packets.fetch_add(packets, Ordering::Relaxed);
        self.last_ns.store(at.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Bytes written or read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Datagrams sent or received.
    pub(crate) fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Of the bytes, those that have arrived: of a TCP sender those that are acknowledged.
    pub(crate) fn delivered(&self) -> u64 {
        // The queue first: what is written in between is then missing, and never too much.
        let queued = match &self.link {
            Link::Tcp(tcp) if self.sends => tcp.unacked().map_or(0, u64::from),
            _ => 0,
        };
        self.bytes().saturating_sub(queued)
    }

    /// When data moved last, since the test began.
    pub(crate) fn last(&self) -> Duration {
        Duration::from_nanos(self.last_ns.load(Ordering::Relaxed))
    }

    /// What a receiver of UDP has counted.
    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().expect("invariant: nobody panics with it")
    }

    /// The other end closed it, or all was sent.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// It broke.
    pub(crate) fn fail(&self, error: &HostError) {
        let _ = self.failure.set(error.to_string());
        self.end();
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

/// What the parameters ask of a TCP stream's socket, at the sender or at the receiver.
pub(crate) fn settings(parameters: &Parameters, sends: bool) -> SocketSettings {
    let socket = &parameters.socket;
    let pace = parameters.pace.limit_bps().filter(|_| sends);
    let unsent = |rate: u64| (rate as f64 / 8.0 * UNSENT.as_secs_f64()) as u64;
    SocketSettings {
        congestion: socket.congestion.clone(),
        sndbuf: socket.window.map(Bytes::new),
        rcvbuf: socket.window.map(Bytes::new),
        nodelay: socket.nodelay.then_some(true),
        max_pacing_rate: pace.map(Rate::from_bits_per_second),
        notsent_lowat: pace.map(|rate| Bytes::new(unsent(rate).max(UNSENT_LEAST))),
        ..SocketSettings::default()
    }
}

/// Sets what the parameters ask of a UDP stream's socket.
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn prepare(udp: &DatagramSocket, parameters: &Parameters, peer: SocketAddr) -> Result<(), HostError> {
    let socket = &parameters.socket;
    if let Some(bytes) = socket.window {
        udp.set_buffers(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    }
    if let Some(service) = socket.service {
        udp.set_service(peer, service)?;
    }
    if socket.dont_fragment {
        udp.never_fragment(peer)?;
    }
    Ok(())
}
