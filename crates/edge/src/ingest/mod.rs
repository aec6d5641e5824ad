//! The thread that publishers send to: RTMP in, streams in the hub out.

mod segments;
mod writer;

use crate::http::Query;
use crate::slab::Slab;
use crate::worker::Shared;
use host::HostError;
use host::poll::{Poller, Ready};
use host::socket::Tcp;
use media::rtmp::{Event, Limits, Refusal, Session};
use rustls::crypto::SecureRandom;
use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use writer::Writer;

/// How long a publisher may be away before its viewers are told that the stream is over, milliseconds.
const GRACE_MS: u64 = 15_000;
/// How long what is over can still be played, milliseconds.
const FAREWELL_MS: u64 = 30_000;
/// A publisher that sends nothing for so long has gone, milliseconds.
const SILENCE_MS: u64 = 30_000;
/// Connections of publishers, and of those who have not said what they want, at a time.
const CONNECTIONS_MAX: usize = 4_096;
/// Bytes of a name.
const NAME_MAX: usize = 128;
/// Bytes read at a time.
const SCRATCH: usize = 256 << 10;
const CONNECTION: u64 = 1 << 63;

#[derive(Debug)]
struct Publisher {
    socket: Tcp,
    session: Session,
    /// What the session did not take yet.
    input: Vec<u8>,
    /// The stream it publishes.
    key: Option<Box<str>>,
    /// When it is closed unless it sends something.
    deadline_ms: u64,
}

