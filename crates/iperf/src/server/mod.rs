//! The server: several clients at once at one port.
//!
//! One thread accepts connections and reads their cookies: a known one is a stream of its test, a new one is a new test. Each test has a
//! thread of its own, and its streams have those of the test's workers.

mod registry;
mod test;
mod transactions;

use crate::control::Control;
use crate::error::IperfError;
use crate::protocol::datagram::answer;
use crate::protocol::exchange::{Exchange, NOT_ADMITTED};
use crate::protocol::results::ServerOutput;
use crate::protocol::{COOKIE_LEN, Cookie, State};
use crate::stream::Link;
use registry::{Greeting, Registry, TESTS_MAX};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::Scope;
use std::time::{Duration, Instant};
use test::Client;
use thalweg_agent::message::{Purpose, greeted_session};
use thalweg_agent::{Agent, AgentObserver};
use thalweg_host::HostError;
use thalweg_host::poll::{Poller, Waker};
use thalweg_host::socket::{DatagramSocket, Tcp};
use thalweg_model::{StreamLoadReport, StreamTest};

/// Connections that wait in the kernel: all streams of a test come at once.
const BACKLOG: u16 = 512;
/// Connections whose cookie has not come yet, at most.
const UNKNOWN_MAX: usize = 1_024;
/// Time in which a connection sends its cookie.
const COOKIE_TIME: Duration = Duration::from_secs(10);
/// How often signals and deadlines are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Token of the waker; listeners and connections count from 0.
const WAKER: u64 = u64::MAX;

/// What a server does.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The addresses it listens at.
    pub listen: Vec<IpAddr>,
    /// The port; 0 is any free one, for a single address.
    pub port: u16,
    /// Ends after one test.
    pub one_off: bool,
    /// Ends when there was no test for so long.
    pub idle: Option<Duration>,
    /// The time of a row in reports.
    pub interval: Duration,
    /// What serves trains and topics; if it asks for a token, streams and transactions are for hosts that have proved it.
    pub agent: Arc<Agent>,
    /// Streams and transactions are for anybody.
    pub is_open: bool,
}

/// Who watches a server; called by the threads of all tests.
pub trait ServerObserver: AgentObserver {
    /// It listens at this address.
    fn listening(&self, at: SocketAddr);
    /// A test of this client begins.
    fn begun(&self, client: SocketAddr, test: &StreamTest);
    /// A test is over.
    fn ended(&self, report: &StreamLoadReport);
    /// There was no test with this client.
    fn refused(&self, client: SocketAddr, why: &IperfError);
    /// What a client shows that asks for the server's own output.
    fn output(&self, report: &StreamLoadReport) -> ServerOutput;
}

/// Serves until a signal comes, or the options say so.
///
/// # Errors
/// [`IperfError`] when it cannot listen. What goes wrong with a client goes to the observer.
pub fn serve(options: &ServerOptions, stop: &Arc<AtomicBool>, observer: &dyn ServerObserver) -> Result<(), IperfError> {
    let (sender, arrived) = channel();
    let exchanges = Exchanges { arrived: sender, waker: Arc::new(Waker::new()?), open: AtomicUsize::new(0) };
    let mut server = Server::new(options, stop, observer, &exchanges)?;
    let registry = Registry::default();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (waker, open, end) = (&exchanges.waker, &exchanges.open, &is_over);
        scope.spawn(move || transactions::serve(&arrived, waker, open, end));
        let served = server.run(scope, &registry);
        is_over.store(true, Ordering::Relaxed);
        served
    })
}

/// The way to the thread of transactions.
struct Exchanges {
    arrived: Sender<(Tcp, Exchange)>,
    waker: Arc<Waker>,
    /// Connections it has.
    open: AtomicUsize,
}

/// A connection whose cookie has not come yet.
struct Unknown {
    tcp: Tcp,
    peer: SocketAddr,
    bytes: [u8; COOKIE_LEN],
    have: usize,
    deadline: Instant,
}

struct Server<'a> {
    options: &'a ServerOptions,
    stop: &'a Arc<AtomicBool>,
    observer: &'a dyn ServerObserver,
    exchanges: &'a Exchanges,
    poller: Poller,
    waker: Arc<Waker>,
    tcp: Vec<Tcp>,
    udp: Vec<DatagramSocket>,
    port: u16,
    unknown: HashMap<u64, Unknown>,
    next: u64,
    /// Tests that have run and are over.
    over: Arc<AtomicU64>,
    idle_since: Instant,
}

