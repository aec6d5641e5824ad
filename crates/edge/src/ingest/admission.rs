//! Who may publish: names, keys, applications that are asked, and streams that are opened.

use super::closing::session;
use super::end::End;
use super::writer::Writer;
use super::{Asked, CONNECTION, Entry, Intake, silence_ms};
use crate::hooks::{self, Verdict, Waiter};
use crate::http::{Query, Target, percent_decode};
use crate::hub::Publication;
use crate::token::is_same;
use serde_json::json;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use thalweg_media::rtmp::Refusal;
use thalweg_model::LogLevel;

/// Bytes of a part of a stream's key.
const PART_BYTES_MAX: usize = 128;
/// Parts of a stream's key: a path of [`Target::PARTS_MAX`] has the session's id and the file as well.
const KEY_PARTS_MAX: usize = Target::PARTS_MAX - 2;

impl Intake {
    /// Whether somebody may publish `key`, as far as that is known: an application may have been asked.
    pub(super) fn may(&mut self, token: u64, key: &str, query: Query<'_>) -> Result<bool, Refusal> {
        let (_, config) = self.shared.hub.config.get();
        let given = given_key(query, config.auth.publish_key.as_deref())?;
        let is_busy = self.entries.get(key).is_some_and(|entry| entry.publisher.is_some());
        if is_busy && !config.auth.take_over {
            return Err(Refusal::Busy);
        }
        let publisher = self.publishers.get(token).ok_or(Refusal::Rejected)?;
        let number = publisher.number;
        let fields = json!({
            "stream": key,
            "address": publisher.peer.ip(),
            "session": session(number),
            "key_sha256": given.as_deref().map(hooks::digest),
            "query": query.without(&["key"]),
        });
        let waiter = Waiter { thread: self.shared.hub.signals.len() - 1, token, number };
        match self.shared.hooks.ask(hooks::Event::Publish, waiter, fields, None) {
            Some(Verdict::Allowed) => Ok(true),
            Some(verdict) => Err(refusal(verdict)),
            None => {
                self.asked.insert(number, Asked { key: key.into(), ended: None });
                let patience = self.shared.hooks.patience().as_millis() as u64;
                publisher.deadline_ms = self.shared.hub.now_ms() + patience + 1_000;
                // What it sends before it is let in stays with the kernel.
                let _ = self.poller.remove(&publisher.socket);
                Ok(false)
            }
        }
    }

    /// Takes the answers that came from applications.
    pub(super) fn settle_all(&mut self) {
        for answer in self.shared.hooks.answers(self.shared.hub.signals.len() - 1) {
            self.settle(answer);
        }
    }

    /// An application has answered.
    fn settle(&mut self, answer: hooks::Answer) {
        let hooks::Answer { waiter: Waiter { token, number, .. }, verdict } = answer;
        let Some(Asked { key, ended }) = self.asked.remove(&number) else { return };
        let is_allowed = verdict == Verdict::Allowed;
        if let Some(why) = ended {
            if is_allowed {
                self.unpublished(&key, number, &why);
            }
            return;
        }
        let Some(publisher) = self.publishers.get(token) else { return };
        if self.poller.add_readable(&publisher.socket, token | CONNECTION).is_err() {
            if is_allowed {
                self.unpublished(&key, number, &End::NoRoom.to_string());
            }
            return self.close(token, End::NoRoom);
        }
        let input = std::mem::take(&mut publisher.input);
        let opened = if is_allowed { self.open(token, &key) } else { Err(refusal(verdict)) };
        if let (Err(refusal), true) = (opened, is_allowed) {
            self.unpublished(&key, number, refusal.reason());
        }
        match self.decide(token, key, opened) {
            Ok(()) => self.proceed(token, &input),
            Err(end) => self.close(token, end),
        }
    }

    /// Lets somebody publish whose stream was opened, and refuses others; why the connection ends if it does.
    pub(super) fn decide(&mut self, token: u64, key: Box<str>, opened: Result<(), Refusal>) -> Result<(), End> {
        if let Err(refusal) = opened {
            return self.refuse(token, &key, refusal);
        }
        let now_ms = self.shared.hub.now_ms();
        let publisher = self.publishers.get(token).ok_or(End::Closed)?;
        let address = publisher.peer.to_string();
        self.shared
            .log
            .event(LogLevel::Info, "publish", || vec![("stream", (*key).into()), ("address", address.into())]);
        publisher.session.accept();
        publisher.deadline_ms = now_ms + silence_ms(self.config.value());
        publisher.is_answered = true;
        let publication =
            Publication { address: publisher.peer.to_string(), began_ms: now_ms, ..Publication::default() };
        if let Some(entry) = self.entries.get(&key) {
            entry.writer.stream.publication.set(publication);
        }
        publisher.key = Some(key);
        Ok(())
    }

    pub(super) fn refuse(&mut self, token: u64, key: &str, refusal: Refusal) -> Result<(), End> {
        let publisher = self.publishers.get(token).ok_or(End::Closed)?;
        publisher.deadline_ms = self.shared.hub.now_ms() + silence_ms(self.config.value());
        publisher.is_answered = true;
        publisher.session.refuse(refusal);
        let address = publisher.peer;
        self.log_refusal(key, address, refusal);
        Ok(())
    }

