//! One client's session at the server, in a thread of its own.

use crate::agent::{Agent, AgentObserver, Arrived, CONNECTIONS_MAX, local};
use crate::clock::Clock;
use crate::control::{ANSWER, Control, GREETING_TIME, SIGNAL_LOOK};
use crate::error::AgentError;
use crate::message::{ClientMessage, PROTOCOL, ServerMessage, TopicsPlan, TrainPlan};
use crate::token::{End, challenge};
use crate::topics::served::served as topics;
use crate::train::datagrams::Datagrams;
use crate::train::served::served as train;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use thalweg_host::socket::{DatagramSocket, Tcp};

/// Time in which a client proves itself.
const PROOF_TIME: Duration = Duration::from_secs(10);
/// Time in which the connections of all topics come.
const TOPICS_TIME: Duration = Duration::from_secs(10);

/// What a session holds.
struct Session<'a> {
    agent: &'a Agent,
    control: Control,
    client: SocketAddr,
    clock: Clock,
    id: u64,
    arrived: Receiver<Arrived>,
    datagrams: Option<Datagrams>,
    trains: u32,
    tests: u32,
}

impl Agent {
    /// Serves a control connection until its end, in the calling thread; whether the client was let in.
    pub fn serve(&self, tcp: Tcp, client: SocketAddr, stop: &Arc<AtomicBool>, observer: &dyn AgentObserver) -> bool {
        let has_room = self.connected();
        let is_let_in = match Control::new(TcpStream::from(tcp), "client", Arc::clone(stop)) {
            Ok(control) if has_room => run(self, control, client, observer),
            Ok(control) => {
                let why = AgentError::Full(CONNECTIONS_MAX);
                observer.session_refused(client, &why);
                control.refuse(&why);
                false
            }
            Err(error) => {
                observer.session_refused(client, &error);
                false
            }
        };
        self.disconnected();
        is_let_in
    }
}

/// Serves a client until it goes; whether it was let in.
fn run(agent: &Agent, mut control: Control, client: SocketAddr, observer: &dyn AgentObserver) -> bool {
    let let_in = let_in(agent, &mut control, client);
    let (id, proof, arrived) = match let_in {
        Ok(found) => found,
        Err(error) => {
            observer.session_refused(client, &error);
            control.refuse(&error);
            return false;
        }
    };
    let mut session =
        Session { agent, control, client, clock: Clock::start(), id, arrived, datagrams: None, trains: 0, tests: 0 };
    let welcome = ServerMessage::Welcome { session: format!("{id:016x}"), proof };
    let served = session.control.send(&welcome).and_then(|()| session.serve());
    agent.close(session.id);
    let what = match (session.trains, session.tests) {
        (0, 0) => None,
        (trains, 0) => Some(format!("{trains} UDP trains")),
        (0, tests) => Some(format!("{tests} tests of topics")),
        (trains, tests) => Some(format!("{trains} UDP trains, {tests} tests of topics")),
    };
    match served {
        // A client ends a session by closing it.
        Ok(()) | Err(AgentError::Closed(_) | AgentError::Stopped) => {
            if let Some(what) = what {
                observer.session_over(client, &what);
            }
        }
        Err(error) => {
            observer.session_refused(client, &error);
            session.control.refuse(&error);
        }
    }
    true
}

/// Lets a client in that proves the token; the session's secret name, this end's own proof, and where the session's connections come.
fn let_in(
    agent: &Agent,
    control: &mut Control,
    client: SocketAddr,
) -> Result<(u64, String, Receiver<Arrived>), AgentError> {
    let own = challenge()?;
    let token = agent.token();
    control.send(&ServerMessage::Hello { protocol: PROTOCOL, challenge: own.clone(), token: token.is_some() })?;
    if token.is_none() && !client.ip().is_loopback() {
        return Err(AgentError::Unprotected);
    }
    let message = control.client_message(PROOF_TIME, "proving that it knows the token")?;
    let ClientMessage::Prove { challenge: theirs, proof } = message else { return Err(control.unexpected()) };
    let challenges = [own.as_str(), theirs.as_str()];
    let proof = match token {
        Some(token) if !token.verifies(End::Client, challenges, &proof) => return Err(AgentError::WrongToken),
        Some(token) => token.proof(End::Server, challenges),
        None => String::new(),
    };
    let id = u64::from_be_bytes(thalweg_host::random::bytes()?);
    Ok((id, proof, agent.open(id, client.ip())?))
}

impl Session<'_> {
    /// Does what the client asks for, until it goes.
    fn serve(&mut self) -> Result<(), AgentError> {
        loop {
            match self.control.client_message(ANSWER, "its next test should come")? {
                ClientMessage::Clock { sent_ns } => self.control.answer_clock(self.clock, sent_ns)?,
                ClientMessage::Datagrams => {
                    self.datagrams = Some(self.open_datagrams()?);
                    self.control.send(&ServerMessage::Ready)?;
                }
                ClientMessage::Train(plan) => self.train(&plan)?,
                ClientMessage::Topics(plan) => self.topics(&plan)?,
                _ => return Err(self.control.unexpected()),
            }
        }
    }

    /// Waits for the client's greeting, and makes the socket of its packets.
    fn open_datagrams(&mut self) -> Result<Datagrams, AgentError> {
        self.agent.expect(self.id, 1);
        let deadline = Instant::now() + GREETING_TIME;
        let from = loop {
            match self.arrived.recv_timeout(SIGNAL_LOOK) {
                Ok(Arrived::Greeting(from)) if from.ip() == self.client.ip() => break from,
                _ if Instant::now() >= deadline => return Err(AgentError::NoDatagrams(GREETING_TIME)),
                _ => self.control.look()?,
            }
        };
        // The port is the server's own, which a firewall lets through.
        let socket = DatagramSocket::bind(local(&self.control.tcp)?)?;
        socket.connect(from)?;
        Datagrams::new(socket, from, self.id)
    }

    fn train(&mut self, plan: &TrainPlan) -> Result<(), AgentError> {
        let Some(datagrams) = &mut self.datagrams else { return Err(self.control.unexpected()) };
        self.trains += 1;
        train(&mut self.control, datagrams, self.clock, plan)
    }

    fn topics(&mut self, plan: &TopicsPlan) -> Result<(), AgentError> {
        self.agent.expect(self.id, plan.topics.len());
        self.control.send(&ServerMessage::Ready)?;
        let mut links: Vec<Option<Tcp>> = plan.topics.iter().map(|_| None).collect();
        let deadline = Instant::now() + TOPICS_TIME;
        while links.iter().any(Option::is_none) {
            match self.arrived.recv_timeout(SIGNAL_LOOK) {
                Ok(Arrived::Topic(topic, tcp)) => match links.get_mut(usize::from(topic)) {
                    Some(link) => *link = Some(tcp),
                    None => return Err(self.control.unexpected()),
                },
                _ if Instant::now() >= deadline => {
                    return Err(self.control.silent("the topics' connections should come", TOPICS_TIME));
                }
                _ => self.control.look()?,
            }
        }
        self.tests += 1;
        let links = links.into_iter().flatten().collect();
        topics(&mut self.control, self.clock, plan, links)
    }
}
