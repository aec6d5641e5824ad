//! The control connection: the messages of the protocol, with a time limit on each.

use crate::error::IperfError;
use crate::protocol::inbox::{Inbox, framed};
use crate::protocol::refusal::Refusal;
use crate::protocol::{Cookie, ProtocolError, State};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::poll::{Poller, Waker};
use thalweg_host::socket::Tcp;
use thalweg_model::KeepAlive;
use thalweg_units::Span;

/// Time in which the other end answers: round trips on the worst of paths, with retransmissions.
pub(crate) const ANSWER: Duration = Duration::from_secs(30);
/// How often a wait looks whether a signal came.
const SIGNAL_LOOK: Duration = Duration::from_millis(100);
/// Time in which the other end closes after a refusal.
const LINGER: Duration = Duration::from_secs(1);
/// What one read takes at most.
const READ: usize = 64 << 10;

/// A control connection.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) tcp: Tcp,
    pub(crate) waker: Arc<Waker>,
    inbox: Inbox,
    poller: Poller,
    /// What the other end is called in errors.
    peer: &'static str,
    is_closed: bool,
    stop: Arc<AtomicBool>,
}

impl Control {
    /// Over a connection. `waker` ends a wait; `stop` is set by signals.
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub(crate) fn new(tcp: Tcp, peer: &'static str, stop: Arc<AtomicBool>) -> Result<Self, HostError> {
        let poller = Poller::new()?;
        let waker = Arc::new(Waker::new()?);
        poller.add_readable(&tcp, 0)?;
        poller.add_readable(&*waker, 1)?;
        let settings = thalweg_model::SocketSettings { nodelay: Some(true), ..Default::default() };
        // A peer that vanished during a long test is found within a minute and a half.
        let keep_alive = KeepAlive { idle: Span::from_millis(30_000), interval: Span::from_millis(10_000), count: 6 };
        drop(tcp.apply_each(&settings, Some(keep_alive)));
        Ok(Self { tcp, waker, inbox: Inbox::default(), poller, peer, is_closed: false, stop })
    }

    /// From now on signals end no wait.
    pub(crate) fn ignore_stop(&mut self) {
        self.stop = Arc::default();
    }

    /// Sends all of it.
    ///
    /// # Errors
    /// When the connection is broken, or full for too long.
    pub(crate) fn send(&self, mut bytes: &[u8]) -> Result<(), IperfError> {
        let deadline = Instant::now() + ANSWER;
        while !bytes.is_empty() {
            match self.tcp.send(bytes) {
                Ok(Some(sent)) => bytes = &bytes[sent..],
                // A message fits into a send buffer, but for a server's own output: seldom enough to look again.
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
                Ok(None) => return Err(self.silent("reading", ANSWER)),
                Err(_) => return Err(IperfError::Closed(self.peer)),
            }
        }
        Ok(())
    }

    /// Sends a cookie.
    ///
    /// # Errors
    /// As for [`Control::send`].
    pub(crate) fn send_cookie(&self, cookie: &Cookie) -> Result<(), IperfError> {
        self.send(&cookie.0)
    }

    /// Sends a state.
    ///
    /// # Errors
    /// As for [`Control::send`].
    pub(crate) fn send_state(&self, state: State) -> Result<(), IperfError> {
        self.send(&[state.byte()])
    }

    /// Sends a document.
    ///
    /// # Errors
    /// As for [`Control::send`].
    pub(crate) fn send_document(&self, document: &Value) -> Result<(), IperfError> {
        self.send(&framed(document))
    }

    /// Waits until something came, the waker woke, or for `most`.
    ///
    /// # Errors
    /// When the connection is broken, and when a signal came.
    pub(crate) fn wait(&mut self, most: Duration) -> Result<(), IperfError> {
        let mut ready = Vec::new();
        self.poller.wait(Some(most.min(SIGNAL_LOOK)), &mut ready)?;
        self.waker.clear();
        if ready.iter().any(|event| event.token == 0) {
            self.read()?;
        }
        if self.stop.load(Ordering::Relaxed) { Err(IperfError::Stopped) } else { Ok(()) }
    }

