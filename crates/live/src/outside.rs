//! What programs behind the path reach beyond it: at the far end, connections are accepted in the name of whoever they are to,
//! and passed on by sockets of this host.

use crate::address::{self, Family};
use crate::relays::{Relays, Side};
use crate::site::{Site, spawn};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use thalweg_host::poll::{Poller, Ready, Waker};
use thalweg_host::{HostError, relay};

/// Addresses and ports for which connections are accepted at a time.
const LISTENERS_MAX: usize = 4_096;
/// Questions of names that are asked at a time.
const QUESTIONS_MAX: usize = 1_000;
/// How long this host tries to reach the target of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an answer of the resolver is waited for: what the C library's own waits. Source: resolv.conf(5), `timeout`.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest message of DNS over UDP with EDNS.
const DNS_BYTES_MAX: usize = 65_535;

/// What is reachable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    /// Everything this host reaches; else only `exposed`.
    pub(crate) world: bool,
    /// Port at the far end, and what it stands for.
    pub(crate) exposed: Vec<(u16, String)>,
    /// A program runs at the far end, so the far end's own addresses are its own.
    pub(crate) has_server: bool,
    /// The host's resolver.
    pub(crate) resolver: Option<SocketAddr>,
}

/// Accepts the connections that come out of the path, at the far end.
pub(crate) struct Gate {
    reach: Reach,
    open: HashSet<SocketAddr>,
    /// To the thread that listens.
    asked: Sender<Question>,
}

/// The address to listen at, and who waits until it is listened at.
type Question = (SocketAddr, Sender<()>);

impl Gate {
    /// A gate, the thread that listens at the far end, and the one that passes on what that accepts; `None` where nothing is reached.
    pub(crate) fn new(reach: Reach, far: &Site, relays: Arc<Relays>) -> Result<Option<Self>, HostError> {
        if !reach.world && reach.exposed.is_empty() {
            return Ok(None);
        }
        let (asked, questions) = channel::<Question>();
        let (listeners, queue) = channel();
        let (waker, poller) = (Arc::new(Waker::new()?), Poller::new()?);
        let (own, of) = (Arc::clone(&waker), reach.clone());
        spawn("outside", move || accept(&poller, &own, &queue, &of, &relays))?;
        let listen = move || {
            for (to, done) in questions {
                // Where a program at the far end listens already, it is meant.
                if let Ok(listener) = relay::listen_as(to)
                    && listeners.send(listener).is_ok()
                {
                    waker.wake();
                }
                // Who asked may have ended.
                let _ = done.send(());
            }
        };
        far.run(move || spawn("listen", listen))?;
        Ok(Some(Self { reach, open: HashSet::new(), asked }))
    }

    /// Listens at the far end before the first packet of a connection arrives there.
    pub(crate) fn prepare(&mut self, to: SocketAddr) {
        let is_far_end = address::is_far(to.ip());
        let is_exposed = is_far_end && self.reach.exposed.iter().any(|(port, _)| *port == to.port());
        let is_open = is_exposed || self.reach.world && !(is_far_end && self.reach.has_server);
        if !is_open || self.open.len() >= LISTENERS_MAX || !self.open.insert(to) {
            return;
        }
        let (done, answer) = channel();
        if self.asked.send((to, done)).is_ok() {
            // Without an answer there is no listener, and the connection is refused.
            let _ = answer.recv();
        }
    }
}

/// Accepts on every listener it is given, and starts a relay for each connection; in this host's namespace.
fn accept(poller: &Poller, waker: &Waker, queue: &Receiver<TcpListener>, reach: &Reach, relays: &Arc<Relays>) {
    const WAKER: u64 = u64::MAX;
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut ready: Vec<Ready> = Vec::new();
    if poller.add_readable(waker, WAKER).is_err() {
        return;
    }
    while poller.wait(None, &mut ready).is_ok() {
        for event in ready.drain(..) {
            if event.token == WAKER {
                waker.clear();
                for listener in queue.try_iter() {
                    if poller.add_readable(&listener, listeners.len() as u64).is_ok() {
                        listeners.push(listener);
                    }
                }
                continue;
            }
            let Some(listener) = listeners.get(event.token as usize) else { continue };
            while let Ok((inside, _)) = listener.accept() {
                let Ok(to) = inside.local_addr() else { continue };
                start_relay(inside, Side::Program, targets(to, reach), relays);
            }
        }
    }
}

