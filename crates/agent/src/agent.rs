//! What a server knows of its sessions: who was let in, and which packets and connections are whose.

use crate::error::AgentError;
use crate::token::Token;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use thalweg_host::HostError;
use thalweg_host::socket::Tcp;

/// Sessions at a time.
pub(crate) const SESSIONS_MAX: usize = 64;
/// Control connections at a time, also those that have not proved anything: they shall not take the place of sessions.
pub(crate) const CONNECTIONS_MAX: usize = 256;

/// Who watches an agent; called by the threads of all sessions.
pub trait AgentObserver: Sync {
    /// A client was served: what it did.
    fn session_over(&self, client: SocketAddr, what: &str);
    /// A client was refused, or failed.
    fn session_refused(&self, client: SocketAddr, why: &AgentError);
}

/// What came for a session from elsewhere than its control connection.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// The connection of a topic.
    Topic(u16, Tcp),
    /// The client's UDP packets come from there.
    Greeting(SocketAddr),
}

/// A session, as the thread that accepts connections knows it.
#[derive(Debug)]
struct Open {
    client: IpAddr,
    /// What is still taken of connections and greetings.
    expected: usize,
    arrived: Sender<Arrived>,
}

/// The part of a server that trains and topics are.
#[derive(Debug)]
pub struct Agent {
    token: Option<Token>,
    sessions: Mutex<HashMap<u64, Open>>,
    /// Control connections, also those that have not proved anything yet.
    connections: AtomicUsize,
}

impl Agent {
    /// An agent that asks for this token; without one it serves its own host only.
    pub fn new(token: Option<Token>) -> Self {
        Self { token, sessions: Mutex::default(), connections: AtomicUsize::new(0) }
    }

    /// Whether it asks for a token.
    pub fn is_protected(&self) -> bool {
        self.token.is_some()
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<u64, Open>> {
        self.sessions.lock().expect("invariant: nobody panics with it")
    }

    /// Control connections that are open.
    pub fn count(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether a client from there has proved the token and is still connected.
    pub fn admits(&self, address: IpAddr) -> bool {
        self.sessions().values().any(|open| open.client == address)
    }

    /// Counts a control connection; whether there was room for it.
    pub(crate) fn connected(&self) -> bool {
        self.connections.fetch_add(1, Ordering::Relaxed) < CONNECTIONS_MAX
    }

    /// A control connection is over.
    pub(crate) fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Knows a session from now on.
    ///
    /// # Errors
    /// When there are [`SESSIONS_MAX`] already.
    pub(crate) fn open(&self, session: u64, client: IpAddr) -> Result<Receiver<Arrived>, AgentError> {
        let (arrived, receiver) = channel();
        let mut sessions = self.sessions();
        if sessions.len() >= SESSIONS_MAX {
            return Err(AgentError::Full(SESSIONS_MAX));
        }
        sessions.insert(session, Open { client, expected: 0, arrived });
        Ok(receiver)
    }

    /// From now on takes this many connections or greetings of a session.
    pub(crate) fn expect(&self, session: u64, count: usize) {
        if let Some(open) = self.sessions().get_mut(&session) {
            open.expected = count;
        }
    }

    /// Forgets a session.
    pub(crate) fn close(&self, session: u64) {
        self.sessions().remove(&session);
    }

    fn deliver(&self, session: u64, arrived: Arrived) -> bool {
        let mut sessions = self.sessions();
        let Some(open) = sessions.get_mut(&session).filter(|open| open.expected > 0) else { return false };
        open.expected -= 1;
        open.arrived.send(arrived).is_ok()
    }

    /// Hands a connection to the session that waits for it; whether there is one.
    pub fn deliver_topic(&self, session: u64, topic: u16, tcp: Tcp) -> bool {
        self.deliver(session, Arrived::Topic(topic, tcp))
    }

    /// Says where a session's UDP packets come from; whether one waits for that.
    pub fn deliver_greeting(&self, session: u64, from: SocketAddr) -> bool {
        self.deliver(session, Arrived::Greeting(from))
    }
}

/// The address that a connection has come to.
pub(crate) fn local(tcp: &TcpStream) -> Result<SocketAddr, HostError> {
    tcp.local_addr().map_err(|source| HostError { act: "read a socket's own address".to_owned(), source })
}
