//! The client's end of a session: how it connects and proves itself, and the server's clock.

use crate::clock::{Clock, ClockSample};
use crate::control::{Control, SIGNAL_LOOK};
use crate::error::AgentError;
use crate::message::{ClientMessage, Purpose, ServerMessage};
use crate::token::{End, Token, challenge};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thalweg_host::reach::{ANSWER_TIME, first_answer};

/// Questions for the server's clock, and the time they may take together.
const CLOCK_QUESTIONS: u32 = 20;
const CLOCK_TIME: Duration = Duration::from_secs(1);
/// How often a client that waits asks for the clock, so that the server knows it is there.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Where a server is, and the token it asks for.
#[derive(Debug, Clone)]
pub struct ServerAddress {
    /// A name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The token.
    pub token: Option<Token>,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) control: Control,
    pub(crate) session: u64,
    pub(crate) peer: SocketAddr,
    pub(crate) clock: Clock,
}

impl Client {
    /// Connects, and proves that this end knows the token.
    ///
    /// # Errors
    /// When the server cannot be reached, speaks another protocol or refuses.
    pub(crate) fn connect(to: &ServerAddress, stop: &Arc<AtomicBool>) -> Result<Self, AgentError> {
        let (tcp, peer) = first_answer(&to.host, to.port, |address| TcpStream::connect_timeout(&address, ANSWER_TIME))?;
        let mut control = Control::new(tcp, "server", Arc::clone(stop))?;
        let cookie = Purpose::Control.cookie();
        (&control.tcp).write_all(&cookie).map_err(|_| AgentError::Closed("server"))?;
        let ServerMessage::Hello { challenge: theirs, token: asks, .. } = control.server_message("greeting")? else {
            return Err(control.unexpected());
        };
        let own = challenge()?;
        let challenges = [theirs.as_str(), own.as_str()];
        let token = to.token.as_ref().filter(|_| asks);
        if asks && token.is_none() {
            return Err(AgentError::NoToken);
        }
        let proof = token.map(|token| token.proof(End::Client, challenges)).unwrap_or_default();
        control.send(&ClientMessage::Prove { challenge: own.clone(), proof })?;
        let ServerMessage::Welcome { session, proof } = control.server_message("reading the proof")? else {
            return Err(control.unexpected());
        };
        if token.is_some_and(|token| !token.verifies(End::Server, challenges, &proof)) {
            return Err(AgentError::ServerUnproven);
        }
        let session = u64::from_str_radix(&session, 16).map_err(|_| control.unexpected())?;
        Ok(Self { control, session, peer, clock: Clock::start() })
    }

    /// The server's clock: of several answers the one that took least.
    ///
    /// # Errors
    /// When an answer does not come.
    pub(crate) fn ask_clock(&mut self) -> Result<ClockSample, AgentError> {
        let begun = Instant::now();
        let mut best: Option<ClockSample> = None;
        for asked in 0..CLOCK_QUESTIONS {
            if asked > 3 && begun.elapsed() > CLOCK_TIME {
                break;
            }
            let sent_ns = self.clock.now_ns();
            self.control.send(&ClientMessage::Clock { sent_ns })?;
            let answer = self.control.server_message("reading its clock")?;
            let now = self.clock.now_ns();
            let ServerMessage::Clock { received_ns, answered_ns, .. } = answer else {
                return Err(self.control.unexpected());
            };
            let sample = ClockSample::new([sent_ns, now], [received_ns, answered_ns]);
            best = Some(best.filter(|best| best.rtt_ns <= sample.rtt_ns).unwrap_or(sample));
        }
        best.ok_or_else(|| self.control.unexpected())
    }
}

/// A session that only lets this host's streams in; they may come for as long as it is held.
#[derive(Debug)]
pub struct Admission {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Admission {
    /// Opens a session and holds it.
    ///
    /// # Errors
    /// When the server cannot be reached, speaks another protocol or refuses.
    pub fn new(to: &ServerAddress, stop: &Arc<AtomicBool>) -> Result<Self, AgentError> {
        let mut client = Client::connect(to, stop)?;
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let hold = move || {
            let mut asked = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(SIGNAL_LOOK / 5);
                if asked.elapsed() >= HEARTBEAT {
                    asked = Instant::now();
                    // A server that is gone ends the streams, too, and they say so.
                    if client.ask_clock().is_err() {
                        return;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("admission".to_owned()).spawn(hold);
        let act = || "start a thread".to_owned();
        let thread = thread.map_err(|source| thalweg_host::HostError { act: act(), source })?;
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and there is nobody to tell.
            drop(thread.join());
        }
    }
}
