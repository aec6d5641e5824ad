//! The router: which handler answers a request, and whether the viewer may play.

use super::connection::Body;
use super::denied::Denied;
use crate::hooks::{self, Event, Verdict, Waiter};
use crate::http::{CORS, Head, Method, Request, Status, Target, imf_fixdate};
use crate::hub::{Block, CONTAINER, Hls, Stream, View};
use crate::session_stats::SessionStats;
use crate::shared::Shared;
use crate::token::{Admission, BOUND, Keys, Session};
use crate::viewer::{Protocol, Who};
use crate::viewer_registry::Full;
use serde_json::json;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thalweg_model::ServeConfig;

/// Bytes of a `User-Agent` that are kept.
const AGENT_MAX: usize = 200;
/// Bits of a session's number below its time in milliseconds.
const NUMBER_TIME_SHIFT: u32 = 20;

/// A response without its head.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Body,
    pub(super) close: bool,
    pub(super) session: Option<u64>,
}

/// What a worker holds of a stream.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) stream: Arc<Stream>,
    pub(super) hls: View<Hls>,
    pub(super) blocks: VecDeque<Arc<Block>>,
    /// Tokens of connections with live responses, and of those that wait for the first playlist.
    pub(super) attending: Vec<u64>,
}

/// The state from which a worker answers viewers.
#[derive(Debug)]
pub(super) struct Router {
    shared: Arc<Shared>,
    pub(super) stats: SessionStats,
    pub(super) locals: HashMap<Box<str>, Local>,
    /// Sessions that an operator ended, and until when they are refused, milliseconds since 1970.
    pub(super) banned: HashMap<u64, u64>,
    pub(super) config: View<ServeConfig>,
    pub(super) keys: Keys,
    /// Viewers that an application was asked about, by the numbers of their sessions.
    asked: HashMap<u64, Who>,
    /// An application's verdict on the request that is answered next, and the session's number.
    pub(super) settled: Option<(u64, Verdict)>,
    streams: View<HashMap<Box<str>, Arc<Stream>>>,
    /// The memory of the key of the stream that is asked for.
    key: String,
    /// The worker's number.
    pub(super) number: usize,
    /// The last session's number.
    numbers: u64,
    pub(super) now_ms: u64,
    pub(super) now_s: u32,
    pub(super) date: [u8; 29],
}

/// Whether a viewer may play.
pub(super) enum Admitted {
    /// Yes: what its token says, and its session's number.
    In(Admission, u64),
    /// An application is asked; the request waits.
    Asked(Answer),
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker {
    pub(super) address: IpAddr,
    pub(super) is_tls: bool,
    /// The connection's token.
    pub(super) token: u64,
}

impl Router {
    /// Of worker `number`.
    pub(super) fn new(shared: Arc<Shared>, number: usize) -> Self {
        let hub = &shared.hub;
        let config = View::of(&hub.config);
        let keys = Keys::of(config.value(), &hub.salt);
        let streams = View::of(&hub.streams);
        let now_ms = hub.now_ms();
        Self {
            config,
            stats: SessionStats::default(),
            locals: HashMap::new(),
            banned: HashMap::new(),
            keys,
            asked: HashMap::new(),
            settled: None,
            streams,
            key: String::new(),
            number,
            numbers: 0,
            now_ms,
            now_s: 0,
            date: imf_fixdate(now_ms / 1_000),
            shared,
        }
    }

    /// Takes a newer configuration, if there is one. Sessions that the former one let in stay valid.
    pub(super) fn reconfigure(&mut self) -> bool {
        let is_other = self.config.refresh(&self.shared.hub.config);
        if is_other {
            self.keys = Keys::of(self.config.value(), &self.shared.hub.salt).after(&self.keys);
        }
        is_other
    }

    /// Sets the time of the requests that follow.
    pub(super) fn set_time(&mut self, now_ms: u64, now_s: u32) {
        if now_ms / 1_000 != self.now_ms / 1_000 {
            self.date = imf_fixdate(now_ms / 1_000);
        }
        (self.now_ms, self.now_s) = (now_ms, now_s);
    }

