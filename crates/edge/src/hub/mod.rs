//! What publishers make and viewers share: streams, each made once, immutable in its pieces.

mod flv_ring;
mod hls;
mod publication;
mod versioned;

pub use flv_ring::{Block, Ring};
pub use hls::{CONTAINER, Format, Hls, Piece, Playlist};
pub use publication::{AudioFacts, Publication, VideoFacts};
pub use versioned::{Cell, View};

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use thalweg_host::poll::Waker;
use thalweg_model::ServeConfig;

/// A live stream, from its first publisher until it has been silent for long.
#[derive(Debug)]
pub struct Stream {
    /// `app/name`.
    pub key: Box<str>,
    /// When it began, in milliseconds of [`Hub::now_ms`]; no two streams of one key have the same.
    pub began_ms: u64,
    /// Its newest HLS state.
    pub hls: Cell<Hls>,
    /// Its newest FLV blocks.
    pub flv: Ring,
    /// A bit for each worker that wants to be woken when there is something new.
    interest: AtomicU64,
    /// Whether somebody publishes it at present.
    pub is_live: AtomicBool,
    /// What publishers sent, in bytes.
    pub received_bytes: AtomicU64,
    /// Its publisher, or its last one.
    pub publication: Cell<Publication>,
}

impl Stream {
    /// A stream without media, in a server set up like this.
    pub fn new(key: &str, began_ms: u64, config: &ServeConfig) -> Self {
        Self {
            key: key.into(),
            began_ms,
            hls: Cell::new(Hls::default()),
            flv: Ring::new(config.flv.cache.get(), config.flv.cache_time),
            interest: AtomicU64::new(0),
            is_live: AtomicBool::new(true),
            received_bytes: AtomicU64::new(0),
            publication: Cell::new(Publication::default()),
        }
    }

    /// Wakes worker `number` from now on.
    pub fn attend(&self, number: usize) {
        self.interest.fetch_or(1 << number, Ordering::Relaxed);
    }

    /// No longer wakes worker `number`.
    pub fn neglect(&self, number: usize) {
        self.interest.fetch_and(!(1 << number), Ordering::Relaxed);
    }
}

/// How a worker is woken when there is something new.
#[derive(Debug)]
pub struct Signal {
    /// Wakes its thread.
    pub waker: Waker,
    /// Whether it was woken and has not looked yet: a second time costs no system call.
    pub pending: AtomicBool,
}

impl Signal {
    /// Wakes the thread unless it is about to look.
    pub fn raise(&self) {
        if !self.pending.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// The thread looks now: what is raised from here on wakes it again.
    pub fn lower(&self) {
        self.waker.clear();
        self.pending.store(false, Ordering::Release);
    }
}

/// Most workers there can be: the bits of a stream's interest.
pub const WORKERS_MAX: usize = 64;

/// The streams of a server.
#[derive(Debug)]
pub struct Hub {
    /// The streams there are, by `app/name`.
    pub streams: Cell<HashMap<Box<str>, Arc<Stream>>>,
    /// The workers' signals, by number.
    pub signals: Vec<Arc<Signal>>,
    /// How the server is set up.
    pub config: Cell<ServeConfig>,
    /// What no other server has: sessions' ids are signed with it where no configured key is there for it.
    pub salt: [u8; 32],
    /// Keys of streams whose publishers' connections an operator wants closed.
    kicked: Mutex<Vec<Box<str>>>,
    started: Instant,
    started_unix_ms: u64,
}

impl Hub {
    /// A hub without streams.
    pub fn new(config: ServeConfig, signals: Vec<Arc<Signal>>, salt: [u8; 32]) -> Self {
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            streams: Cell::new(HashMap::new()),
            signals,
            config: Cell::new(config),
            salt,
            kicked: Mutex::default(),
            started: Instant::now(),
            started_unix_ms: unix.as_millis() as u64,
        }
    }

