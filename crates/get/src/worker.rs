//! A worker: fetches one range after the other on a connection of its own.

use crate::answer::{self, Part};
use crate::client::{Client, Connection, RequestError};
use crate::division::{Division, WorkerId};
use crate::error::GetError;
use crate::fields::Validator;
use crate::rate_limit::RateLimit;
use crate::store::Sink;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{IF_RANGE, RANGE};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, Instant};
use url::Url;

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) client: Rc<Client>,
    /// What was asked for: its credentials go to its own server alone.
    pub(crate) asked: Url,
    /// Where the object is.
    pub(crate) url: Url,
    /// The version that is fetched; `None` where the object comes as one body.
    pub(crate) validator: Option<Validator>,
    pub(crate) began: Instant,
    pub(crate) state: RefCell<State>,
}

/// What changes while workers fetch.
pub(crate) struct State {
    pub(crate) division: Division,
    pub(crate) sink: Sink,
    pub(crate) limit: RateLimit,
    /// How many ranges there should be.
    pub(crate) ranges: usize,
    /// The least that is worth a request, and a new connection.
    pub(crate) min_request_bytes: u64,
    pub(crate) min_new_connection_bytes: u64,
    /// Bytes stored by this process.
    pub(crate) received: u64,
    /// Time in writes that have ended, or until the last look.
    pub(crate) writing: Duration,
    /// Since when a stream's reader, or the last look, is waited for.
    pub(crate) writing_since: Option<Instant>,
    /// A worker waited for the rate limit since the last look.
    pub(crate) rate_limited: bool,
    /// The connections in use.
    pub(crate) lines: BTreeMap<WorkerId, Line>,
    /// Connections opened.
    pub(crate) opened: u64,
}

impl State {
    /// Counts the time until now of a write under way.
    pub(crate) fn count_writing(&mut self) {
        if let Some(since) = &mut self.writing_since {
            self.writing += since.elapsed();
            *since = Instant::now();
        }
    }
}

/// A worker's connection.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) socket: Rc<OwnedFd>,
    /// No other connection of the download has this number.
    pub(crate) number: u64,
    /// When it last got data, or could have begun to.
    pub(crate) heard: Instant,
    /// The longest time without data since the last look.
    pub(crate) longest_wait: Duration,
    /// Its body has begun.
    pub(crate) receives: bool,
    /// What it waits for instead of data, so that its silence means nothing.
    pub(crate) held: Option<Held>,
    /// Bytes that must have come before the kernel wakes this program.
    wake_after: u32,
}

/// Why a worker does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// By the rate limit.
    RateLimit,
    /// By whoever reads the stream that it writes.
    Write,
}

impl Line {
    /// Has the kernel wake this program only after this many bytes. If the kernel refuses, that costs only time.
    pub(crate) fn wake_after(&mut self, bytes: u32) {
        if bytes != self.wake_after && thalweg_host::socket::wake_after(&*self.socket, bytes).is_ok() {
            self.wake_after = bytes;
        }
    }
}

/// How a worker ended.
pub(crate) enum End {
    /// There is nothing left for it.
    Idle,
    /// A body of unknown length has ended.
    Whole(u64),
    /// A request failed.
    Failed { why: String, after: Option<Duration>, refused: bool },
    /// The server does not keep to ranges.
    NoRange,
    /// The object changed.
    Changed,
    /// No other try makes sense.
    Fatal(GetError),
}

impl From<RequestError> for End {
    fn from(trouble: RequestError) -> Self {
        match trouble {
            RequestError::Unreachable(why) => Self::Failed { why, after: None, refused: true },
            RequestError::Broken(why) => Self::Failed { why, after: None, refused: false },
            RequestError::Fatal(error) => Self::Fatal(error),
        }
    }
}

/// Fetches ranges until nothing is left; `first` is a body under way, whose range is claimed.
pub(crate) async fn work(shared: Rc<Shared>, id: WorkerId, first: Option<(Connection, Incoming)>) -> End {
    let mut line = None;
    let result = fetch(&shared, id, first, &mut line).await;
    result.unwrap_or_else(|end| end)
}

async fn fetch(
    shared: &Shared,
    id: WorkerId,
    first: Option<(Connection, Incoming)>,
    line: &mut Option<Connection>,
) -> Result<End, End> {
    if let Some((connection, body)) = first {
        shared.opened(id, &connection);
        let whole = receive(shared, id, body, u64::MAX).await?;
        let total = shared.state.borrow().division.total();
        if whole.ended && total == u64::MAX {
            return Ok(End::Whole(whole.at));
        }
        settle(shared, id, &whole)?;
        *line = (whole.ended || connection.has_streams()).then_some(connection);
    }
    let Some(validator) = &shared.validator else { return Ok(End::Idle) };
    loop {
        let claim = {
            let mut state = shared.state.borrow_mut();
            line.take_if(|connection| connection.is_closed());
            // New workers come together and share. One that has a connection has come to the end of its range alone.
            let (idle, least) = match line {
                Some(_) => (1, state.min_request_bytes),
                None => (state.ranges.saturating_sub(state.division.claims()), state.min_new_connection_bytes),
            };
            state.division.claim(id, idle, least)
        };
        let Some((start, end)) = claim else { return Ok(End::Idle) };
        let mut connection = match line.take() {
            Some(connection) => connection,
            None => {
                let connection = shared.client.connect(&shared.url).await?;
                shared.opened(id, &connection);
                connection
            }
        };
        let fields = [(RANGE, format!("bytes={start}-{}", end - 1)), (IF_RANGE, validator.text().to_owned())];
        let request = shared.client.request(&shared.url, &connection, Some(&shared.asked), &fields);
        let response = connection.send(request.map_err(End::Fatal)?).await?;
        let total = shared.state.borrow().division.total();
        let until = match answer::part(response.status(), response.headers(), (start, end), total, validator) {
            Part::Range(until) => until,
            Part::Changed => return Ok(End::Changed),
            Part::NoRange => return Ok(End::NoRange),
            Part::Later { status, after } => {
                return Ok(End::Failed {
                    why: format!("the server answers with status {status}"),
                    after,
                    refused: true,
                });
            }
        };
        shared.hold(id, None);
        let received = receive(shared, id, response.into_body(), until).await?;
        settle(shared, id, &received)?;
        *line = (received.ended || connection.has_streams()).then_some(connection);
    }
}

