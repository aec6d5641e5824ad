//! A thread that serves viewers: its own epoll, listeners and connections; nothing is shared with other workers on the way of a
//! segment.

mod accounts;
mod connection;
mod crowd;
mod desk;

pub use accounts::{Accounts, Protocol, TcpFacts, Update, Who};
pub use crowd::Crowd;

use crate::api::Api;
use crate::clerk::Clerk;
use crate::http::{Limits, Refusal, Status, parse};
use crate::hub::{Hub, Signal};
use crate::slab::Slab;
use crate::tls::Certificates;
use connection::{Body, Broken, Connection, Sent};
use desk::{Answer, Asker, Desk};
use host::HostError;
use host::poll::{Poller, Ready};
use host::socket::Tcp;
use host::tcp_info::TcpInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A listening socket and whether what it accepts speaks TLS.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: Tcp,
    /// For TLS: the certificates.
    pub tls: Option<Arc<Certificates>>,
}

/// What the threads of a server share.
#[derive(Debug)]
pub struct Shared {
    /// Streams.
    pub hub: Arc<Hub>,
    /// Viewers.
    pub clerk: Arc<Clerk>,
    /// Connections.
    pub crowd: Arc<Crowd>,
    /// The server ends: nothing new is taken.
    pub is_draining: AtomicBool,
    /// What each worker counts, by number.
    pub loads: Vec<Load>,
}

/// A worker's figures, written by it alone.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Load {
    /// Connections at present.
    pub connections: AtomicU64,
    /// Viewers that have a slot at present.
    pub viewers: AtomicU64,
    /// Connections taken since the start.
    pub accepted: AtomicU64,
    /// Connections that found no room.
    pub refused: AtomicU64,
    /// Requests read.
    pub requests: AtomicU64,
    /// Bytes of bodies sent.
    pub bytes: AtomicU64,
    /// Connections cut off for being slow or silent.
    pub timeouts: AtomicU64,
    /// Time not spent waiting, microseconds.
    pub busy_us: AtomicU64,
}

/// Marks tokens of connections; smaller ones are the signal's and the listeners'.
const CONNECTION: u64 = 1 << 63;
const SIGNAL: u64 = 0;
/// Most connections taken from a listener before others have their turn.
const ACCEPTS: usize = 64;
/// Bytes read at a time.
const SCRATCH: usize = 16 << 10;

/// A worker's thread.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    signal: Arc<Signal>,
    number: usize,
    /// For the thread that answers operators: from what.
    api: Option<Api>,
    poller: Poller,
    listeners: Vec<Listener>,
    is_accepting: bool,
    connections: Slab<Connection>,
    desk: Desk,
    limits: Limits,
    /// Connections that had their turn and could send more.
    again: Vec<u64>,
    scratch: Vec<u8>,
    head: Vec<u8>,
    started: Instant,
    drain_until_s: Option<u32>,
}

impl Worker {
    /// Worker `number`, whose signal is the hub's of that number.
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub fn new(
        shared: Arc<Shared>,
        number: usize,
        listeners: Vec<Listener>,
        api: Option<Api>,
    ) -> Result<Self, HostError> {
        let signal = Arc::clone(&shared.hub.signals[number]);
        let poller = Poller::new()?;
        poller.add_readable(&signal.waker, SIGNAL)?;
        let head_bytes = usize::try_from(shared.hub.config.limits.head.get()).unwrap_or(usize::MAX);
        let desk = Desk::new(Arc::clone(&shared.hub), number);
        Ok(Self {
            shared,
            signal,
            number,
            api,
            poller,
            listeners,
            is_accepting: false,
            connections: Slab::new(),
            desk,
            limits: Limits { head_bytes, ..Limits::default() },
            again: Vec::new(),
            scratch: vec![0; SCRATCH],
            head: Vec::new(),
            started: Instant::now(),
            drain_until_s: None,
        })
    }