    /// Milliseconds since 1970-01-01 UTC, on a clock that never steps back.
    pub fn now_ms(&self) -> u64 {
        self.started_unix_ms + self.started.elapsed().as_millis() as u64
    }

    /// The stream of that key, made if there is none; `None` when there are as many as there may be.
    pub fn open(&self, key: &str) -> Option<Arc<Stream>> {
        let (_, config) = self.config.get();
        self.streams.change(|streams| {
            if let Some(stream) = streams.get(key) {
                stream.is_live.store(true, Ordering::Release);
                return (None, Some(Arc::clone(stream)));
            }
            if streams.len() >= config.limits.streams as usize {
                return (None, None);
            }
            let mut more = streams.clone();
            let stream = Arc::new(Stream::new(key, self.now_ms(), &config));
            more.insert(key.into(), Arc::clone(&stream));
            (Some(more), Some(stream))
        })
    }

    /// Takes a stream away: those who ask for it find none, and its live viewers end.
    pub fn close(&self, stream: &Arc<Stream>) {
        stream.is_live.store(false, Ordering::Release);
        stream.flv.end();
        self.streams.change(|streams| {
            let is_it = streams.get(&stream.key).is_some_and(|found| Arc::ptr_eq(found, stream));
            let mut fewer = streams.clone();
            fewer.remove(&stream.key);
            (is_it.then_some(fewer), ())
        });
        self.announce(stream);
    }

    /// Has the publisher's connection of the stream closed; whether there is one.
    pub fn kick_publisher(&self, key: &str) -> bool {
        let is_live = |stream: &Arc<Stream>| stream.is_live.load(Ordering::Acquire);
        let (_, streams) = self.streams.get();
        let found = streams.get(key).is_some_and(is_live);
        if found {
            self.kicked.lock().unwrap_or_else(PoisonError::into_inner).push(key.into());
            // The publishers' thread has the last signal.
            if let Some(signal) = self.signals.last() {
                signal.raise();
            }
        }
        found
    }

    /// The streams whose publishers' connections are to be closed.
    pub fn kicked_publishers(&self) -> Vec<Box<str>> {
        std::mem::take(&mut self.kicked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wakes the workers that attend to the stream.
    pub fn announce(&self, stream: &Stream) {
        let interest = stream.interest.load(Ordering::Relaxed);
        let wanted = |number: &usize| interest >> number & 1 == 1;
        (0..WORKERS_MAX).filter(wanted).filter_map(|number| self.signals.get(number)).for_each(|signal| signal.raise());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub() -> (Hub, Arc<Signal>) {
        let signal = Arc::new(Signal { waker: Waker::new().expect("made"), pending: AtomicBool::new(false) });
        let mut config = ServeConfig::default();
        config.limits.streams = 2;
        (Hub::new(config, vec![Arc::clone(&signal)], [7; 32]), signal)
    }

    #[test]
    fn streams_are_made_once_and_bounded() {
        let (hub, _) = hub();
        let one = hub.open("live/1").expect("room");
        assert!(Arc::ptr_eq(&one, &hub.open("live/1").expect("there")));
        assert!(hub.open("live/2").is_some() && hub.open("live/3").is_none());
        hub.close(&one);
        assert!(!one.is_live.load(Ordering::Acquire) && hub.streams.get().1.len() == 1);
        let again = hub.open("live/1").expect("room");
        assert!(!Arc::ptr_eq(&one, &again));
        hub.close(&one);
        assert_eq!(hub.streams.get().1.len(), 2, "the later stream of that name stays");
    }

    #[test]
    fn only_workers_that_attend_are_woken() {
        let (hub, signal) = hub();
        let stream = hub.open("live/1").expect("room");
        hub.announce(&stream);
        assert!(!signal.pending.load(Ordering::Acquire));
        stream.attend(0);
        hub.announce(&stream);
        assert!(signal.pending.load(Ordering::Acquire));
        signal.lower();
        stream.neglect(0);
        hub.announce(&stream);
        assert!(!signal.pending.load(Ordering::Acquire));
    }
}