impl Shared {
    /// Since the download began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn opened(&self, id: WorkerId, connection: &Connection) {
        let mut state = self.state.borrow_mut();
        state.opened += 1;
        let line = Line {
            socket: Rc::clone(&connection.socket),
            number: state.opened,
            heard: Instant::now(),
            longest_wait: Duration::ZERO,
            receives: false,
            held: None,
            wake_after: 1,
        };
        state.lines.insert(id, line);
    }

    /// Its worker waits for something else than data, or from now on for data.
    fn hold(&self, id: WorkerId, held: Option<Held>) {
        let mut state = self.state.borrow_mut();
        state.rate_limited |= held == Some(Held::RateLimit);
        if let Some(line) = state.lines.get_mut(&id) {
            (line.held, line.heard) = (held, Instant::now());
        }
    }
}

/// What came of a body.
struct Received {
    /// Where the next byte would go.
    at: u64,
    /// The body was read to its end.
    ended: bool,
}

/// Stores a body up to the end of the worker's range, or up to `until`.
async fn receive(shared: &Shared, id: WorkerId, mut body: Incoming, until: u64) -> Result<Received, End> {
    loop {
        let (at, left) = {
            let mut state = shared.state.borrow_mut();
            let at = state.division.at(id).unwrap_or(0);
            let left = state.division.left(id).min(until.saturating_sub(at));
            // The last bytes may be fewer than the kernel waits for.
            if let Some(line) = state.lines.get_mut(&id).filter(|line| left <= 2 * u64::from(line.wake_after)) {
                line.wake_after(1);
            }
            (at, left)
        };
        if left == 0 {
            // The end of the body is read too, if it is there: then the connection can have another request.
            let end = tokio::time::timeout(Duration::ZERO, body.frame()).await;
            return Ok(Received { at, ended: matches!(end, Ok(None)) });
        }
        let frame = match body.frame().await {
            None => return Ok(Received { at, ended: true }),
            Some(Err(error)) => return Err(RequestError::Broken(crate::client::reason(&error)).into()),
            Some(Ok(frame)) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let len = store(shared, id, data).await.map_err(End::Fatal)?;
        let wait = shared.state.borrow_mut().limit.take(len, shared.now());
        if !wait.is_zero() {
            shared.hold(id, Some(Held::RateLimit));
            tokio::time::sleep(wait).await;
            shared.hold(id, None);
        }
    }
}

/// Stores what came, and returns how much of it was wanted.
async fn store(shared: &Shared, id: WorkerId, data: Bytes) -> Result<u64, GetError> {
    let begun = Instant::now();
    let (at, len, sink) = {
        let mut state = shared.state.borrow_mut();
        // Another worker may have taken a part of the range while this waited.
        let Some(at) = state.division.at(id) else { return Ok(0) };
        let len = (data.len() as u64).min(state.division.left(id));
        if let Some(line) = state.lines.get_mut(&id) {
            line.longest_wait = line.longest_wait.max(begun - line.heard);
            (line.heard, line.receives) = (begun, true);
        }
        let sink = match &mut state.sink {
            Sink::Nowhere => None,
            Sink::File(file) => {
                file.write(at, &data[..len as usize])?;
                state.writing += begun.elapsed();
                None
            }
            stream @ Sink::Stream { .. } => Some(std::mem::replace(stream, Sink::Nowhere)),
        };
        (at, len, sink)
    };
    if let Some(mut sink) = sink {
        // Whoever reads the stream may take as long as it likes: the rest of the program goes on meanwhile.
        shared.hold(id, Some(Held::Write));
        shared.state.borrow_mut().writing_since = Some(begun);
        let write = move || {
            let result = sink.write(at, &data[..len as usize]);
            (sink, result)
        };
        let (sink, result) = tokio::task::spawn_blocking(write).await.expect("invariant: a write does not panic");
        shared.hold(id, None);
        let mut state = shared.state.borrow_mut();
        state.sink = sink;
        state.count_writing();
        state.writing_since = None;
        result?;
    }
    let mut state = shared.state.borrow_mut();
    state.division.stored(id, len);
    state.received += len;
    Ok(len)
}

/// Gives back what of the range is not stored; a body that ended before its range did, without a byte, is a failure.
fn settle(shared: &Shared, id: WorkerId, received: &Received) -> Result<(), End> {
    let mut state = shared.state.borrow_mut();
    let left = state.division.left(id);
    state.division.release(id);
    if received.ended && left > 0 {
        let why = "the server ended the response too early".to_owned();
        return Err(End::Failed { why, after: None, refused: false });
    }
    Ok(())
}
