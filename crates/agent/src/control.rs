//! The control connection: lines with a time limit on each.

use crate::clock::Clock;
use crate::error::AgentError;
use crate::message::{ClientMessage, Inbox, MessageError, RefusalCode, ServerMessage, line};
use serde::Serialize;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::poll::wait_readable;

/// Time in which the other end answers: round trips on the worst of paths, with retransmissions.
pub(crate) const ANSWER: Duration = Duration::from_secs(30);
/// Time in which the client's UDP packets reach the server.
pub(crate) const GREETING_TIME: Duration = Duration::from_secs(5);
/// How often a wait looks whether a signal came.
pub(crate) const SIGNAL_LOOK: Duration = Duration::from_millis(100);
/// Time in which the other end closes after a refusal.
const LINGER: Duration = Duration::from_secs(1);

/// A control connection.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) tcp: TcpStream,
    inbox: Inbox,
    /// What the other end is called in errors.
    peer: &'static str,
    stop: Arc<AtomicBool>,
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

impl Control {
    /// Over a connection; `stop` is set by signals.
    ///
    /// # Errors
    /// When the socket refuses an option.
    pub(crate) fn new(tcp: TcpStream, peer: &'static str, stop: Arc<AtomicBool>) -> Result<Self, AgentError> {
        let set = tcp.set_nonblocking(true).and_then(|()| tcp.set_nodelay(true));
        set.map_err(|source| HostError { act: "prepare the control connection".to_owned(), source })?;
        Ok(Self { tcp, inbox: Inbox::default(), peer, stop })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the connection is broken, or the other end reads nothing.
    pub(crate) fn send(&self, message: &impl Serialize) -> Result<(), AgentError> {
        let bytes = line(message);
        let (mut left, deadline) = (&bytes[..], Instant::now() + ANSWER);
        while !left.is_empty() {
            match (&self.tcp).write(left) {
                Ok(sent) => left = &left[sent..],
                // A burst of times may fill the send buffer: seldom enough to look again.
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(self.silent("reading", ANSWER)),
                Err(_) => return Err(AgentError::Closed(self.peer)),
            }
        }
        Ok(())
    }

    /// The next line, if it has come.
    ///
    /// # Errors
    /// When the connection is over, or the line is too long.
    pub(crate) fn poll(&mut self) -> Result<Option<Vec<u8>>, AgentError> {
        if let Some(line) = self.inbox.line().map_err(|source| self.protocol(source))? {
            return Ok(Some(line));
        }
        let mut bytes = [0; 16 << 10];
        let room = self.inbox.room().min(bytes.len());
        match (&self.tcp).read(&mut bytes[..room]) {
            Ok(0) => return Err(AgentError::Closed(self.peer)),
            Ok(count) => self.inbox.push(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
            Err(_) => return Err(AgentError::Closed(self.peer)),
        }
        self.inbox.line().map_err(|source| self.protocol(source))
    }

    fn wait(&mut self, limit: Duration, during: &'static str) -> Result<Vec<u8>, AgentError> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(line) = self.poll()? {
                return Ok(line);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.silent(during, limit));
            }
            wait_readable([self.as_fd()], Some(left.min(SIGNAL_LOOK)))?;
            self.look()?;
        }
    }

    /// Whether a signal came.
    ///
    /// # Errors
    /// [`AgentError::Stopped`] if one came.
    pub(crate) fn look(&self) -> Result<(), AgentError> {
        if self.stop.load(Ordering::Relaxed) { Err(AgentError::Stopped) } else { Ok(()) }
    }

    /// The client's next message.
    ///
    /// # Errors
    /// When none comes within `limit`, or it is none.
    pub(crate) fn client_message(
        &mut self,
        limit: Duration,
        during: &'static str,
    ) -> Result<ClientMessage, AgentError> {
        let line = self.wait(limit, during)?;
        ClientMessage::read(&line).map_err(|source| self.protocol(source))
    }

    /// The server's next message; a refusal is an error.
    ///
    /// # Errors
    /// When none comes within [`ANSWER`], or it is none.
    pub(crate) fn server_message(&mut self, during: &'static str) -> Result<ServerMessage, AgentError> {
        let line = self.wait(ANSWER, during)?;
        self.read_server(&line)
    }

    /// A line as the server's message; a refusal is an error.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn read_server(&self, line: &[u8]) -> Result<ServerMessage, AgentError> {
        match ServerMessage::read(line).map_err(|source| self.protocol(source))? {
            ServerMessage::Refuse { code, reason } => Err(match code {
                RefusalCode::Token => AgentError::WrongToken,
                RefusalCode::Unprotected => AgentError::Unprotected,
                RefusalCode::Datagrams => AgentError::NoDatagrams(GREETING_TIME),
                RefusalCode::Full | RefusalCode::Other => AgentError::Refused(reason),
            }),
            message => Ok(message),
        }
    }

    /// Waits until the server is ready.
    ///
    /// # Errors
    /// When it refuses, or says anything else.
    pub(crate) fn ready(&mut self, during: &'static str) -> Result<(), AgentError> {
        match self.server_message(during)? {
            ServerMessage::Ready => Ok(()),
            _ => Err(self.unexpected()),
        }
    }

    /// Answers a question for the server's clock.
    ///
    /// # Errors
    /// As for [`Control::send`].
    pub(crate) fn answer_clock(&self, clock: Clock, sent_ns: u64) -> Result<(), AgentError> {
        let received_ns = clock.now_ns();
        self.send(&ServerMessage::Clock { sent_ns, received_ns, answered_ns: clock.now_ns() })
    }

    /// Says why there is no test, as a server does, and waits a moment for the other end to read it.
    pub(crate) fn refuse(&self, error: &AgentError) {
        let code = match error {
            AgentError::Closed(_) => return,
            AgentError::WrongToken => RefusalCode::Token,
            AgentError::Unprotected => RefusalCode::Unprotected,
            AgentError::Full(_) => RefusalCode::Full,
            AgentError::NoDatagrams(_) => RefusalCode::Datagrams,
            _ => RefusalCode::Other,
        };
        let reason = error.to_string().chars().filter(|one| !one.is_control()).take(100).collect();
        // The other end may have gone away. A connection that is closed with unread data is reset, and the reason lost.
        let is_sent = self.send(&ServerMessage::Refuse { code, reason }).is_ok();
        let mut is_open = is_sent && self.tcp.shutdown(std::net::Shutdown::Write).is_ok();
        let (deadline, mut rest) = (Instant::now() + LINGER, [0; 4 << 10]);
        while is_open && Instant::now() < deadline {
            match (&self.tcp).read(&mut rest) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(2)),
                Ok(0) | Err(_) => is_open = false,
                Ok(_) => {}
            }
        }
    }

    pub(crate) fn unexpected(&self) -> AgentError {
        self.protocol(MessageError::Unexpected)
    }

    pub(crate) fn protocol(&self, source: MessageError) -> AgentError {
        AgentError::Protocol { peer: self.peer, source }
    }

    pub(crate) fn silent(&self, during: &'static str, limit: Duration) -> AgentError {
        AgentError::Silent { peer: self.peer, during, limit }
    }
}