    /// Serves until the server is drained.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn run(mut self) -> Result<(), HostError> {
        let mut ready: Vec<Ready> = Vec::new();
        let mut ticked_s = 0;
        self.accept(true)?;
        loop {
            let most = if self.again.is_empty() { Duration::from_millis(250) } else { Duration::ZERO };
            ready.clear();
            self.poller.wait(Some(most), &mut ready)?;
            let woke = Instant::now();
            let now_s = self.started.elapsed().as_secs() as u32 + 1;
            self.desk.set_time(self.shared.hub.now_ms(), now_s);
            let mut is_signalled = false;
            for event in &ready {
                match event.token {
                    SIGNAL => is_signalled = true,
                    token if token & CONNECTION != 0 => self.happened(token & !CONNECTION, *event),
                    listener => self.take(listener as usize - 1),
                }
            }
            for token in std::mem::take(&mut self.again) {
                self.advance(token);
            }
            if is_signalled {
                self.signal.lower();
                self.news();
            }
            if now_s != ticked_s {
                ticked_s = now_s;
                self.tick(now_s)?;
            }
            let load = &self.shared.loads[self.number];
            load.busy_us.fetch_add(woke.elapsed().as_micros() as u64, Ordering::Relaxed);
            if self.shared.is_draining.load(Ordering::Acquire) && self.drain(now_s)? {
                return Ok(());
            }
        }
    }

    /// Begins or ends to listen for connections.
    fn accept(&mut self, wanted: bool) -> Result<(), HostError> {
        if wanted != self.is_accepting {
            for (at, listener) in self.listeners.iter().enumerate() {
                match wanted {
                    true => self.poller.add_readable(&listener.socket, at as u64 + 1)?,
                    false => self.poller.remove(&listener.socket)?,
                }
            }
            self.is_accepting = wanted;
        }
        Ok(())
    }

    fn take(&mut self, at: usize) {
        let shared = Arc::clone(&self.shared);
        let load = &shared.loads[self.number];
        for _ in 0..ACCEPTS {
            let listener = &self.listeners[at];
            match listener.socket.accept_from() {
                Ok(None) => return,
                Ok(Some((socket, peer))) => {
                    let address = peer.ip();
                    let tls = listener.tls.as_ref().map(|tls| tls.accept());
                    let tls = match tls {
                        Some(None) => continue,
                        Some(Some(tls)) => Some(Box::new(tls)),
                        None => None,
                    };
                    if !self.shared.crowd.enter(address) {
                        load.refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    load.accepted.fetch_add(1, Ordering::Relaxed);
                    load.connections.fetch_add(1, Ordering::Relaxed);
                    let deadline_s = self.desk.now_s + self.seconds(self.shared.hub.config.limits.head_time);
                    let token = self.connections.insert(Connection::new(socket, tls, address, deadline_s));
                    let connection = self.connections.get(token).expect("invariant: it was just kept");
                    if self.poller.add_edges(&connection.socket, token | CONNECTION).is_err() {
                        self.close(token);
                        continue;
                    }
                    // Its request may have come with it, and costs no further wait then.
                    self.read(token);
                }
                Err(_) => {
                    // No descriptor is left: those who wait do so until the next second.
                    load.refused.fetch_add(1, Ordering::Relaxed);
                    let _ = self.accept(false);
                    return;
                }
            }
        }
    }

    fn seconds(&self, span: units::Span) -> u32 {
        (span.as_secs_f64().ceil() as u32).max(1)
    }

    fn happened(&mut self, token: u64, event: Ready) {
        let Some(connection) = self.connections.get(token) else { return };
        if event.hung_up && connection.is_busy() {
            return self.close(token);
        }
        connection.unread |= event.readable;
        if event.writable && (connection.is_busy() || connection.flush().is_err()) {
            self.advance(token);
        }
        self.read(token);
    }

    /// Reads and answers requests for as long as there are some, and each answer is sent at once.
    fn read(&mut self, token: u64) {
        loop {
            let Some(connection) = self.connections.get(token) else { return };
            match &connection.body {
                // Whoever has a live response has nothing to say but that it leaves.
                Body::Live(_) | Body::Playlist(_) => {
                    if !connection.unread {
                        return;
                    }
                    match connection.receive(&mut self.scratch) {
                        Ok(Some(got)) if got > 0 => continue,
                        Ok(None) => connection.unread = false,
                        _ => self.close(token),
                    }
                    return;
                }
                _ if connection.is_busy() => return,
                _ => {}
            }
            if !connection.input.is_empty() {
                let input = std::mem::take(&mut connection.input);
                match self.answer(token, &input) {
                    Some(0) => {
                        if let Some(connection) = self.connections.get(token) {
                            connection.input = input;
                        }
                    }
                    Some(used) => {
                        if let Some(connection) = self.connections.get(token) {
                            connection.input = input[used..].to_vec();
                        }
                        continue;
                    }
                    None => return,
                }
            }
            let Some(connection) = self.connections.get(token) else { return };
            if !connection.unread {
                return;
            }
            let mut scratch = std::mem::take(&mut self.scratch);
            let got = connection.receive(&mut scratch);
            self.scratch = scratch;
            match got {
                Ok(None) => {
                    connection.unread = false;
                    return;
                }
                Ok(Some(got)) if got > 0 => {
                    if !std::mem::replace(&mut connection.in_head, true) {
                        let head_time = self.shared.hub.config.limits.head_time;
                        connection.deadline_s = self.desk.now_s + (head_time.as_secs_f64().ceil() as u32).max(1);
                    }
                    if !connection.input.is_empty() {
                        connection.input.extend_from_slice(&self.scratch[..got]);
                        continue;
                    }
                    // The common case: a whole request and nothing else, answered from where it was read to.
                    let scratch = std::mem::take(&mut self.scratch);
                    let used = self.answer(token, &scratch[..got]);
                    if let (Some(used), Some(connection)) = (used, self.connections.get(token))
                        && used < got
                    {
                        connection.input = scratch[used..got].to_vec();
                    }
                    self.scratch = scratch;
                    if used.is_none() {
                        return;
                    }
                }
                _ => return self.close(token),
            }
        }
    }

    /// Answers the first request of `bytes`; how many of them it took, `None` when the connection is closed or about to be.
    fn answer(&mut self, token: u64, bytes: &[u8]) -> Option<usize> {
        let connection = self.connections.get(token)?;
        self.head.clear();
        let (answer, used) = match parse(bytes, &self.limits) {
            Ok(None) => return Some(0),
            Ok(Some((request, used))) => {
                self.shared.loads[self.number].requests.fetch_add(1, Ordering::Relaxed);
                let asker = Asker { address: connection.peer, is_tls: connection.tls.is_some(), token };
                let mut answer = match &mut self.api {
                    Some(api) => {
                        let close = !request.keep_alive;
                        let body = api.respond(&request, &self.shared, &mut self.head);
                        let end = body.len();
                        Answer { body: Body::Shared(body, 0, end), close, session: None }
                    }
                    None => self.desk.respond(&request, asker, &mut self.head),
                };
                answer.close |= self.drain_until_s.is_some();
                (answer, used)
            }
            Err(refusal) => (self.refused(refusal), bytes.len()),
        };
        let connection = self.connections.get(token)?;
        connection.body = answer.body;
        connection.close = answer.close;
        connection.session = answer.session;
        connection.in_head = false;
        connection.head.clear();
        connection.head.extend_from_slice(&self.head);
        connection.deadline_s =
            self.desk.now_s + (self.shared.hub.config.limits.write_stall.as_secs_f64() as u32).max(1);
        let will_close = answer.close;
        self.advance(token);
        match self.connections.get(token) {
            Some(connection) if !will_close || connection.is_busy() => Some(used),
            _ => None,
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Answer {
        self.desk.refuse(refusal.status(), true, &mut self.head);
        Answer { body: Body::None, close: true, session: None }
    }

    /// Sends of the response what there is room for.
    fn advance(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else { return };
        let held = match &connection.body {
            Body::Live(cursor) => self.desk.locals.get(&cursor.stream).map(|local| &local.blocks),
            _ => None,
        };
        let is_piece = matches!(connection.body, Body::Piece(..));
        let is_live = matches!(connection.body, Body::Live(_));
        let was_busy = connection.is_busy();
        let state = connection.advance(held);
        let sent = std::mem::take(&mut connection.sent);
        let limits = &self.shared.hub.config.limits;
        let (now_s, now_ms) = (self.desk.now_s, self.desk.now_ms);
        if sent > 0 {
            let patience = if is_live { self.shared.hub.config.flv.stall } else { limits.write_stall };
            connection.deadline_s = now_s + (patience.as_secs_f64().ceil() as u32).max(1);
            self.shared.loads[self.number].bytes.fetch_add(sent, Ordering::Relaxed);
            if let Some(session) = connection.session {
                self.desk.accounts.count(session, now_ms, |update| update.bytes += sent);
                if is_live {
                    self.desk.accounts.first_media(session, now_ms);
                }
            }
        }
        match state {
            Err(Broken) => self.close(token),
            Ok(Sent::Turn) => self.again.push(token),
            Ok(Sent::Blocked) => {}
            Ok(Sent::Idle) if is_live => {
                connection.deadline_s = u32::MAX;
                let is_over = held.is_none_or(std::collections::VecDeque::is_empty)
                    && self
                        .desk
                        .locals
                        .values()
                        .all(|local| !local.attending.contains(&token) || local.stream.flv.is_over());
                if is_over {
                    self.close(token);
                }
            }
            Ok(Sent::Idle) => {}
            Ok(Sent::All) if !was_busy => {}
            Ok(Sent::All) => {
                if is_piece && let Some(session) = connection.session {
                    let facts = TcpInfo::of(&connection.socket).ok().map(|info| TcpFacts::of(&info));
                    self.desk.accounts.media(session, now_ms);
                    self.desk.accounts.count(session, now_ms, |update| update.tcp = facts.or(update.tcp));
                }
                connection.head = Vec::new();
                connection.session = None;
                if connection.close {
                    return self.finish(token);
                }
                connection.deadline_s = now_s + (limits.keep_alive.as_secs_f64().ceil() as u32).max(1);
            }
        }
    }

    /// Closes a connection whose last response is complete; what the kernel holds still goes out.
    fn finish(&mut self, token: u64) {
        if let Some(connection) = self.connections.get(token)
            && let Some(tls) = &mut connection.tls
        {
            tls.send_close_notify();
            let _ = connection.flush();
        }
        self.close(token);
    }

    fn close(&mut self, token: u64) {
        let Some(connection) = self.connections.remove(token) else { return };
        let load = &self.shared.loads[self.number];
        load.connections.fetch_sub(1, Ordering::Relaxed);
        self.shared.crowd.leave(connection.peer);
        match &connection.body {
            Body::Live(cursor) => {
                self.desk.depart(&cursor.stream, token);
                if let Some(session) = connection.session {
                    let facts = TcpInfo::of(&connection.socket).ok().map(|info| TcpFacts::of(&info));
                    let now_ms = self.desk.now_ms;
                    self.desk.accounts.count(session, now_ms, |update| {
                        (update.tcp, update.skips, update.is_over) = (facts.or(update.tcp), cursor.skips, true);
                    });
                }
            }
            Body::Playlist(waiting) => self.desk.depart(&waiting.stream, token),
            _ => {}
        }
    }

    /// There may be new blocks and playlists for those who attend.
    fn news(&mut self) {
        let mut attending = Vec::new();
        for local in self.desk.locals.values_mut().filter(|local| !local.attending.is_empty()) {
            let has_blocks = local.stream.flv.copy_into(&mut local.blocks);
            let has_hls = local.hls.refresh(&local.stream.hls);
            if has_blocks || has_hls || local.stream.flv.is_over() {
                attending.extend_from_slice(&local.attending);
            }
        }
        for token in attending {
            match self.connections.get(token).map(|connection| &connection.body) {
                Some(Body::Live(_)) => self.advance(token),
                Some(Body::Playlist(_)) => self.first_playlist(token),
                _ => {}
            }
        }
        for number in self.shared.clerk.kicked(self.number) {
            self.kick(number);
        }
    }

    /// Answers one that waits, if there is a playlist now, or never will be in time.
    fn first_playlist(&mut self, token: u64) {
        let now_s = self.desk.now_s;
        let Some(connection) = self.connections.get(token) else { return };
        let Body::Playlist(waiting) = &connection.body else { return };
        let Some(local) = self.desk.locals.get(&waiting.stream) else { return self.close(token) };
        let hls = Arc::clone(local.hls.value());
        if hls.playlist.is_none() && now_s < waiting.until_s && !local.stream.flv.is_over() {
            return;
        }
        let Body::Playlist(waiting) = std::mem::replace(&mut connection.body, Body::None) else { return };
        let session = connection.session;
        self.head.clear();
        let answer = match hls.playlist {
            Some(_) => self.desk.playlist(&hls, &waiting, None, session, &mut self.head),
            None => {
                self.desk.refuse(Status::ServiceUnavailable, !waiting.keep_alive, &mut self.head);
                Answer { body: Body::None, close: !waiting.keep_alive, session }
            }
        };
        self.desk.depart(&waiting.stream, token);
        let Some(connection) = self.connections.get(token) else { return };
        connection.body = answer.body;
        connection.head.extend_from_slice(&self.head);
        connection.deadline_s = now_s + (self.shared.hub.config.limits.write_stall.as_secs_f64() as u32).max(1);
        self.advance(token);
        self.read(token);
    }

    fn kick(&mut self, number: u64) {
        let until_ms = self.desk.now_ms + 86_400_000;
        self.desk.banned.insert(number, until_ms);
        for token in self.connections.tokens() {
            if self.connections.get(token).is_some_and(|connection| connection.session == Some(number)) {
                self.close(token);
            }
        }
        self.desk.accounts.forget(number);
    }

    /// Once a second: who is too slow, what changed, and whether there is room again.
    fn tick(&mut self, now_s: u32) -> Result<(), HostError> {
        for token in self.connections.tokens() {
            let Some(connection) = self.connections.get(token) else { continue };
            if let Body::Playlist(_) = connection.body {
                self.first_playlist(token);
            } else if now_s > connection.deadline_s {
                self.shared.loads[self.number].timeouts.fetch_add(1, Ordering::Relaxed);
                self.close(token);
            } else if let (Body::Live(cursor), Some(session)) = (&connection.body, connection.session) {
                let skips = cursor.skips;
                let facts = TcpInfo::of(&connection.socket).ok().map(|info| TcpFacts::of(&info));
                self.desk.accounts.sample(session, facts, skips);
            }
        }
        let now_ms = self.desk.now_ms;
        self.desk.banned.retain(|_, until_ms| *until_ms > now_ms);
        let expiry_ms = self.shared.hub.config.hls.expiry.as_micros() / 1_000;
        let mut updates = Vec::new();
        self.desk.accounts.hand_over(now_ms, expiry_ms, &mut updates);
        self.shared.clerk.update(updates);
        self.shared.loads[self.number].viewers.store(self.desk.accounts.viewers() as u64, Ordering::Relaxed);
        if self.api.is_some() {
            self.shared.clerk.expire(now_ms, expiry_ms);
        }
        if !self.is_accepting && self.drain_until_s.is_none() {
            self.accept(true)?;
        }
        Ok(())
    }

    /// Takes nothing new, ends who is idle, and gives responses on their way some time; whether all is over.
    fn drain(&mut self, now_s: u32) -> Result<bool, HostError> {
        let time = self.shared.hub.config.limits.drain;
        if self.drain_until_s.is_none() {
            self.drain_until_s = Some(now_s + time.as_secs_f64().ceil() as u32);
            self.accept(false)?;
            self.listeners.clear();
        }
        let is_late = self.drain_until_s.is_some_and(|until_s| now_s >= until_s);
        for token in self.connections.tokens() {
            let Some(connection) = self.connections.get(token) else { continue };
            connection.close = true;
            let ends = match connection.body {
                // It would go on for as long as the stream does.
                Body::Live(_) | Body::Playlist(_) => true,
                _ => !connection.is_busy(),
            };
            if ends || is_late {
                self.finish(token);
            }
        }
        let is_over = self.connections.len() == 0;
        if is_over {
            let mut updates = Vec::new();
            self.desk.accounts.hand_over(self.desk.now_ms, 0, &mut updates);
            self.shared.clerk.update(updates);
        }
        Ok(is_over)
    }
}