    fn read(&mut self) -> Result<(), IperfError> {
        let mut bytes = vec![0; READ.min(self.inbox.room())];
        if bytes.is_empty() {
            let source = ProtocolError::Length(Inbox::CAPACITY as u64 + 1, Inbox::CAPACITY);
            return Err(IperfError::Protocol { peer: self.peer, source });
        }
        match self.tcp.receive(&mut bytes) {
            Ok(Some(0)) if self.is_closed || self.inbox.is_empty() => Err(IperfError::Closed(self.peer)),
            // What came before the end is read first.
            Ok(Some(0)) => {
                self.is_closed = true;
                Ok(())
            }
            Ok(Some(count)) => {
                self.inbox.push(&bytes[..count]);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(_) => Err(IperfError::Closed(self.peer)),
        }
    }

    /// The next state, if it has come; those that end everything are errors.
    ///
    /// # Errors
    /// What the other end says or does wrong.
    pub(crate) fn state(&mut self) -> Result<Option<State>, IperfError> {
        match self.inbox.state().map_err(|source| self.protocol(source))? {
            Some(State::AccessDenied) => Err(IperfError::Busy),
            Some(State::ClientTerminate | State::ServerTerminate) => Err(IperfError::Terminated(self.peer)),
            Some(State::ServerError) => {
                let (code, errno) = self.until(ANSWER, "refusing", |inbox| Ok(inbox.refusal()))?;
                let mut text = Refusal::sentence(code);
                if errno > 0 {
                    text += &format!(" ({})", std::io::Error::from_raw_os_error(errno));
                }
                Err(IperfError::Refused(text))
            }
            state => Ok(state),
        }
    }

    /// Waits for this state.
    ///
    /// # Errors
    /// What comes in its place, or that nothing does within `limit`.
    pub(crate) fn expect(&mut self, wanted: State, limit: Duration, during: &'static str) -> Result<(), IperfError> {
        let deadline = Instant::now() + limit;
        loop {
            match self.state()? {
                Some(state) if state == wanted => return Ok(()),
                Some(state) => return Err(self.protocol(ProtocolError::Unexpected(state))),
                None => self.wait_until(deadline, limit, during)?,
            }
        }
    }

    /// Waits for a document of at most `most` bytes.
    ///
    /// # Errors
    /// As for [`Control::expect`].
    pub(crate) fn document(&mut self, most: usize, what: &'static str) -> Result<Map<String, Value>, IperfError> {
        self.until(ANSWER, what, |inbox| inbox.document(most, what))
    }

    fn until<T>(
        &mut self,
        limit: Duration,
        during: &'static str,
        mut take: impl FnMut(&mut Inbox) -> Result<Option<T>, ProtocolError>,
    ) -> Result<T, IperfError> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(found) = take(&mut self.inbox).map_err(|source| self.protocol(source))? {
                return Ok(found);
            }
            self.wait_until(deadline, limit, during)?;
        }
    }

    fn wait_until(&mut self, deadline: Instant, limit: Duration, during: &'static str) -> Result<(), IperfError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.silent(during, limit));
        }
        if self.is_closed {
            return Err(IperfError::Closed(self.peer));
        }
        self.wait(left)
    }

    /// Says why there is no test, as a server does.
    pub(crate) fn refuse(&self, error: &IperfError) {
        let state = match error {
            IperfError::Closed(_) | IperfError::Terminated(_) => return,
            IperfError::Stopped => State::ServerTerminate,
            _ => State::ServerError,
        };
        let mut bytes = vec![state.byte()];
        if state == State::ServerError {
            let code = error.refusal().map_or(0, Refusal::code);
            let errno = match error {
                IperfError::Host(error) => error.source.raw_os_error().unwrap_or(0),
                _ => 0,
            };
            bytes.extend([code.to_be_bytes(), errno.to_be_bytes()].concat());
        }
        // It may go away right now.
        let _ = self.send(&bytes);
        self.linger();
    }

    /// Ends the sending, and throws away what still comes: a connection that is closed with unread data is reset, and the other end may lose
    /// what was sent to it.
    fn linger(&self) {
        let deadline = Instant::now() + LINGER;
        let mut is_open = self.tcp.end_sending().is_ok();
        while is_open && Instant::now() < deadline {
            match self.tcp.discard(READ) {
                Ok(Some(0)) | Err(_) => is_open = false,
                Ok(Some(_)) => {}
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    fn silent(&self, during: &'static str, limit: Duration) -> IperfError {
        IperfError::Silent { peer: self.peer, during, limit }
    }

    fn protocol(&self, source: ProtocolError) -> IperfError {
        IperfError::Protocol { peer: self.peer, source }
    }
}

/// A cookie of the kernel's random numbers.
///
/// # Errors
/// When the kernel gives none.
pub(crate) fn random_cookie() -> Result<Cookie, IperfError> {
    Ok(Cookie::of_random(thalweg_host::random::bytes()?))
}