/// What a connection to an address of the far namespace is passed on to, in the order to try.
fn targets(to: SocketAddr, reach: &Reach) -> Vec<String> {
    let to = SocketAddr::new(to.ip().to_canonical(), to.port());
    if !address::is_far(to.ip()) {
        return vec![to.to_string()];
    }
    if let Some((_, target)) = reach.exposed.iter().find(|(port, _)| *port == to.port()) {
        return vec![target.clone()];
    }
    if let Some(resolver) = reach.resolver.filter(|_| to.port() == 53) {
        return vec![resolver.to_string()];
    }
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    loopback.iter().map(|address| SocketAddr::new(*address, to.port()).to_string()).collect()
}

/// Passes the bytes of a connection from `side` on to the first target that accepts one; if none does, the connection is reset.
fn start_relay(accepted: TcpStream, side: Side, targets: Vec<String>, relays: &Arc<Relays>) {
    relay::end_with_reset(&accepted);
    let Some(begun) = relays.begin() else { return };
    let relay = move || {
        if let Some(connected) = targets.iter().find_map(|target| connect(target)) {
            relay::end_with_reset(&connected);
            let (program, outside) =
                if side == Side::Program { (&accepted, &connected) } else { (&connected, &accepted) };
            join(program, outside, || begun.program_ended());
        }
    };
    // Where no thread can be had, the connection is reset.
    let _ = spawn("relay", relay);
}

fn connect(target: &str) -> Option<TcpStream> {
    use std::net::ToSocketAddrs;
    let mut addresses = target.to_socket_addrs().ok()?;
    addresses.find_map(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok())
}

/// Passes bytes both ways until both ends have no more. A connection that breaks breaks the other. `program_ended` is called
/// when all that the program sent has been passed on.
fn join(program: &TcpStream, outside: &TcpStream, program_ended: impl FnOnce()) {
    for connection in [program, outside] {
        // An accepted socket of a listener that does not block may not block either.
        if connection.set_nonblocking(false).is_err() || connection.set_nodelay(true).is_err() {
            return;
        }
    }
    let is_broken = AtomicBool::new(false);
    let pass = |from: &TcpStream, to: &TcpStream| {
        if relay::pass(from, to).is_ok() && !is_broken.load(Ordering::SeqCst) {
            // It has all; should this process end now, it is not reset.
            relay::end_in_order(to);
        } else if !is_broken.swap(true, Ordering::SeqCst) {
            for connection in [program, outside] {
                relay::end_with_reset(connection);
                // Wakes the other way.
                let _ = connection.shutdown(std::net::Shutdown::Both);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| pass(outside, program));
        pass(program, outside);
        program_ended();
    });
}

/// Passes connections to a port of this host's loopback on to the same port of the program behind the path.
pub(crate) fn publish(far: &Arc<Site>, port: u16, relays: &Arc<Relays>) -> Result<(), HostError> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = bound.map_err(|source| HostError { act: format!("listen on 127.0.0.1:{port}"), source })?;
    let (far, relays) = (Arc::clone(far), Arc::clone(relays));
    let to = SocketAddr::new(address::near(Family::V4), port);
    let accept = move || {
        for outside in listener.incoming().flatten() {
            let relays = Arc::clone(&relays);
            // A relay that is started in the far namespace connects from there.
            far.run(move || start_relay(outside, Side::Outside, vec![to.to_string()], &relays));
        }
    };
    spawn("publish", accept).map(drop)
}

/// Answers questions to the far end's port 53 as the host's resolver does.
pub(crate) fn resolve(socket: UdpSocket, resolver: SocketAddr) -> Result<(), HostError> {
    let socket = Arc::new(socket);
    let pending = Arc::new(AtomicUsize::new(0));
    let answer_all = move || {
        let mut question = vec![0; DNS_BYTES_MAX];
        loop {
            let (length, from) = match socket.recv_from(&mut question) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if pending.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
                pending.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (question, socket, count) = (question[..length].to_vec(), Arc::clone(&socket), Arc::clone(&pending));
            let answer = move || {
                if let Some(answer) = ask(&question, resolver) {
                    // The program asks again if this is lost.
                    let _ = socket.send_to(&answer, from);
                }
                count.fetch_sub(1, Ordering::Relaxed);
            };
            if spawn("resolve", answer).is_err() {
                pending.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    spawn("resolver", answer_all).map(drop)
}

fn ask(question: &[u8], resolver: SocketAddr) -> Option<Vec<u8>> {
    let any: IpAddr = if resolver.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.set_read_timeout(Some(RESOLVE_TIMEOUT)).ok()?;
    socket.connect(resolver).ok()?;
    socket.send(question).ok()?;
    let mut answer = vec![0; DNS_BYTES_MAX];
    let length = socket.recv(&mut answer).ok()?;
    answer.truncate(length);
    Some(answer)
}
