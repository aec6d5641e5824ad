//! How publishers end: the reason goes to the publisher, into the log, to the API and to applications.

use super::Intake;
use super::end::End;
use crate::hooks;
use serde_json::json;
use std::io::{ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_model::LogLevel;

/// How long a connection that the server ends is kept, so that its publisher can read why, milliseconds. Closed with data unread, the
/// kernel resets it, and the reason is lost with what else was on its way.
const LINGER_MS: u64 = 2_000;

impl Intake {
    /// A publisher no longer publishes a stream.
    pub(super) fn leave(&mut self, key: &str, token: u64, end: &End) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.publisher == Some(token)) else { return };
        (entry.publisher, entry.gone_ms) = (None, self.shared.hub.now_ms());
        entry.writer.pause();
        self.shared.hub.announce(&entry.writer.stream);
        let why = end.to_string();
        let mut publication = (*entry.writer.stream.publication.get().1).clone();
        entry.writer.describe(&mut publication);
        (publication.ended_ms, publication.why) = (Some(entry.gone_ms), Some(why.clone()));
        let address = publication.address.clone();
        entry.writer.stream.publication.set(publication);
        self.shared.log.event(LogLevel::Info, "unpublish", || {
            vec![("stream", key.into()), ("why", why.as_str().into()), ("address", address.into())]
        });
        let fields = json!({
            "stream": key,
            "session": self.publishers.get(token).map(|publisher| session(publisher.number)),
            "why": why,
            "published_ms": entry.gone_ms.saturating_sub(entry.began_ms),
            "received_bytes": entry.writer.stream.received_bytes.load(Ordering::Relaxed) - entry.received_before,
        });
        self.shared.hooks.tell(hooks::Event::Unpublish, fields);
    }

    /// Informs applications that a stream they accepted is not published.
    pub(super) fn unpublished(&self, key: &str, number: u64, why: &str) {
        let fields = json!({
            "stream": key, "session": session(number), "why": why, "published_ms": 0, "received_bytes": 0
        });
        self.shared.hooks.tell(hooks::Event::Unpublish, fields);
    }

    /// Ends all connections of publishers, and waits until applications have answered: `on_unpublish` follows an `on_publish` that
    /// they accept.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub(super) fn drain(&mut self) -> Result<(), HostError> {
        for token in self.publishers.tokens() {
            self.close(token, End::Drained);
        }
        for listener in self.listeners.drain(..) {
            self.poller.remove(&listener)?;
        }
        let until = Instant::now() + self.config.value().limits.drain.to_duration();
        let mut ready = Vec::new();
        while !self.asked.is_empty() && Instant::now() < until {
            ready.clear();
            self.poller.wait(Some(Duration::from_millis(250)), &mut ready)?;
            self.signal.lower();
            self.settle_all();
        }
        // The application may accept what it has not answered yet.
        for (number, asked) in std::mem::take(&mut self.asked) {
            self.unpublished(&asked.key, number, &End::Drained.to_string());
        }
        Ok(())
    }

    /// Forgets the stream that has been over for the longest time, if one is: it makes room for another.
    pub(super) fn forget_oldest(&mut self) {
        let over = self.entries.iter().filter(|(_, entry)| entry.is_over);
        if let Some(key) = over.min_by_key(|(_, entry)| entry.gone_ms).map(|(key, _)| key.clone()) {
            self.forget(&key);
        }
    }

    pub(super) fn forget(&mut self, key: &str) {
        if let Some(entry) = self.entries.remove(key) {
            self.shared.hub.close(&entry.writer.stream);
        }
    }

    /// Sends what the session has to say.
    ///
    /// # Errors
    /// How the connection ended.
    pub(super) fn send(&mut self, token: u64) -> Result<(), End> {
        let publisher = self.publishers.get(token).ok_or(End::Closed)?;
        while !publisher.session.output().is_empty() {
            match publisher.socket.send_parts(&[IoSlice::new(publisher.session.output())]) {
                Ok(Some(sent)) => publisher.session.sent(sent),
                // The rest goes with what comes next, or with the tick; the session bounds it.
                Ok(None) => return Ok(()),
                Err(error) if error.source.kind() == ErrorKind::BrokenPipe => return Err(End::Closed),
                Err(error) => return Err(End::Broken(error)),
            }
        }
        Ok(())
    }

    /// Logs the end of a connection that published nothing.
    pub(super) fn closed(&self, address: SocketAddr, end: &End) {
        self.shared.log.event(LogLevel::Info, "publisher-closed", || {
            vec![("address", address.to_string().into()), ("why", end.to_string().into())]
        });
    }

    /// Ends a publisher's connection. If the server ends it, the publisher is sent the reason and has [`LINGER_MS`] to read it.
    pub(super) fn close(&mut self, token: u64, end: End) {
        let Some(publisher) = self.publishers.get(token) else { return };
        if publisher.is_ending {
            return self.remove(token);
        }
        if let Some(asked) = self.asked.get_mut(&publisher.number) {
            asked.ended = Some(end.to_string());
        }
        if end.is_by_server() {
            publisher.session.close(&end.to_string());
        }
        let (key, address) = (publisher.key.take(), publisher.peer);
        let is_sent = self.send(token).is_ok();
        match key {
            Some(key) => self.leave(&key, token, &end),
            None => self.closed(address, &end),
        }
        let lingers = is_sent && end.is_by_server() && !matches!(end, End::Drained);
        let Some(publisher) = self.publishers.get(token) else { return };
        if lingers && publisher.socket.end_sending().is_ok() {
            publisher.is_ending = true;
            publisher.deadline_ms = self.shared.hub.now_ms() + LINGER_MS;
        } else {
            self.remove(token);
        }
    }

    /// Closes a connection, and gives back its share of the connections.
    pub(super) fn remove(&mut self, token: u64) {
        if let Some(publisher) = self.publishers.remove(token) {
            self.connections.leave(publisher.counted);
        }
    }

    /// Brings what operators see of publishers up to date.
    pub(super) fn describe_publications(&mut self) {
        for entry in self.entries.values() {
            let Some(publisher) = entry.publisher.and_then(|token| self.publishers.get(token)) else { continue };
            let before = entry.writer.stream.publication.get().1;
            let mut publication = (*before).clone();
            publication.bits_per_second = publisher.bits_per_second;
            entry.writer.describe(&mut publication);
            if publication != *before {
                entry.writer.stream.publication.set(publication);
            }
        }
    }
}

/// A publisher as applications know it.
pub(super) fn session(number: u64) -> String {
    format!("{number:x}")
}
