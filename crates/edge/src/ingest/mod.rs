//! The thread that publishers send to: RTMP in, streams in the hub out.

mod admission;
mod closing;
mod end;
mod segments;
mod silence;
mod sound_wait;
mod untaken;
mod writer;

use crate::connection_limits::ConnectionLimits;
use crate::http::Query;
use crate::http::forwarded::is_trusted;
use crate::hub::{Signal, View};
use crate::shared::Shared;
use crate::slab::Slab;
use admission::stream_key;
use end::End;
use rustls::crypto::SecureRandom;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use thalweg_host::HostError;
use thalweg_host::poll::{Poller, Ready};
use thalweg_host::socket::Tcp;
use thalweg_media::rtmp::{Event, Limits, Refusal, Session};
use thalweg_model::ServeConfig;
use writer::Writer;

/// How long what is over can still be played, milliseconds.
const FAREWELL_MS: u64 = 30_000;
/// Connections of publishers, and of those who have not said what they want, at a time.
const CONNECTIONS_MAX: u32 = 4_096;
/// Those of one address, so that it does not keep all others out: the test `one_address_does_not_keep_others_from_publishing`.
const ADDRESS_MAX: u32 = CONNECTIONS_MAX / 4;
/// Bytes read at a time.
const SCRATCH: usize = 256 << 10;
/// Publishers' bit rates are measured over so long, milliseconds: an encoder may send a large keyframe at once.
const MEASURE_MS: u64 = 4_000;
const CONNECTION: u64 = 1 << 63;
const SIGNAL: u64 = CONNECTION - 1;

#[derive(Debug)]
struct Publisher {
    socket: Tcp,
    peer: SocketAddr,
    /// Whose share of the connections it takes; nobody's for a trusted proxy.
    counted: Option<IpAddr>,
    session: Session,
    /// What the session did not take yet.
    input: Vec<u8>,
    /// Distinguishes publications, for applications.
    number: u64,
    /// The stream it publishes.
    key: Option<Box<str>>,
    /// It asked to publish a stream, and was let in or refused.
    is_answered: bool,
    /// What it sent since when, for its bit rate.
    measured: (u64, u64),
    /// Its bit rate over the last whole measurement.
    bits_per_second: u64,
    /// When it is closed unless it sends something.
    deadline_ms: u64,
    /// The server ended it: what it sends is discarded until it closes or the deadline passes.
    is_ending: bool,
}

/// A stream that an application was asked about.
#[derive(Debug)]
struct Asked {
    key: Box<str>,
    /// Why its publisher's connection ended before the answer came.
    ended: Option<String>,
}

/// A stream's writer, and since when nobody publishes.
#[derive(Debug)]
struct Entry {
    writer: Writer,
    publisher: Option<u64>,
    began_ms: u64,
    /// What its former publishers had sent when this one began, in bytes.
    received_before: u64,
    gone_ms: u64,
    is_over: bool,
}

/// The thread's state.
#[derive(Debug)]
pub struct Intake {
    shared: Arc<Shared>,
    poller: Poller,
    listeners: Vec<Tcp>,
    publishers: Slab<Publisher>,
    connections: ConnectionLimits,
    /// What no application has answered yet, by the number of the publisher.
    asked: HashMap<u64, Asked>,
    entries: HashMap<Box<str>, Entry>,
    config: View<ServeConfig>,
    /// Woken when an application has answered.
    signal: Arc<Signal>,
    numbers: u64,
    random: &'static dyn SecureRandom,
    scratch: Vec<u8>,
}

impl Intake {
    /// Takes publishers from these listeners.
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub fn new(shared: Arc<Shared>, listeners: Vec<Tcp>) -> Result<Self, HostError> {
        let poller = Poller::new()?;
        let signal = Arc::clone(shared.hub.signals.last().expect("invariant: the last signal is the publishers'"));
        poller.add_readable(&signal.waker, SIGNAL)?;
        for (at, listener) in listeners.iter().enumerate() {
            poller.add_readable(listener, at as u64)?;
        }
        let random = rustls::crypto::ring::default_provider().secure_random;
        let (numbers, config) = (shared.hub.now_ms() << 20, View::of(&shared.hub.config));
        let (publishers, asked, entries) = (Slab::new(), HashMap::new(), HashMap::new());
        let scratch = vec![0; SCRATCH];
        let connections = ConnectionLimits::new(CONNECTIONS_MAX, per_address(config.value()));
        Ok(Self {
            shared,
            poller,
            listeners,
            publishers,
            connections,
            asked,
            entries,
            config,
            signal,
            numbers,
            random,
            scratch,
        })
    }

