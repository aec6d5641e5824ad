//! The thread that publishers send to: RTMP in, streams in the hub out.

mod segments;
mod writer;

use crate::hooks::{self, Verdict, Waiter};
use crate::http::{Query, Target};
use crate::hub::{Signal, View};
use crate::shared::Shared;
use crate::slab::Slab;
use crate::token::is_same;
use host::HostError;
use host::poll::{Poller, Ready};
use host::socket::Tcp;
use media::rtmp::{Event, Limits, Refusal, Session};
use model::{LogLevel, ServeConfig};
use rustls::crypto::SecureRandom;
use serde_json::json;
use std::collections::HashMap;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use writer::Writer;

/// How long what is over can still be played, milliseconds.
const FAREWELL_MS: u64 = 30_000;
/// Connections of publishers, and of those who have not said what they want, at a time.
const CONNECTIONS_MAX: usize = 4_096;
/// Bytes of a part of a stream's key.
const PART_BYTES_MAX: usize = 128;
/// Parts of a stream's key: a path of [`Target::PARTS_MAX`] has the session's id and the file as well.
const KEY_PARTS_MAX: usize = Target::PARTS_MAX - 2;
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
    session: Session,
    /// What the session did not take yet.
    input: Vec<u8>,
    /// What an application was asked about it.
    asked: Option<Asked>,
    /// Tells publishers apart, for applications.
    number: u64,
    /// The stream it publishes.
    key: Option<Box<str>>,
    /// What it sent since when, for its bit rate.
    measured: (u64, u64),
    /// When it is closed unless it sends something.
    deadline_ms: u64,
}

#[derive(Debug)]
struct Asked {
    number: u64,
    key: Box<str>,
}