/// A stream's writer, and since when nobody publishes.
#[derive(Debug)]
struct Entry {
    writer: Writer,
    publisher: Option<u64>,
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
    entries: HashMap<Box<str>, Entry>,
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
        for (at, listener) in listeners.iter().enumerate() {
            poller.add_readable(listener, at as u64)?;
        }
        let random = rustls::crypto::ring::default_provider().secure_random;
        let (publishers, entries) = (Slab::new(), HashMap::new());
        Ok(Self { shared, poller, listeners, publishers, entries, random, scratch: vec![0; SCRATCH] })
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
            for event in &ready {
                match event.token {
                    token if token & CONNECTION != 0 => self.read(token & !CONNECTION),
                    listener => self.accept(listener as usize),
                }
            }
            let now_ms = self.shared.hub.now_ms();
            if now_ms >= ticked_ms + 250 {
                ticked_ms = now_ms;
                self.tick(now_ms);
            }
        }
        Ok(())
    }

    fn accept(&mut self, at: usize) {
        while let Ok(Some((socket, _))) = self.listeners[at].accept_from() {
            let mut random = [0; 1536];
            if self.publishers.len() >= CONNECTIONS_MAX || self.random.fill(&mut random).is_err() {
                continue;
            }
            let head_ms = self.shared.hub.config.limits.head_time.as_micros() / 1_000;
            let deadline_ms = self.shared.hub.now_ms() + head_ms;
            let session = Session::new(random, Limits::default());
            let publisher = Publisher { socket, session, input: Vec::new(), key: None, deadline_ms };
            let token = self.publishers.insert(publisher);
            if let Some(publisher) = self.publishers.get(token)
                && self.poller.add_readable(&publisher.socket, token | CONNECTION).is_err()
            {
                self.publishers.remove(token);
            }
        }
    }

    /// Takes what a publisher sent; what it made is one block for all viewers.
    fn read(&mut self, token: u64) {
        let Some(publisher) = self.publishers.get(token) else { return };
        let Ok(Some(got @ 1..)) = publisher.socket.receive(&mut self.scratch) else { return self.close(token) };
        if publisher.key.is_some() {
            publisher.deadline_ms = self.shared.hub.now_ms() + SILENCE_MS;
        }
        let mut bytes = std::mem::take(&mut publisher.input);
        bytes.extend_from_slice(&self.scratch[..got]);
        let mut input: &[u8] = &bytes;
        let is_well = self.handle(token, &mut input);
        let rest = input.to_vec();
        let key = self.publishers.get(token).and_then(|publisher| publisher.key.clone());
        if let Some(entry) = key.and_then(|key| self.entries.get_mut(&key)) {
            entry.writer.flush();
            self.shared.hub.announce(&entry.writer.stream);
        }
        let is_sent = self.send(token);
        match self.publishers.get(token) {
            Some(publisher) if is_well && is_sent => publisher.input = rest,
            _ => self.close(token),
        }
    }

    /// Whether the connection goes on.
    fn handle(&mut self, token: u64, input: &mut &[u8]) -> bool {
        loop {
            let Some(publisher) = self.publishers.get(token) else { return false };
            match publisher.session.handle(input) {
                Err(_) => return false,
                Ok(None) => return true,
                Ok(Some(Event::Publish { app, name, query })) => {
                    let verdict = self.admit(token, &app, &name, &query);
                    let now_ms = self.shared.hub.now_ms();
                    let Some(publisher) = self.publishers.get(token) else { return false };
                    match verdict {
                        Ok(key) => {
                            publisher.session.accept();
                            publisher.deadline_ms = now_ms + SILENCE_MS;
                            publisher.key = Some(key);
                        }
                        Err(refusal) => publisher.session.refuse(refusal),
                    }
                }
                Ok(Some(Event::Tag(tag))) => {
                    if let Some(entry) = publisher.key.as_ref().and_then(|key| self.entries.get_mut(key)) {
                        entry.writer.take(&tag);
                    }
                }
                Ok(Some(Event::Unpublish)) => {
                    if let Some(key) = publisher.key.take() {
                        publisher.deadline_ms = self.shared.hub.now_ms() + SILENCE_MS;
                        self.leave(&key, token);
                    }
                }
                Ok(Some(_)) => {}
            }
        }
    }

    /// Makes the stream ready for a publisher who may publish it; its key.
    fn admit(&mut self, token: u64, app: &str, name: &str, query: &str) -> Result<Box<str>, Refusal> {
        let is_name = |name: &str| {
            let odd = |c: char| c.is_control() || c == '/' || c == '\\';
            !name.is_empty() && name.len() <= NAME_MAX && name != "." && name != ".." && !name.contains(odd)
        };
        if !is_name(app) || !is_name(name) {
            return Err(Refusal::Rejected);
        }
        let config = &self.shared.hub.config;
        if let Some(key) = &config.auth.publish_key
            && Query(query).get("key").is_none_or(|given| given != key.as_str())
        {
            return Err(Refusal::Denied);
        }
        let key: Box<str> = format!("{app}/{name}").into();
        if let Some(entry) = self.entries.get(&key) {
            match entry.publisher {
                Some(_) if !config.auth.take_over => return Err(Refusal::Busy),
                Some(other) => self.close(other),
                None => {}
            }
        }
        if self.entries.get(&key).is_some_and(|entry| entry.is_over) {
            self.forget(&key);
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.writer.restart();
            entry.publisher = Some(token);
            return Ok(key);
        }
        let hub = &self.shared.hub;
        let stream = hub.open(&key).ok_or(Refusal::Rejected)?;
        let writer = Writer::new(stream, hub.config.hls.target.as_micros() / 1_000, hub.config.hls.window as usize);
        self.entries.insert(key.clone(), Entry { writer, publisher: Some(token), gone_ms: 0, is_over: false });
        Ok(key)
    }

    /// A publisher no longer publishes a stream.
    fn leave(&mut self, key: &str, token: u64) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.publisher == Some(token)) else { return };
        (entry.publisher, entry.gone_ms) = (None, self.shared.hub.now_ms());
        entry.writer.pause();
        self.shared.hub.announce(&entry.writer.stream);
    }

    fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.shared.hub.close(&entry.writer.stream);
        }
    }

    /// Sends what the session has to say; whether the connection is well.
    fn send(&mut self, token: u64) -> bool {
        let Some(publisher) = self.publishers.get(token) else { return false };
        while !publisher.session.output().is_empty() {
            match publisher.socket.send_parts(&[IoSlice::new(publisher.session.output())], false) {
                Ok(Some(sent)) => publisher.session.sent(sent),
                // The rest goes with what comes next, or with the tick; the session bounds it.
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn close(&mut self, token: u64) {
        let _ = self.send(token);
        let Some(publisher) = self.publishers.remove(token) else { return };
        if let Some(key) = publisher.key {
            self.leave(&key, token);
        }
    }

    /// Who is silent, and which streams are over.
    fn tick(&mut self, now_ms: u64) {
        for token in self.publishers.tokens() {
            let is_late = self.publishers.get(token).is_some_and(|publisher| now_ms > publisher.deadline_ms);
            if is_late || !self.send(token) {
                self.close(token);
            }
        }
        let mut gone = Vec::new();
        for (key, entry) in self.entries.iter_mut().filter(|(_, entry)| entry.publisher.is_none()) {
            let away_ms = now_ms.saturating_sub(entry.gone_ms);
            if away_ms > GRACE_MS && !entry.is_over {
                entry.is_over = true;
                entry.writer.end();
                self.shared.hub.announce(&entry.writer.stream);
            }
            if away_ms > GRACE_MS + FAREWELL_MS {
                gone.push(key.clone());
            }
        }
        gone.iter().for_each(|key| self.forget(key));
    }
}