    /// The stream of that key, if there is one.
    pub(super) fn local(&mut self, key: &str) -> Option<&mut Local> {
        if self.streams.refresh(&self.shared.hub.streams) {
            let streams = self.streams.value();
            let is_there = |key: &str, local: &Local| {
                !local.attending.is_empty() || streams.get(key).is_some_and(|found| Arc::ptr_eq(found, &local.stream))
            };
            self.locals.retain(|key, local| is_there(key, local));
        }
        let stream = self.streams.value().get(key)?;
        if self.locals.get(key).is_none_or(|local| !Arc::ptr_eq(&local.stream, stream) && local.attending.is_empty()) {
            let hls = View::of(&stream.hls);
            let (stream, blocks, attending) = (Arc::clone(stream), VecDeque::new(), Vec::new());
            self.locals.insert(key.into(), Local { stream, hls, blocks, attending });
        }
        self.locals.get_mut(key)
    }

    /// Answers a request; the response's head is written into `head`.
    pub(super) fn respond(&mut self, request: &Request<'_>, asker: Asker, head: &mut Vec<u8>) -> Answer {
        match request.method {
            Method::Get | Method::Head => {}
            Method::Options => {
                Head::begin(head, Status::NoContent, &self.date)
                    .raw(CORS)
                    .field("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
                    // Fetch: a star stands for all but Authorization.
                    .field("Access-Control-Allow-Headers", "*, Authorization")
                    .field("Access-Control-Max-Age", "86400")
                    .end();
                return Answer { body: Body::None, close: !request.keep_alive, session: None };
            }
            _ => return self.plain(Denied::METHOD, request, head),
        }
        let target = match Target::parse(request.path) {
            Ok(target) => target,
            Err(refusal) => return self.plain(Denied(refusal.status(), refusal.text()), request, head),
        };
        let mut key = std::mem::take(&mut self.key);
        let names = target.names();
        // Below a session's id are its playlist and the segments; whatever else is there names a stream.
        let in_session = match names {
            [stream @ .., session, file] if stream.len() >= 2 && is_in_session(file) => {
                Session::parse(session).map(|session| (stream, session, file))
            }
            _ => None,
        };
        let answer = match (in_session, names) {
            (Some((stream, session, file)), _) => {
                join(&mut key, stream);
                self.hls(&key, session, file, request, asker, head)
            }
            (None, [app @ .., file]) if !app.is_empty() => {
                join(&mut key, app);
                key.push('/');
                match (file.strip_suffix(".flv"), file.strip_suffix(".m3u8")) {
                    (Some(name), _) if !name.is_empty() => {
                        key.push_str(name);
                        self.flv(&key, request, asker, head)
                    }
                    (_, Some(name)) if !name.is_empty() => {
                        key.push_str(name);
                        self.start(&key, name, request, asker, head)
                    }
                    _ => Err(Denied::PATH),
                }
            }
            _ => Err(Denied::PATH),
        };
        self.key = key;
        answer.unwrap_or_else(|denied| self.plain(denied, request, head))
    }

    /// A session's number that no other has: its upper bits are the time, see [`began_ms`].
    fn new_number(&mut self) -> u64 {
        // Numbers of different workers do not meet, nor do those of a server that was started again.
        let now = self.now_ms << NUMBER_TIME_SHIFT | (self.number as u64) << 4;
        self.numbers = now.max(self.numbers + (1 << 10));
        self.numbers
    }

    /// Counts a viewer, and makes its slot.
    pub(super) fn enter(&mut self, number: u64, session: Option<(Session, &str)>, who: Who) -> Result<(), Denied> {
        self.stats.open(number, session, &who.stream, who.address, self.now_ms);
        let entered = self.shared.viewers.enter(number, &self.config.value().limits, || who);
        entered.map_err(|full| {
            self.stats.forget(number);
            match full {
                Full::All => Denied::VIEWERS,
                Full::Address => Denied::ADDRESS,
            }
        })
    }

    /// An application has answered.
    pub(super) fn settle(&mut self, number: u64, verdict: Verdict) {
        if let (Some(who), Verdict::Allowed) = (self.asked.remove(&number), verdict) {
            self.shared.viewers.allow(number, who);
        }
    }

    /// Whether an application has still to answer.
    pub(super) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// No answer is waited for any more. The application may have accepted all the same, so `on_stop` follows.
    pub(super) fn stop_asking(&mut self) {
        self.asked.drain().for_each(|(number, who)| self.shared.viewers.allow(number, who));
    }

    /// Whether the token in the query lets the viewer play, and the application, where one is asked.
    pub(super) fn admit(
        &mut self,
        key: &str,
        protocol: Protocol,
        request: &Request<'_>,
        asker: Asker,
    ) -> Result<Admitted, Denied> {
        let token = request.query.get("token");
        let admission = self.keys.check(token.as_deref(), key, asker.address, self.now_ms / 1_000);
        let admission = admission.ok_or(if token.is_some() { Denied::TOKEN } else { Denied::TOKEN_MISSING })?;
        let (number, verdict) = match self.settled.take() {
            Some((number, verdict)) => (number, Some(verdict)),
            None if self.config.value().webhooks.on_play.is_none() => (self.new_number(), Some(Verdict::Allowed)),
            None => {
                self.local(key).ok_or(Denied::STREAM)?;
                let is_bound = protocol == Protocol::Hls && admission.address.is_some();
                let number = self.new_number() | if is_bound { BOUND } else { 0 };
                let waiter = Waiter { thread: self.number, token: asker.token, number };
                let (agent, query) = (agent(request), request.query.without(&["token"]));
                let fields = json!({
                    "stream": key,
                    "protocol": protocol.name(),
                    "tls": asker.is_tls,
                    "address": asker.address,
                    "agent": agent,
                    "subject": admission.subject,
                    "session": format!("{number:x}"),
                    "token_sha256": token.as_deref().map(hooks::digest),
                    "query": query,
                });
                let token = token.as_deref().unwrap_or_default();
                let known_by = format!("{key}\n{protocol:?}\n{}\n{token}\n{query}\n{agent}", asker.address);
                let verdict = self.shared.hooks.ask(Event::Play, waiter, fields, Some(&known_by));
                if verdict.is_none() {
                    let who = who(key, protocol, request, asker, Some(admission.subject.clone()), self.now_ms);
                    self.asked.insert(number, who);
                }
                (number, verdict)
            }
        };
        match verdict {
            Some(Verdict::Allowed) => Ok(Admitted::In(admission, number)),
            Some(Verdict::Denied) => Err(Denied::APPLICATION),
            Some(Verdict::Unanswered) => Err(Denied::NO_ANSWER),
            None => Ok(Admitted::Asked(Answer { body: Body::Asked(number), close: false, session: None })),
        }
    }

    /// When a session began: when its id was made, or now if that is longer ago than `hls.expiry`, because it comes back.
    pub(super) fn began_ms(&self, number: u64) -> u64 {
        let made_ms = number >> NUMBER_TIME_SHIFT;
        let expiry_ms = self.config.value().hls.expiry.as_micros() / 1_000;
        if made_ms.saturating_add(expiry_ms) < self.now_ms { self.now_ms } else { made_ms.min(self.now_ms) }
    }

    /// The connection `token` no longer attends to the stream.
    pub(super) fn depart(&mut self, key: &str, token: u64) {
        let worker = self.number;
        let Some(local) = self.locals.get_mut(key) else { return };
        local.attending.retain(|&other| other != token);
        if local.attending.is_empty() {
            local.stream.neglect(worker);
            local.blocks = VecDeque::new();
            if !local.stream.is_live.load(Ordering::Acquire) && local.stream.flv.is_over() {
                self.locals.remove(key);
            }
        }
    }
}

fn join(key: &mut String, parts: &[Cow<'_, str>]) {
    key.clear();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            key.push('/');
        }
        key.push_str(part);
    }
}

/// Whether a file is one of those that each session has: its playlist, a segment or an initialization section.
fn is_in_session(file: &str) -> bool {
    file == "index.m3u8" || CONTAINER.part(file).is_some()
}

/// The `User-Agent`, cut to [`AGENT_MAX`].
fn agent<'a>(request: &Request<'a>) -> &'a str {
    let agent = request.user_agent.unwrap_or_default();
    let end = (0..=agent.len().min(AGENT_MAX)).rev().find(|&at| agent.is_char_boundary(at)).unwrap_or(0);
    &agent[..end]
}

/// Who a viewer is, from its request.
pub(super) fn who(
    key: &str,
    protocol: Protocol,
    request: &Request<'_>,
    asker: Asker,
    subject: Option<String>,
    now_ms: u64,
) -> Who {
    Who {
        stream: key.into(),
        protocol,
        is_tls: asker.is_tls,
        address: asker.address,
        agent: agent(request).into(),
        subject: subject.filter(|subject| !subject.is_empty()).map(String::into_boxed_str),
        began_ms: now_ms,
    }
}