impl<'a> Server<'a> {
    fn new(
        options: &'a ServerOptions,
        stop: &'a Arc<AtomicBool>,
        observer: &'a dyn ServerObserver,
        exchanges: &'a Exchanges,
    ) -> Result<Self, IperfError> {
        let (poller, waker) = (Poller::new()?, Arc::new(Waker::new()?));
        poller.add_readable(&*waker, WAKER)?;
        let (mut tcp, mut udp, mut port) = (Vec::new(), Vec::new(), options.port);
        for address in &options.listen {
            let listener = Tcp::listen_alone(SocketAddr::new(*address, port), BACKLOG)?;
            let local = listener.local()?;
            port = local.port();
            let datagrams = DatagramSocket::bind(local)?;
            poller.add_readable(&listener, tcp.len() as u64)?;
            poller.add_readable(&datagrams, (options.listen.len() + udp.len()) as u64)?;
            observer.listening(local);
            tcp.push(listener);
            udp.push(datagrams);
        }
        let next = 2 * options.listen.len() as u64;
        let over = Arc::new(AtomicU64::new(0));
        let idle_since = Instant::now();
        let unknown = HashMap::new();
        Ok(Self { options, stop, observer, exchanges, poller, waker, tcp, udp, port, unknown, next, over, idle_since })
    }

    fn run<'scope>(&mut self, scope: &'scope Scope<'scope, 'a>, registry: &'scope Registry) -> Result<(), IperfError>
    where
        'a: 'scope,
    {
        let mut ready = Vec::new();
        loop {
            if self.stop.load(Ordering::Relaxed) || self.is_over(registry) {
                return Ok(());
            }
            ready.clear();
            self.poller.wait(Some(LOOK), &mut ready)?;
            for event in &ready {
                let place = event.token as usize;
                if event.token == WAKER {
                    self.waker.clear();
                } else if place < self.tcp.len() {
                    self.accept(place);
                } else if place < self.tcp.len() + self.udp.len() {
                    self.greet(place - self.tcp.len(), registry);
                } else {
                    self.read_cookie(event.token, scope, registry);
                }
            }
            let now = Instant::now();
            self.unknown.retain(|_, unknown| now < unknown.deadline);
        }
    }

    /// Whether the options end it here.
    fn is_over(&mut self, registry: &Registry) -> bool {
        let is_idle = registry.count() == 0
            && self.exchanges.open.load(Ordering::Relaxed) == 0
            && self.options.agent.count() == 0;
        if !is_idle {
            self.idle_since = Instant::now();
        }
        let is_done = self.options.one_off && self.over.load(Ordering::Acquire) > 0;
        is_idle && (is_done || self.options.idle.is_some_and(|idle| self.idle_since.elapsed() >= idle))
    }

    fn accept(&mut self, place: usize) {
        loop {
            let accepted = match self.tcp[place].accept_from() {
                Ok(Some(accepted)) => accepted,
                Ok(None) => return,
                Err(_) => {
                    // No descriptor is left: it waits until a test has ended.
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            };
            let (tcp, peer) = accepted;
            // The oldest goes: those that say nothing shall not keep others away.
            if self.unknown.len() >= UNKNOWN_MAX
                && let Some(oldest) = self.unknown.iter().min_by_key(|(_, one)| one.deadline).map(|(token, _)| *token)
            {
                self.unknown.remove(&oldest);
            }
            if self.poller.add_readable(&tcp, self.next).is_err() {
                continue;
            }
            let deadline = Instant::now() + COOKIE_TIME;
            self.unknown.insert(self.next, Unknown { tcp, peer, bytes: [0; COOKIE_LEN], have: 0, deadline });
            self.next += 1;
        }
    }

    fn read_cookie<'scope>(&mut self, token: u64, scope: &'scope Scope<'scope, 'a>, registry: &'scope Registry)
    where
        'a: 'scope,
    {
        let Some(unknown) = self.unknown.get_mut(&token) else { return };
        // What follows a stream's cookie is its data, and stays in the socket.
        match unknown.tcp.receive(&mut unknown.bytes[unknown.have..]) {
            Ok(None) => {}
            Ok(Some(count)) if count > 0 => {
                unknown.have += count;
                if unknown.have == COOKIE_LEN
                    && let Some(unknown) = self.unknown.remove(&token)
                    && self.poller.remove(&unknown.tcp).is_ok()
                {
                    self.dispatch((token, unknown), scope, registry);
                }
            }
            _ => drop(self.unknown.remove(&token)),
        }
    }

    /// A stream goes to its test, and a new client has one.
    fn dispatch<'scope>(
        &mut self,
        (place, unknown): (u64, Unknown),
        scope: &'scope Scope<'scope, 'a>,
        registry: &'scope Registry,
    ) where
        'a: 'scope,
    {
        let Unknown { tcp, peer, bytes, .. } = unknown;
        let cookie = Cookie(bytes);
        match Purpose::of_cookie(&bytes) {
            Some(Purpose::Control) => return self.begin_session(tcp, peer, scope),
            Some(Purpose::Topic { session, topic }) => {
                // Where no session waits for it, it is closed.
                self.options.agent.deliver_topic(session, topic, tcp);
                return;
            }
            None => {}
        }
        let exchange = Exchange::of_cookie(&cookie);
        if !self.admits(peer.ip()) && (exchange.is_some() || cookie.is_valid()) {
            self.turn_away(tcp, peer, exchange.is_some(), scope);
            return;
        }
        if let Some(exchange) = exchange {
            let _ = self.exchanges.arrived.send((tcp, exchange));
            self.exchanges.waker.wake();
            return;
        }
        if registry.knows(&cookie) {
            registry.deliver_tcp(&cookie, (place, Link::Tcp(tcp)));
            return;
        }
        if !cookie.is_valid() {
            self.observer.refused(peer, &IperfError::Stranger);
            return;
        }
        let is_full = self.options.one_off && registry.count() + self.over.load(Ordering::Acquire) as usize > 0;
        let begun = (!is_full).then(|| self.begin(tcp, cookie, peer, registry));
        // Where there is no test, the client was told.
        if let Some(Ok(Some(client))) = begun {
            let (observer, interval) = (self.observer, self.options.interval);
            let (over, waker) = (Arc::clone(&self.over), Arc::clone(&self.waker));
            let run = move || {
                let has_run = test::run(client, registry, interval, observer);
                registry.close(&cookie);
                over.fetch_add(u64::from(has_run), Ordering::AcqRel);
                waker.wake();
            };
            if std::thread::Builder::new().name("test".to_owned()).spawn_scoped(scope, run).is_err() {
                registry.close(&cookie);
            }
        }
    }