    /// Takes what publishers send until the server is drained.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn run(mut self) -> Result<(), HostError> {
        let mut ready: Vec<Ready> = Vec::new();
        let mut ticked_ms = 0;
        while !self.shared.is_draining.load(Ordering::Acquire) {
            ready.clear();
            self.poller.wait(Some(Duration::from_millis(250)), &mut ready)?;
            if self.config.refresh(&self.shared.hub.config) {
                self.connections.bound(CONNECTIONS_MAX, per_address(self.config.value()));
            }
            for event in &ready {
                match event.token {
                    SIGNAL => self.signal.lower(),
                    token if token & CONNECTION != 0 => self.read(token & !CONNECTION),
                    listener => self.accept(listener as usize),
                }
            }
            for key in self.shared.hub.kicked_publishers() {
                if let Some(token) = self.entries.get(&key).and_then(|entry| entry.publisher) {
                    self.close(token, End::Kicked);
                }
            }
            self.settle_all();
            let now_ms = self.shared.hub.now_ms();
            if now_ms >= ticked_ms + 250 {
                ticked_ms = now_ms;
                self.tick(now_ms);
            }
        }
        self.drain()
    }

    fn accept(&mut self, at: usize) {
        while let Ok(Some((socket, peer))) = self.listeners[at].accept_from() {
            let counted = (!is_trusted(peer.ip(), &self.config.value().trusted_proxies)).then_some(peer.ip());
            if !self.connections.enter(counted) {
                let is_full = self.connections.count() >= CONNECTIONS_MAX;
                self.closed(peer, if is_full { &End::Crowd } else { &End::AddressCrowd });
                continue;
            }
            let mut random = [0; 1536];
            if self.random.fill(&mut random).is_err() {
                self.connections.leave(counted);
                self.closed(peer, &End::NoRoom);
                continue;
            }
            let head_ms = self.config.value().limits.head_time.as_micros() / 1_000;
            let deadline_ms = self.shared.hub.now_ms() + head_ms;
            let session = Session::new(random, Limits::default());
            self.numbers += 1;
            let number = self.numbers;
            let publisher = Publisher {
                socket,
                peer,
                counted,
                session,
                input: Vec::new(),
                number,
                key: None,
                is_answered: false,
                measured: (0, 0),
                bits_per_second: 0,
                deadline_ms,
                is_ending: false,
            };
            let token = self.publishers.insert(publisher);
            if let Some(publisher) = self.publishers.get(token)
                && self.poller.add_readable(&publisher.socket, token | CONNECTION).is_err()
            {
                self.remove(token);
            }
        }
    }

    /// Takes what a publisher sent; what it made is one block for all viewers.
    fn read(&mut self, token: u64) {
        let Some(publisher) = self.publishers.get(token) else { return };
        let got = match publisher.socket.receive(&mut self.scratch) {
            Ok(Some(got @ 1..)) => got,
            Ok(None) => return,
            Ok(Some(_)) => return self.close(token, End::Closed),
            Err(error) => return self.close(token, End::Broken(error)),
        };
        if publisher.is_ending {
            return;
        }
        let now_ms = self.shared.hub.now_ms();
        if publisher.key.is_some() {
            publisher.deadline_ms = now_ms + silence_ms(self.config.value());
        }
        if publisher.measure(now_ms, got as u64, self.config.value()) {
            return self.close(token, End::BitRate);
        }
        let mut bytes = std::mem::take(&mut publisher.input);
        bytes.extend_from_slice(&self.scratch[..got]);
        self.proceed(token, &bytes);
    }

    /// Takes of what was received as much as makes sense already.
    fn proceed(&mut self, token: u64, bytes: &[u8]) {
        let mut input: &[u8] = bytes;
        let handled = self.handle(token, &mut input);
        let rest = input.to_vec();
        let key = self.publishers.get(token).and_then(|publisher| publisher.key.clone());
        if let Some(entry) = key.and_then(|key| self.entries.get_mut(&key)) {
            entry.writer.flush();
            self.shared.hub.announce(&entry.writer.stream);
        }
        let sent = self.send(token);
        if let Err(end) = handled.and(sent) {
            self.close(token, end);
        } else if let Some(publisher) = self.publishers.get(token) {
            publisher.input = rest;
        }
    }

    /// Takes what there is of `input`.
    ///
    /// # Errors
    /// Why the connection ends.
    fn handle(&mut self, token: u64, input: &mut &[u8]) -> Result<(), End> {
        let now_ms = self.shared.hub.now_ms();
        loop {
            let publisher = self.publishers.get(token).ok_or(End::Closed)?;
            match publisher.session.handle(input) {
                Err(error) => return Err(End::Protocol(error)),
                Ok(None) => return Ok(()),
                Ok(Some(Event::Publish { app, name, query })) => {
                    let Some(key) = stream_key(&app, &name) else {
                        self.refuse(token, &format!("{app}/{name}"), Refusal::Name)?;
                        continue;
                    };
                    // Each publication is a session of its own.
                    self.numbers += 1;
                    publisher.number = self.numbers;
                    match self.may(token, &key, Query(&query)) {
                        Ok(true) => {
                            let opened = self.open(token, &key);
                            self.decide(token, key, opened)?;
                        }
                        // The answer comes; nothing is read meanwhile.
                        Ok(false) => {}
                        Err(refusal) => self.refuse(token, &key, refusal)?,
                    }
                }
                Ok(Some(Event::Refused(refusal))) => {
                    let address = publisher.peer;
                    self.log_refusal("", address, refusal);
                }
                Ok(Some(Event::Tag(tag))) => {
                    if let Some(entry) = publisher.key.as_ref().and_then(|key| self.entries.get_mut(key)) {
                        entry.writer.take(&tag, &self.config.value().limits, now_ms)?;
                    }
                }
                Ok(Some(Event::Unpublish)) => {
                    if let Some(key) = publisher.key.take() {
                        publisher.deadline_ms = now_ms + silence_ms(self.config.value());
                        self.leave(&key, token, &End::Unpublished);
                    }
                }
                Ok(Some(_)) => {}
            }
        }
    }

    /// Who is silent, and which streams are over.
    fn tick(&mut self, now_ms: u64) {
        for token in self.publishers.tokens() {
            let Some(publisher) = self.publishers.get(token) else { continue };
            let is_late = now_ms > publisher.deadline_ms;
            let end = match publisher.key {
                Some(_) => End::Silent,
                None if publisher.is_answered => End::Idle,
                None => End::Late,
            };
            if is_late {
                self.close(token, end);
            } else if let Err(end) = self.send(token) {
                self.close(token, end);
            }
        }
        self.describe_publications();
        let return_ms = self.config.value().limits.publish_return.as_micros() / 1_000;
        let mut gone = Vec::new();
        for (key, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.publisher.is_none()) {
            let away_ms = now_ms.saturating_sub(entry.gone_ms);
            if away_ms > return_ms && !entry.is_over {
                entry.is_over = true;
                entry.writer.end();
                self.shared.hub.announce(&entry.writer.stream);
            }
            if away_ms > return_ms + FAREWELL_MS {
                gone.push(key.clone());
            }
        }
        gone.iter().for_each(|key| self.forget(key));
    }
}

impl Publisher {
    /// Counts what it sent; whether that is more than it may send.
    fn measure(&mut self, now_ms: u64, bytes: u64, config: &ServeConfig) -> bool {
        let (since_ms, sent) = self.measured;
        let elapsed_ms = now_ms.saturating_sub(since_ms);
        if elapsed_ms >= MEASURE_MS {
            if since_ms > 0 {
                self.bits_per_second = sent * 8_000 / elapsed_ms;
            }
            self.measured = (now_ms, 0);
        }
        self.measured.1 += bytes;
        let limit = config.limits.publish_bitrate.map(|rate| rate.bits_per_second() / 8 * MEASURE_MS / 1_000);
        limit.is_some_and(|limit| self.measured.1 > limit)
    }
}

/// How many connections of publishers one address may have.
fn per_address(config: &ServeConfig) -> u32 {
    config.limits.per_address.min(ADDRESS_MAX)
}

/// After how much silence a publisher is closed.
fn silence_ms(config: &ServeConfig) -> u64 {
    config.limits.publish_silence.as_micros() / 1_000
}