/// A stream's writer, and since when nobody publishes.
#[derive(Debug)]
struct Entry {
    writer: Writer,
    publisher: Option<u64>,
    began_ms: u64,
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
        let (publishers, entries, scratch) = (Slab::new(), HashMap::new(), vec![0; SCRATCH]);
        Ok(Self { shared, poller, listeners, publishers, entries, config, signal, numbers, random, scratch })
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
            self.config.refresh(&self.shared.hub.config);
            for event in &ready {
                match event.token {
                    SIGNAL => self.signal.lower(),
                    token if token & CONNECTION != 0 => self.read(token & !CONNECTION),
                    listener => self.accept(listener as usize),
                }
            }
            for key in self.shared.hub.kicked_publishers() {
                if let Some(token) = self.entries.get(&key).and_then(|entry| entry.publisher) {
                    self.close(token, "an operator ended it");
                }
            }
            for answer in self.shared.hooks.answers(self.shared.hub.signals.len() - 1) {
                self.settle(answer);
            }
            let now_ms = self.shared.hub.now_ms();
            if now_ms >= ticked_ms + 250 {
                ticked_ms = now_ms;
                self.tick(now_ms);
            }
        }
        for token in self.publishers.tokens() {
            self.close(token, "the server ends");
        }
        Ok(())
    }

    fn accept(&mut self, at: usize) {
        while let Ok(Some((socket, peer))) = self.listeners[at].accept_from() {
            let mut random = [0; 1536];
            if self.publishers.len() >= CONNECTIONS_MAX || self.random.fill(&mut random).is_err() {
                continue;
            }
            let head_ms = self.config.value().limits.head_time.as_micros() / 1_000;
            let deadline_ms = self.shared.hub.now_ms() + head_ms;
            let session = Session::new(random, Limits::default());
            self.numbers += 1;
            let number = self.numbers;
            let (input, asked, key) = (Vec::new(), None, None);
            let publisher =
                Publisher { socket, peer, session, input, asked, number, key, measured: (0, 0), deadline_ms };
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
        let got = match publisher.socket.receive(&mut self.scratch) {
            Ok(Some(got @ 1..)) => got,
            Ok(None) => return,
            Ok(Some(_)) => return self.close(token, "it closed the connection"),
            Err(error) => return self.close(token, &error.to_string()),
        };
        let now_ms = self.shared.hub.now_ms();
        if publisher.key.is_some() {
            publisher.deadline_ms = now_ms + silence_ms(self.config.value());
        }
        if now_ms.saturating_sub(publisher.measured.0) >= MEASURE_MS {
            publisher.measured = (now_ms, 0);
        }
        publisher.measured.1 += got as u64;
        let most =
            self.config.value().limits.publish_bitrate.map(|rate| rate.bits_per_second() / 8 * MEASURE_MS / 1_000);
        if most.is_some_and(|most| publisher.measured.1 > most) {
            return self.close(token, "it sends more than limits.publish_bitrate");
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
        let is_sent = self.send(token);
        match (self.publishers.get(token), handled) {
            (Some(publisher), Ok(())) if is_sent => publisher.input = rest,
            (_, Err(why)) => self.close(token, &why),
            _ => self.close(token, "it takes no answer"),
        }
    }

    /// Takes what there is of `input`; or why the connection ends.
    fn handle(&mut self, token: u64, input: &mut &[u8]) -> Result<(), String> {
        let gone = || "it has gone".to_owned();
        loop {
            let publisher = self.publishers.get(token).ok_or_else(gone)?;
            match publisher.session.handle(input) {
                Err(error) => return Err(error.to_string()),
                Ok(None) => return Ok(()),
                Ok(Some(Event::Publish { app, name, query })) => {
                    let Some(key) = stream_key(&app, &name) else {
                        self.refuse(token, &format!("{app}/{name}"), Refusal::Name)?;
                        continue;
                    };
                    match self.may(token, &key, Query(&query)) {
                        Ok(true) => self.decide(token, key, Verdict::Allowed)?,
                        // The answer comes; nothing is read meanwhile.
                        Ok(false) => {}
                        Err(refusal) => self.refuse(token, &key, refusal)?,
                    }
                }
                Ok(Some(Event::Tag(tag))) => {
                    if let Some(entry) = publisher.key.as_ref().and_then(|key| self.entries.get_mut(key)) {
                        let taken = entry.writer.take(&tag, &self.config.value().limits);
                        taken
                            .map_err(|_| "its video has no keyframe for longer than limits.gop or limits.gop_bytes")?;
                    }
                }
                Ok(Some(Event::Unpublish)) => {
                    if let Some(key) = publisher.key.take() {
                        publisher.deadline_ms = self.shared.hub.now_ms() + silence_ms(self.config.value());
                        self.leave(&key, token, "it ended the stream");
                    }
                }
                Ok(Some(_)) => {}
            }
        }
    }

    /// Whether somebody may publish `key`, as far as that is known: an application may have been asked.
    fn may(&mut self, token: u64, key: &str, query: Query<'_>) -> Result<bool, Refusal> {
        let (_, config) = self.shared.hub.config.get();
        let given = query.get("key");
        if let Some(key) = &config.auth.publish_key
            && given.as_deref().is_none_or(|given| !is_same(given, key))
        {
            return Err(Refusal::Denied);
        }
        let is_busy = self.entries.get(key).is_some_and(|entry| entry.publisher.is_some());
        if is_busy && !config.auth.take_over {
            return Err(Refusal::Busy);
        }
        let publisher = self.publishers.get(token).ok_or(Refusal::Rejected)?;
        let number = publisher.number;
        let fields = json!({
            "stream": key,
            "address": publisher.peer.ip(),
            "session": format!("{number:x}"),
            "key_sha256": given.as_deref().map(hooks::digest),
            "query": query.without(&["key"]),
        });
        let waiter = Waiter { thread: self.shared.hub.signals.len() - 1, token, number };
        match self.shared.hooks.ask(hooks::Event::Publish, waiter, fields, None) {
            Some(Verdict::Allowed) => Ok(true),
            Some(verdict) => Err(refusal(verdict)),
            None => {
                publisher.asked = Some(Asked { number, key: key.into() });
                let patience = self.shared.hooks.patience().as_millis() as u64;
                publisher.deadline_ms = self.shared.hub.now_ms() + patience + 1_000;
                // What it sends before it is let in stays with the kernel.
                let _ = self.poller.remove(&publisher.socket);
                Ok(false)
            }
        }
    }

    /// An application has answered.
    fn settle(&mut self, answer: hooks::Answer) {
        let hooks::Answer { waiter, verdict } = answer;
        let Some(publisher) = self.publishers.get(waiter.token) else { return };
        let Some(asked) = publisher.asked.take_if(|asked| asked.number == waiter.number) else { return };
        if self.poller.add_readable(&publisher.socket, waiter.token | CONNECTION).is_err() {
            return self.close(waiter.token, "there is no room to wait for it");
        }
        let input = std::mem::take(&mut publisher.input);
        match self.decide(waiter.token, asked.key, verdict) {
            Ok(()) => self.proceed(waiter.token, &input),
            Err(why) => self.close(waiter.token, &why),
        }
    }

    /// Lets somebody publish who may, and refuses others; why the connection ends if it does.
    fn decide(&mut self, token: u64, key: Box<str>, verdict: Verdict) -> Result<(), String> {
        let opened = if verdict == Verdict::Allowed { self.open(token, &key) } else { Err(refusal(verdict)) };
        if let Err(refusal) = opened {
            return self.refuse(token, &key, refusal);
        }
        let now_ms = self.shared.hub.now_ms();
        let publisher = self.publishers.get(token).ok_or("it has gone")?;
        let address = publisher.peer.to_string();
        self.shared
            .log
            .event(LogLevel::Info, "publish", || vec![("stream", (*key).into()), ("address", address.into())]);
        publisher.session.accept();
        publisher.deadline_ms = now_ms + silence_ms(self.config.value());
        publisher.key = Some(key);
        Ok(())
    }

    fn refuse(&mut self, token: u64, key: &str, refusal: Refusal) -> Result<(), String> {
        let publisher = self.publishers.get(token).ok_or("it has gone")?;
        let address = publisher.peer.to_string();
        self.shared.log.event(LogLevel::Warn, "publish-refused", || {
            vec![("stream", key.into()), ("address", address.into()), ("why", refusal.reason().into())]
        });
        publisher.deadline_ms = self.shared.hub.now_ms() + silence_ms(self.config.value());
        publisher.session.refuse(refusal);
        Ok(())
    }

    /// Makes a stream ready for its publisher.
    fn open(&mut self, token: u64, key: &str) -> Result<(), Refusal> {
        let (_, config) = self.shared.hub.config.get();
        if let Some(entry) = self.entries.get(key) {
            match entry.publisher {
                Some(_) if !config.auth.take_over => return Err(Refusal::Busy),
                Some(other) => self.close(other, "another publisher took over"),
                None => {}
            }
        }
        if self.entries.get(key).is_some_and(|entry| entry.is_over) {
            self.forget(key);
        }
        let began_ms = self.shared.hub.now_ms();
        if let Some(entry) = self.entries.get_mut(key) {
            entry.writer.restart();
            (entry.publisher, entry.began_ms) = (Some(token), began_ms);
            return Ok(());
        }
        let hub = &self.shared.hub;
        let stream = hub.open(key).ok_or(Refusal::Full)?;
        let writer = Writer::new(stream, config.hls.target.as_micros() / 1_000, config.hls.window as usize);
        let entry = Entry { writer, publisher: Some(token), began_ms, gone_ms: 0, is_over: false };
        self.entries.insert(key.into(), entry);
        Ok(())
    }

    /// A publisher no longer publishes a stream.
    fn leave(&mut self, key: &str, token: u64, why: &str) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.publisher == Some(token)) else { return };
        (entry.publisher, entry.gone_ms) = (None, self.shared.hub.now_ms());
        entry.writer.pause();
        self.shared.hub.announce(&entry.writer.stream);
        self.shared.log.event(LogLevel::Info, "unpublish", || vec![("stream", key.into()), ("why", why.into())]);
        let fields = json!({
            "stream": key,
            "why": why,
            "published_ms": entry.gone_ms.saturating_sub(entry.began_ms),
            "received_bytes": entry.writer.stream.received_bytes.load(Ordering::Relaxed),
        });
        self.shared.hooks.tell(hooks::Event::Unpublish, fields);
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
            match publisher.socket.send_parts(&[IoSlice::new(publisher.session.output())]) {
                Ok(Some(sent)) => publisher.session.sent(sent),
                // The rest goes with what comes next, or with the tick; the session bounds it.
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn close(&mut self, token: u64, why: &str) {
        let _ = self.send(token);
        let Some(publisher) = self.publishers.remove(token) else { return };
        if let Some(key) = publisher.key {
            self.leave(&key, token, why);
        }
    }

    /// Who is silent, and which streams are over.
    fn tick(&mut self, now_ms: u64) {
        for token in self.publishers.tokens() {
            let is_late = self.publishers.get(token).is_some_and(|publisher| now_ms > publisher.deadline_ms);
            if is_late {
                self.close(token, "it was silent");
            } else if !self.send(token) {
                self.close(token, "it takes no answer");
            }
        }
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

/// After how much silence a publisher is closed.
fn silence_ms(config: &ServeConfig) -> u64 {
    config.limits.publish_silence.as_micros() / 1_000
}

/// How a publisher is refused on a verdict that is not [`Verdict::Allowed`].
const fn refusal(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Allowed | Verdict::Denied => Refusal::Forbidden,
        Verdict::Unanswered => Refusal::Unanswered,
    }
}

/// The key of the stream `name` in the application `app`: the parts of both, divided by slashes. Encoders divide a path of several parts
/// in different places: FFmpeg takes two parts as the application, GStreamer all but the last. `None` for names that no path can hold.
fn stream_key(app: &str, name: &str) -> Option<Box<str>> {
    let is_part = |part: &&str| {
        let odd = |c: char| c.is_control() || c == '\\';
        !part.is_empty() && part.len() <= PART_BYTES_MAX && *part != "." && *part != ".." && !part.contains(odd)
    };
    let parts: Vec<&str> = app.trim_end_matches('/').split('/').chain(name.split('/')).collect();
    (parts.len() <= KEY_PARTS_MAX && parts.iter().all(is_part)).then(|| parts.join("/").into())
}

#[cfg(test)]
mod tests {
    use super::stream_key;

    #[test]
    fn a_key_is_the_same_wherever_an_encoder_divides_the_path() {
        for (app, name) in [("live/sub", "cam"), ("live", "sub/cam"), ("live/sub/", "cam")] {
            assert_eq!(stream_key(app, name).as_deref(), Some("live/sub/cam"));
        }
        let long = "x".repeat(129);
        for (app, name) in [
            ("", "cam"),
            ("live", ""),
            ("live//a", "cam"),
            ("..", "cam"),
            ("live", "./cam"),
            ("a\\b", "c"),
            ("live", &long),
            ("a/b/c", "d/e/f/g"),
        ] {
            assert_eq!(stream_key(app, name), None, "{app} {name}");
        }
    }
}
