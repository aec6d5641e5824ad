//! A thread that serves viewers: its own epoll, listeners and connections; nothing is shared with other workers on the way of a
//! segment.

mod accept;
mod chunked;
mod connection;
mod cursor;
mod denied;
mod fast_join;
mod handlers;
mod http_loop;
mod responses;
mod router;

use crate::api::Api;
use crate::http::Limits;
use crate::hub::Signal;
use crate::shared::Shared;
use crate::slab::Slab;
use crate::tls::Certificates;
use crate::viewer::Left;
use connection::{Body, Connection};
use router::Router;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::poll::{Poller, Ready};
use thalweg_host::segment::SplicePipe;
use thalweg_host::socket::Tcp;
use thalweg_model::{LogLevel, ServeConfig};
use thalweg_units::Span;

/// A listening socket and whether what it accepts speaks TLS.
#[derive(Debug)]
pub struct Listener {
    /// The socket.
    pub socket: Tcp,
    /// For TLS: the certificates.
    pub tls: Option<Arc<Certificates>>,
    /// Whether each connection begins with a PROXY header.
    pub proxy_protocol: bool,
}

/// Marks tokens of connections; smaller ones are the signal's and the listeners'.
const CONNECTION: u64 = 1 << 63;
const SIGNAL: u64 = 0;
/// Most connections accepted at a listener before others have their turn.
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
    router: Router,
    limits: Limits,
    /// Connections that had their turn and could send more.
    again: Vec<u64>,
    scratch: Vec<u8>,
    head: Vec<u8>,
    pipe: SplicePipe,
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
        let router = Router::new(Arc::clone(&shared), number);
        let limits = limits(router.config.value());
        Ok(Self {
            shared,
            signal,
            number,
            api,
            poller,
            listeners,
            is_accepting: false,
            connections: Slab::new(),
            router,
            limits,
            again: Vec::new(),
            scratch: vec![0; SCRATCH],
            head: Vec::new(),
            pipe: SplicePipe::new()?,
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
            self.router.set_time(self.shared.hub.now_ms(), now_s);
            if self.router.reconfigure() {
                self.reconfigured();
            }
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

    /// Another configuration: connections accepted from here on have its options.
    fn reconfigured(&mut self) {
        let config = self.router.config.value();
        self.limits = limits(config);
        for listener in self.listeners.iter().filter(|_| self.api.is_none()) {
            let tls = config.https.as_ref().filter(|_| listener.tls.is_some());
            let front = tls.map_or(&config.http, |tls| &tls.front);
            // All workers' are refused the same.
            for why in listener.socket.apply_each(&front.tcp, Some(front.keepalive)).iter().filter(|_| self.number == 0)
            {
                let log = &self.shared.log;
                log.event(LogLevel::Warn, "option-refused", || vec![("why", why.to_string().into())]);
            }
        }
    }

    /// There may be new blocks and playlists for connections that wait.
    fn news(&mut self) {
        let mut attending = Vec::new();
        for local in self.router.locals.values_mut().filter(|local| !local.attending.is_empty()) {
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
        for answer in self.shared.hooks.answers(self.number) {
            self.settle(answer);
        }
        for number in self.shared.viewers.kicked(self.number) {
            self.kick(number);
        }
    }

    fn kick(&mut self, number: u64) {
        let until_ms = self.router.now_ms + 86_400_000;
        self.router.banned.insert(number, until_ms);
        for token in self.connections.tokens() {
            if self.connections.get(token).is_some_and(|connection| connection.session == Some(number)) {
                self.close(token);
            }
        }
        self.router.stats.forget(number);
    }

    /// Once a second: closes slow connections, reports counts, and accepts again after descriptors ran out.
    fn tick(&mut self, now_s: u32) -> Result<(), HostError> {
        for token in self.connections.tokens() {
            let Some(connection) = self.connections.get(token) else { continue };
            if let Body::Playlist(_) = connection.body {
                self.first_playlist(token);
            } else if now_s > connection.deadline_s {
                self.shared.loads[self.number].timeouts.fetch_add(1, Ordering::Relaxed);
                self.close_viewer(token, Left::Stalled);
            } else if let (Body::Live(cursor), Some(session)) = (&connection.body, connection.session) {
                let blocks = self.router.locals.get(&cursor.stream).map(|local| &local.blocks);
                let behind_ms = blocks.map_or(0, |blocks| cursor.behind_ms(blocks));
                let facts = connection.tcp_facts();
                self.router.stats.sample(session, facts, cursor.skips, behind_ms);
            }
        }
        let now_ms = self.router.now_ms;
        self.router.banned.retain(|_, until_ms| *until_ms > now_ms);
        let expiry_ms = self.router.config.value().hls.expiry.as_micros() / 1_000;
        let (updates, fetched) = self.router.stats.hand_over(now_ms, expiry_ms);
        for number in self.shared.viewers.update(updates, fetched) {
            self.router.stats.forget(number);
        }
        self.shared.loads[self.number].viewers.store(self.router.stats.viewers() as u64, Ordering::Relaxed);
        if self.api.is_some() {
            self.shared.viewers.expire(now_ms, expiry_ms);
        }
        if !self.is_accepting && self.drain_until_s.is_none() {
            self.accept(true)?;
        }
        Ok(())
    }

    /// Accepts nothing, closes idle connections, and gives responses on their way some time. Returns whether all have ended.
    fn drain(&mut self, now_s: u32) -> Result<bool, HostError> {
        let time = self.router.config.value().limits.drain;
        if self.drain_until_s.is_none() {
            self.drain_until_s = Some(now_s + seconds(time));
            self.accept(false)?;
            self.listeners.clear();
        }
        let is_late = self.drain_until_s.is_some_and(|until_s| now_s >= until_s);
        for token in self.connections.tokens() {
            let Some(connection) = self.connections.get(token) else { continue };
            connection.close = true;
            match connection.body {
                // It would go on for as long as the stream does.
                Body::Live(_) => self.end_live(token, Left::Drained),
                // The application's answer comes: `on_stop` follows an `on_play` that it accepts.
                Body::Asked(_) if !is_late => {}
                Body::Playlist(_) | Body::Asked(_) => self.finish(token),
                _ if is_late || !connection.is_busy() => self.finish(token),
                _ => {}
            }
        }
        let is_over = self.connections.len() == 0 && (is_late || !self.router.is_asking());
        if is_over {
            self.router.stop_asking();
            let (updates, fetched) = self.router.stats.hand_over(self.router.now_ms, 0);
            self.shared.viewers.update(updates, fetched);
        }
        Ok(is_over)
    }
}

/// What a request's head may be.
fn limits(config: &ServeConfig) -> Limits {
    Limits { head_bytes: usize::try_from(config.limits.head.get()).unwrap_or(usize::MAX), ..Limits::default() }
}

/// A time in the whole seconds that deadlines count in, one at least.
fn seconds(span: Span) -> u32 {
    (span.as_secs_f64().ceil() as u32).max(1)
}