    pub(super) fn log_refusal(&self, key: &str, address: SocketAddr, refusal: Refusal) {
        self.shared.log.event(LogLevel::Warn, "publish-refused", || {
            vec![("stream", key.into()), ("address", address.to_string().into()), ("why", refusal.reason().into())]
        });
    }

    /// Makes a stream ready for its publisher.
    pub(super) fn open(&mut self, token: u64, key: &str) -> Result<(), Refusal> {
        let (_, config) = self.shared.hub.config.get();
        if let Some(entry) = self.entries.get(key) {
            match entry.publisher {
                Some(_) if !config.auth.take_over => return Err(Refusal::Busy),
                Some(other) => self.close(other, End::TakenOver),
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
            entry.received_before = entry.writer.stream.received_bytes.load(Ordering::Relaxed);
            return Ok(());
        }
        let stream = match self.shared.hub.open(key) {
            Some(stream) => stream,
            None => {
                self.forget_oldest();
                self.shared.hub.open(key).ok_or(Refusal::Full)?
            }
        };
        let writer = Writer::new(stream, config.hls.target.as_micros() / 1_000, config.hls.window as usize);
        let publisher = Some(token);
        let entry = Entry { writer, publisher, began_ms, received_before: 0, gone_ms: 0, is_over: false };
        self.entries.insert(key.into(), entry);
        Ok(())
    }
}

/// The key that a publisher gave, if `wanted` asks for none or it is that one. Encoders send a URL's query as it was typed, so a key is
/// right as it was written, and with its percent escapes decoded. It is no form (WHATWG URL standard §5.1): a plus sign is itself.
fn given_key<'a>(query: Query<'a>, wanted: Option<&str>) -> Result<Option<Cow<'a, str>>, Refusal> {
    let written = query.written("key").map(Cow::Borrowed);
    let decoded = query.written("key").and_then(percent_decode);
    match wanted {
        None => Ok(decoded.or(written)),
        Some(wanted) => {
            let given = [written, decoded].into_iter().flatten().find(|given| is_same(given, wanted));
            given.map(Some).ok_or(Refusal::Denied)
        }
    }
}

/// How a publisher is refused on a verdict that is not [`Verdict::Allowed`].
const fn refusal(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Allowed | Verdict::Denied => Refusal::Forbidden,
        Verdict::Unanswered => Refusal::Unanswered,
    }
}

/// The key of the stream `name` in the application `app`: the parts of both, divided by slashes. Encoders divide a path of several parts
/// in different places: FFmpeg takes two parts as the application, GStreamer all but the last. Each part is decoded as a viewer's path is,
/// so that the path that was published is the path to play; a part whose escapes make no sense is taken as it is written. `None` for
/// names that no path can hold.
pub(super) fn stream_key(app: &str, name: &str) -> Option<Box<str>> {
    let is_part = |part: &Cow<'_, str>| {
        let odd = |c: char| c.is_control() || c == '/' || c == '\\';
        !part.is_empty() && part.len() <= PART_BYTES_MAX && *part != "." && *part != ".." && !part.contains(odd)
    };
    let raw = app.trim_end_matches('/').split('/').chain(name.split('/'));
    let parts: Vec<_> = raw.map(|part| percent_decode(part).unwrap_or(Cow::Borrowed(part))).collect();
    (parts.len() <= KEY_PARTS_MAX && parts.iter().all(is_part)).then(|| parts.join("/").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_right_as_it_was_written_and_escaped() {
        let is_right = |query: &str, key: &str| given_key(Query(query), Some(key)).is_ok();
        for (query, key) in [
            ("key=abc+defghi", "abc+defghi"),
            ("key=abc%2Bdefghi", "abc+defghi"),
            ("key=abc%2Bdef%26ghi%2f==", "abc+def&ghi/=="),
            ("key=100%25sure", "100%25sure"),
            ("key=100%25sure", "100%sure"),
            ("a=1&key=100%zz", "100%zz"),
        ] {
            assert!(is_right(query, key), "{query} {key}");
        }
        for (query, key) in [("key=abc+defghi", "abc defghi"), ("", "abcdefgh"), ("key=abc+def&ghi", "abc+def&ghi")] {
            assert!(!is_right(query, key), "{query} {key}");
        }
        assert_eq!(given_key(Query("key=a%20b"), None), Ok(Some(Cow::Borrowed("a b"))));
    }

    #[test]
    fn a_key_is_the_same_wherever_an_encoder_divides_the_path() {
        for (app, name) in [("live/sub", "cam"), ("live", "sub/cam"), ("live/sub/", "cam")] {
            assert_eq!(stream_key(app, name).as_deref(), Some("live/sub/cam"));
        }
        for (name, key) in
            [("my%20cam", "live/my cam"), ("%e4%b8%ad", "live/中"), ("100%", "live/100%"), ("%zz", "live/%zz")]
        {
            assert_eq!(stream_key("live", name).as_deref(), Some(key));
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
            ("live", "a%2fb"),
            ("live", "%2e%2e"),
            ("live", "a%0ab"),
        ] {
            assert_eq!(stream_key(app, name), None, "{app} {name}");
        }
    }
}