    /// Whether streams and transactions from there are served.
    fn admits(&self, address: IpAddr) -> bool {
        let agent = &self.options.agent;
        self.options.is_open || !agent.is_protected() || agent.admits(address)
    }

    /// Says that a token is needed; in a thread, as the other end may be slow to read it.
    fn turn_away<'scope>(&self, tcp: Tcp, peer: SocketAddr, is_exchange: bool, scope: &'scope Scope<'scope, 'a>)
    where
        'a: 'scope,
    {
        self.observer.refused(peer, &IperfError::NotAdmitted);
        if is_exchange {
            // There is room for a byte.
            let _ = tcp.send(&[NOT_ADMITTED]);
            return;
        }
        let stop = Arc::clone(self.stop);
        let refuse = move || {
            if let Ok(control) = Control::new(tcp, "client", stop) {
                control.refuse(&IperfError::NotAdmitted);
            }
        };
        // Without a thread it is closed.
        let _ = std::thread::Builder::new().name("refusal".to_owned()).spawn_scoped(scope, refuse);
    }

    /// Serves a control connection of trains and topics.
    fn begin_session<'scope>(&self, tcp: Tcp, peer: SocketAddr, scope: &'scope Scope<'scope, 'a>)
    where
        'a: 'scope,
    {
        let (agent, stop, observer) = (Arc::clone(&self.options.agent), self.stop, self.observer);
        let (over, waker) = (Arc::clone(&self.over), Arc::clone(&self.waker));
        let run = move || {
            let is_let_in = agent.serve(tcp, peer, stop, observer);
            over.fetch_add(u64::from(is_let_in), Ordering::AcqRel);
            waker.wake();
        };
        // Without a thread it is closed.
        let _ = std::thread::Builder::new().name("session".to_owned()).spawn_scoped(scope, run);
    }

    fn begin(
        &self,
        tcp: Tcp,
        cookie: Cookie,
        peer: SocketAddr,
        registry: &Registry,
    ) -> Result<Option<Client>, HostError> {
        let local = tcp.local()?.ip();
        let control = Control::new(tcp, "client", Arc::clone(self.stop))?;
        let (sender, arrived) = channel();
        if !registry.open(cookie, peer, local, sender, Arc::clone(&control.waker)) {
            let _ = control.send_state(State::AccessDenied);
            self.observer.refused(peer, &IperfError::Full(TESTS_MAX));
            return Ok(None);
        }
        Ok(Some(Client { cookie, peer, control, arrived }))
    }

    /// Reads greetings, and makes a socket for each stream.
    fn greet(&self, place: usize, registry: &Registry) {
        let mut bytes = [0; 64];
        let mut waiting = Vec::new();
        let mut take = |udp: &DatagramSocket, from: &mut Vec<(SocketAddr, [u8; 4])>| {
            // An error is one of an earlier packet's.
            while let Ok(Some((length, peer))) = udp.receive(&mut bytes) {
                if let (4, Some(peer), Some(greeting)) = (length, peer, bytes.first_chunk()) {
                    from.push((peer, *greeting));
                }
                if let (16, Some(peer), Some(session)) = (length, peer, bytes.first_chunk().and_then(greeted_session)) {
                    self.options.agent.deliver_greeting(session, peer);
                }
            }
        };
        take(&self.udp[place], &mut waiting);
        while let Some((from, greeting)) = waiting.pop() {
            let Greeting::New(cookie, local) = registry.greeting(from) else { continue };
            let made =
                DatagramSocket::bind(SocketAddr::new(local, self.port)).and_then(|udp| udp.connect(from).map(|()| udp));
            let Ok(udp) = made else { continue };
            // Until it was connected it may have had greetings of others.
            take(&udp, &mut waiting);
            let is_answered = udp.send(&answer(&greeting));
            if is_answered.is_ok() {
                registry.deliver_udp(&cookie, from, Link::Udp(udp));
            }
        }
    }
}
