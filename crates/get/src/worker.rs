//! A worker: fetches one range after the other on a connection of its own.

use crate::answer::{self, Part};
use crate::client::{Client, Connection, Trouble};
use crate::division::{Division, WorkerId};
use crate::error::GetError;
use crate::fields::Validator;
use crate::rate_limit::RateLimit;
use crate::store::Sink;
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
    pub(crate) client: Client,
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
    /// How many ranges there should be, and the least that is worth a request.
    pub(crate) ranges: usize,
    pub(crate) least: u64,
    /// Bytes stored by this process.
    pub(crate) received: u64,
    /// Time in writes, and waited for by the rate limit.
    pub(crate) writing: Duration,
    pub(crate) limited: Duration,
    /// The connections in use, and when each last got data.
    pub(crate) lines: BTreeMap<WorkerId, Line>,
}

/// A worker's connection.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) socket: Rc<OwnedFd>,
    pub(crate) heard: Instant,
    /// Its body has begun.
    pub(crate) receives: bool,
    /// It waits for the rate limit, so that its silence means nothing.
    pub(crate) waits: bool,
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

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unreachable(why) => Self::Failed { why, after: None, refused: true },
            Trouble::Broken(why) => Self::Failed { why, after: None, refused: false },
            Trouble::Fatal(error) => Self::Fatal(error),
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
            let (ranges, least) = (state.ranges, state.least);
            state.division.claim(id, ranges, least)
        };
        let Some((start, end)) = claim else { return Ok(End::Idle) };
        let mut connection = match line.take().filter(|connection| !connection.is_closed()) {
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
        let line = Line { socket: Rc::clone(&connection.socket), heard: Instant::now(), receives: false, waits: false };
        self.state.borrow_mut().lines.insert(id, line);
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
        let at = shared.state.borrow().division.at(id).unwrap_or(0);
        let left = shared.state.borrow().division.left(id).min(until.saturating_sub(at));
        if left == 0 {
            // The end of the body is read too, if it is there: then the connection can have another request.
            let end = tokio::time::timeout(Duration::ZERO, body.frame()).await;
            return Ok(Received { at, ended: matches!(end, Ok(None)) });
        }
        let frame = match body.frame().await {
            None => return Ok(Received { at, ended: true }),
            Some(Err(error)) => return Err(Trouble::Broken(crate::client::reason(&error)).into()),
            Some(Ok(frame)) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        let wait = store(shared, id, &data).map_err(End::Fatal)?;
        if !wait.is_zero() {
            shared.waits(id, true);
            tokio::time::sleep(wait).await;
            shared.waits(id, false);
        }
    }
}

impl Shared {
    fn waits(&self, id: WorkerId, waits: bool) {
        if let Some(line) = self.state.borrow_mut().lines.get_mut(&id) {
            line.waits = waits;
            line.heard = Instant::now();
        }
    }
}

/// Stores what came, and returns how long the rate limit makes the worker wait.
fn store(shared: &Shared, id: WorkerId, data: &[u8]) -> Result<Duration, GetError> {
    let mut state = shared.state.borrow_mut();
    // Another worker may have taken a part of the range while this waited.
    let Some(at) = state.division.at(id) else { return Ok(Duration::ZERO) };
    let len = (data.len() as u64).min(state.division.left(id));
    let begun = Instant::now();
    state.sink.write(at, &data[..len as usize])?;
    let written = Instant::now();
    state.writing += written - begun;
    state.division.stored(id, len);
    state.received += len;
    if let Some(line) = state.lines.get_mut(&id) {
        (line.heard, line.receives) = (written, true);
    }
    let wait = state.limit.take(len, written - shared.began);
    state.limited += wait;
    Ok(wait)
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
