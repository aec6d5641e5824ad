//! The bytes of one version of an object: workers, as many as the controller says, until all is stored.

use crate::backoff::Backoff;
use crate::client::{Connection, shown};
use crate::controller::{Controller, Sample};
use crate::division::WorkerId;
use crate::error::{GetError, Left};
use crate::journal::Journal;
use crate::limits::{Limits, Situation};
use crate::options::{Observer, Options, Progress};
use crate::store::Sink;
use crate::window::{Reading, SocketSample, WindowMeter};
use crate::worker::{End, Held, Line, Shared, work};
use hyper::body::Incoming;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_model::{GetConnection, GetLimit, GetRanges, GetReport};
use tokio::task::{AbortHandle, Id, JoinHandle, JoinSet};

/// Bounds of the time between two looks; between them it is a round trip.
const SAMPLE_INTERVAL: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
/// The shortest time between two checkpoints; they take at most a fifth of the time, so that the disk has time for data.
const MIN_CHECKPOINT_INTERVAL: Duration = Duration::from_millis(500);
/// How often progress is shown, and over how long its rate is taken.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const PROGRESS_RATE_TIME: Duration = Duration::from_secs(3);
/// The least that is worth a request of its own: a request costs a round trip, so it should last for one, which is a window.
const MIN_REQUEST_BYTES: u64 = 1 << 20;
/// The same in windows on a new connection: it takes as many round trips until its window is full, two for TCP and the request and eight
/// doublings from ten segments (RFC 6928) to 2.65 MB, the window of scenarios/get-window.toml.
const NEW_CONNECTION_WINDOWS: u64 = 10;
/// The kernel wakes the program so often in a round trip, not for each packet: what is unread takes a small share of the window.
/// `WAKE_BYTES_MAX` is the most that it waits for.
const WAKES_PER_RTT: u64 = 128;
const WAKE_BYTES_MAX: u64 = 64 << 10;
/// From here on the rate is called steady.
const STEADY_AFTER: Duration = Duration::from_secs(1);

/// How a transfer ended.
pub(crate) enum Outcome {
    /// All is stored.
    Complete,
    /// What is stored is of no use.
    Again(Again),
}

/// Why a transfer has to begin again.
pub(crate) enum Again {
    /// The object changed.
    Changed,
    /// The server does not keep to ranges.
    NoRange,
    /// The connection broke, and the object comes as one body.
    Broken { why: String },
}

/// The transfer of one version.
pub(crate) struct Transfer {
    pub(crate) shared: Rc<Shared>,
    pub(crate) backoff: Backoff,
    pub(crate) retries: u32,
    pub(crate) resumed: u64,
    first: Option<(Connection, Incoming)>,
    protocol: &'static str,
    proxy: bool,
    controller: Controller,
    workers: JoinSet<End>,
    tasks: BTreeMap<WorkerId, (Id, AbortHandle)>,
    next: WorkerId,
    /// By the connection's number.
    meters: BTreeMap<u64, WindowMeter>,
    limits: Limits,
    stall: Duration,
    /// The widest it was.
    most: usize,
    /// Bytes and time at the first second.
    steady: Option<(Duration, u64)>,
    path: Path,
    checkpoint: Checkpoint,
    total: Option<u64>,
    shown: VecDeque<(Duration, u64)>,
    url: String,
}

/// What the connections have shown.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    min_rtt: Duration,
    window: u64,
    /// Of connections that are gone.
    out_of_order: u64,
}

/// The latest checkpoint.
#[derive(Default)]
struct Checkpoint {
    running: Option<(Instant, JoinHandle<Result<(), GetError>>)>,
    next: Duration,
    bytes: u64,
}

impl Transfer {
    pub(crate) fn new(shared: Rc<Shared>, first: (Connection, Incoming), most: usize, options: &Options) -> Self {
        let total = Some(shared.state.borrow().division.total()).filter(|total| *total < u64::MAX);
        Self {
            backoff: Backoff::new(options.retries),
            retries: 0,
            resumed: 0,
            protocol: first.0.protocol,
            proxy: first.0.proxy.is_some(),
            first: Some(first),
            controller: Controller::new(most),
            workers: JoinSet::new(),
            tasks: BTreeMap::new(),
            next: 0,
            meters: BTreeMap::new(),
            limits: Limits::default(),
            stall: options.stall,
            most: 1,
            steady: None,
            path: Path::default(),
            checkpoint: Checkpoint::default(),
            total,
            shown: VecDeque::new(),
            url: shown(&shared.url),
            shared,
        }
    }

    /// Fetches until all is stored.
    pub(crate) async fn run(&mut self, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<Outcome, GetError> {
        let outcome = self.fetch(stop, observer).await;
        let now = self.shared.now();
        let readings = self.read(now);
        self.judge(now, &readings);
        self.workers.abort_all();
        while self.workers.join_next().await.is_some() {}
        if let Some((_, running)) = self.checkpoint.running.take() {
            // The next one reports what this one could not.
            let _ = running.await;
        }
        if outcome.is_err()
            && let Some(last) = self.journal()
        {
            // What was fetched is kept for the next try; the first failure is the one to tell.
            let _ = last();
        }
        outcome
    }

    async fn fetch(&mut self, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<Outcome, GetError> {
        self.begin();
        let mut shown = Duration::ZERO;
        loop {
            if self.is_complete() {
                return Ok(Outcome::Complete);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(GetError::Stopped { left: self.left() });
            }
            self.spawn();
            if self.tasks.is_empty() && self.shared.validator.is_none() {
                let why = "the response ended without all of the object".to_owned();
                return Ok(Outcome::Again(Again::Broken { why }));
            }
            let look = self.path.min_rtt.clamp(SAMPLE_INTERVAL.0, SAMPLE_INTERVAL.1);
            tokio::select! {
                ended = self.workers.join_next_with_id(), if !self.workers.is_empty() => {
                    if let Some(outcome) = self.ended(ended, observer)? {
                        return Ok(outcome);
                    }
                }
                () = tokio::time::sleep(look) => {
                    if let Some(outcome) = self.look(observer)? {
                        return Ok(outcome);
                    }
                }
            }
            self.save().await?;
            let now = self.shared.now();
            if now >= shown + PROGRESS_INTERVAL {
                shown = now;
                self.show(now, observer);
            }
        }
    }

    /// Starts with the body of the first request, if its first byte is wanted.
    fn begin(&mut self) {
        let Some(first) = self.first.take() else { return };
        let id = self.next;
        let wanted = self.shared.state.borrow_mut().division.claim_first(id).is_some();
        if wanted {
            self.start(Some(first));
        }
    }

    fn start(&mut self, first: Option<(Connection, Incoming)>) {
        let id = self.next;
        self.next += 1;
        let task = self.workers.spawn_local(work(Rc::clone(&self.shared), id, first));
        self.tasks.insert(id, (task.id(), task));
    }

    /// As many workers as there should be.
    fn spawn(&mut self) {
        let target = self.controller.target();
        self.shared.state.borrow_mut().ranges = target;
        // The latest go: they have the least to lose.
        while self.tasks.len() > target {
            let Some((id, (_, task))) = self.tasks.pop_last() else { break };
            task.abort();
            self.forget(id);
        }
        if self.shared.now() < self.backoff.until() {
            return;
        }
        while self.tasks.len() < target {
            let state = self.shared.state.borrow();
            let has_work =
                state.division.has_work(if self.tasks.is_empty() { 0 } else { state.min_new_connection_bytes });
            drop(state);
            if !has_work || self.shared.validator.is_none() {
                break;
            }
            self.start(None);
        }
        self.most = self.most.max(self.tasks.len());
    }

    /// A worker is gone: what it did not fetch waits again.
    fn forget(&mut self, id: WorkerId) {
        let mut state = self.shared.state.borrow_mut();
        state.division.release(id);
        state.lines.remove(&id);
    }

    /// A worker has ended. What it stored is progress, if it need not be fetched again.
    fn is_gone(&mut self, id: WorkerId) {
        // The last that its connection shows: a short download has no other look at it.
        self.read(self.shared.now());
        let received = self.shared.state.borrow().lines.get(&id).is_some_and(|line| line.receives);
        if received && self.shared.validator.is_some() {
            self.backoff.progress();
        }
        self.tasks.remove(&id);
        self.forget(id);
    }

    fn ended(
        &mut self,
        ended: Option<Result<(Id, End), tokio::task::JoinError>>,
        observer: &mut dyn Observer,
    ) -> Result<Option<Outcome>, GetError> {
        let (task, end) = match ended {
            Some(Ok(ended)) => ended,
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            _ => return Ok(None),
        };
        let Some(id) = self.tasks.iter().find(|(_, (found, _))| *found == task).map(|(id, _)| *id) else {
            // It was removed just as it ended.
            return Ok(None);
        };
        self.is_gone(id);
        match end {
            End::Idle => Ok(None),
            End::Whole(total) => {
                self.total = Some(total);
                Ok(Some(Outcome::Complete))
            }
            End::Fatal(error) => Err(error),
            End::Changed => Ok(Some(Outcome::Again(Again::Changed))),
            End::NoRange => Ok(Some(Outcome::Again(Again::NoRange))),
            End::Failed { why, after, refused } => self.failed(why, after, refused, observer),
        }
    }

    fn failed(
        &mut self,
        why: String,
        after: Option<Duration>,
        refused: bool,
        observer: &mut dyn Observer,
    ) -> Result<Option<Outcome>, GetError> {
        self.retries += 1;
        let others = self.tasks.len();
        if refused && others > 0 {
            // The others go on: the server wants no more than these.
            observer.note(&format!("{why}: no more than {others} ranges from here on"));
            self.controller.refused(others);
            return Ok(None);
        }
        let given_up = !self.backoff.failed(self.shared.now(), after);
        if given_up && others == 0 {
            let (url, tries, left) = (self.url.clone(), self.backoff.failures(), self.left());
            return Err(GetError::GivenUp { url, tries, why, left });
        }
        if others == 0 && self.shared.validator.is_some() {
            let wait = self.backoff.until().saturating_sub(self.shared.now());
            observer.note(&format!("{why}; the next try is in {:.1} s", wait.as_secs_f64()));
        }
        let is_single = self.shared.validator.is_none();
        Ok(is_single.then_some(Outcome::Again(Again::Broken { why })))
    }

    /// Looks at every socket, replaces silent ones, and asks the controller.
    fn look(&mut self, observer: &mut dyn Observer) -> Result<Option<Outcome>, GetError> {
        let is_silent = |line: &Line| line.held.is_none() && line.heard.elapsed() > self.stall;
        let silent: Vec<WorkerId> = {
            let state = self.shared.state.borrow();
            state.lines.iter().filter(|(_, line)| is_silent(line)).map(|(id, _)| *id).collect()
        };
        for id in silent {
            let Some((_, task)) = self.tasks.get(&id) else { continue };
            task.abort();
            self.is_gone(id);
            let why = format!("a connection was silent for {:.1} s", self.stall.as_secs_f64());
            if let Some(outcome) = self.failed(why, None, false, observer)? {
                return Ok(Some(outcome));
            }
        }
        let now = self.shared.now();
        let readings = self.read(now);
        self.judge(now, &readings);
        Ok(None)
    }

    /// Asks the kernel about every connection that receives.
    fn read(&mut self, now: Duration) -> Vec<Reading> {
        let mut state = self.shared.state.borrow_mut();
        let state = &mut *state;
        let lines = &state.lines;
        let out_of_order = &mut self.path.out_of_order;
        self.meters.retain(|number, meter| {
            let is_there = lines.values().any(|line| line.number == *number);
            *out_of_order += if is_there { 0 } else { meter.out_of_order };
            is_there
        });
        let mut readings = Vec::new();
        for (id, line) in state.lines.iter_mut().filter(|(_, line)| line.receives) {
            let Some(sample) = SocketSample::of(&*line.socket) else { continue };
            let waits = if line.held.is_some() { Duration::ZERO } else { line.heard.elapsed() };
            let longest_wait = std::mem::take(&mut line.longest_wait).max(waits);
            let meter = self.meters.entry(line.number).or_default();
            let reading = meter.add(now, &sample, longest_wait);
            let wake_after = (reading.flight / WAKES_PER_RTT).clamp(1, WAKE_BYTES_MAX);
            let is_near_the_end = state.division.left(*id) <= 4 * wake_after;
            let whole = self.total.is_some() && !state.limit.is_set() && !is_near_the_end;
            line.wake_after(if whole { wake_after as u32 } else { 1 });
            self.path.window = self.path.window.max(meter.window_max);
            let known = Some(self.path.min_rtt).filter(|rtt| !rtt.is_zero());
            self.path.min_rtt = known.map_or(meter.min_rtt, |rtt| rtt.min(meter.min_rtt));
            readings.push(reading);
        }
        readings
    }

    fn judge(&mut self, now: Duration, readings: &[Reading]) {
        let mut state = self.shared.state.borrow_mut();
        state.min_request_bytes = MIN_REQUEST_BYTES.max(self.path.window);
        state.min_new_connection_bytes = MIN_REQUEST_BYTES.max(self.path.window * NEW_CONNECTION_WINDOWS);
        let waits = state.lines.values().any(|line| line.held == Some(Held::RateLimit));
        let rate_limited = std::mem::take(&mut state.rate_limited) || waits;
        state.count_writing();
        let (bytes, writing) = (state.received, state.writing);
        drop(state);
        let busy = tokio::runtime::Handle::current().metrics().worker_total_busy_duration(0);
        let held_back = self.limits.add(&Situation { now, readings, rate_limited, busy, writing });
        if now >= STEADY_AFTER && self.steady.is_none() {
            self.steady = Some((now, bytes));
        }
        if readings.is_empty() {
            return;
        }
        let window_limited = readings.iter().filter(|reading| reading.limit == GetLimit::ReceiveWindow).count();
        self.controller.tick(&Sample {
            now,
            bytes,
            ranges: readings.len(),
            window_limited: if held_back { 0 } else { window_limited },
            min_rtt: self.path.min_rtt,
            window_bytes: self.path.window,
        });
    }

    fn is_complete(&self) -> bool {
        self.total.is_some() && self.shared.state.borrow().division.is_complete()
    }

    /// What makes the journal durable as of now; `None` where there is none.
    fn journal(&self) -> Option<impl FnOnce() -> Result<(), GetError> + Send + use<>> {
        let state = self.shared.state.borrow();
        let (Sink::File(file), Some(validator)) = (&state.sink, &self.shared.validator) else { return None };
        let done = state.division.done().clone();
        Some(file.checkpoint(Journal::new(state.division.total(), validator.clone(), done)))
    }

    /// Begins a checkpoint if one is due.
    async fn save(&mut self) -> Result<(), GetError> {
        let now = self.shared.now();
        if let Some((begun, running)) = self.checkpoint.running.take_if(|(_, running)| running.is_finished()) {
            self.checkpoint.next = now + MIN_CHECKPOINT_INTERVAL.max(begun.elapsed() * 4);
            running.await.unwrap_or(Ok(()))?;
        }
        let bytes = self.shared.state.borrow().received;
        if self.checkpoint.running.is_none() && now >= self.checkpoint.next && bytes > self.checkpoint.bytes {
            self.checkpoint.bytes = bytes;
            self.checkpoint.running =
                self.journal().map(|journal| (Instant::now(), tokio::task::spawn_blocking(journal)));
        }
        Ok(())
    }

    fn show(&mut self, now: Duration, observer: &mut dyn Observer) {
        let state = self.shared.state.borrow();
        self.shown.push_back((now, state.received));
        while self.shown.get(1).is_some_and(|(at, _)| *at + PROGRESS_RATE_TIME <= now) {
            self.shown.pop_front();
        }
        let (from, first) = self.shown.front().copied().unwrap_or_default();
        observer.progress(&Progress {
            done: state.division.done().bytes(),
            total: self.total,
            ranges: self.tasks.len(),
            goodput_bps: rate(state.received - first, now.saturating_sub(from)),
        });
    }

    /// What the transfer met; the file and the checksum are not known yet.
    pub(crate) fn report(&self, restarts: u32) -> GetReport {
        let now = self.shared.now();
        let state = self.shared.state.borrow();
        let asked = shown(&self.shared.asked);
        let (rtt, window) = (self.path.min_rtt, self.path.window);
        let out_of_order = self.path.out_of_order + self.meters.values().map(|meter| meter.out_of_order).sum::<u64>();
        let steady = self.steady.filter(|(at, _)| now >= *at + STEADY_AFTER);
        GetReport {
            schema: "thalweg.get/1",
            final_url: (asked != self.url).then(|| self.url.clone()),
            url: asked,
            file: None,
            bytes: state.division.done().bytes(),
            resumed_bytes: self.resumed,
            wall_s: now.as_secs_f64(),
            goodput_bps: rate(state.received, now),
            goodput_steady_bps: steady.map(|(at, bytes)| rate(state.received - bytes, now - at)),
            protocol: self.protocol,
            proxy: self.proxy,
            ranges: GetRanges {
                most: self.most as u64,
                last: self.controller.target() as u64,
                needed: self.controller.needed().map(|needed| needed as u64),
                possible: self.shared.validator.is_some(),
            },
            connection: GetConnection {
                min_rtt_ms: rtt.as_secs_f64() * 1e3,
                window_bytes: window,
                window_allows_bps: rate(window, rtt),
                out_of_order_segments: out_of_order,
            },
            limits: self.limits.shares(),
            retries: self.retries,
            restarts,
            checksum: None,
        }
    }

    /// Whether a next call goes on where this one stops: the object can be asked for in ranges, and be known again, and is stored in a file.
    pub(crate) fn is_kept(&self) -> bool {
        self.left() == Left::Part
    }

    fn left(&self) -> Left {
        match (&self.shared.state.borrow().sink, &self.shared.validator) {
            (Sink::File(_), Some(_)) => Left::Part,
            (Sink::Stream { .. }, _) => Left::Written,
            _ => Left::Nothing,
        }
    }

    /// Gives the output back.
    pub(crate) fn into_sink(self) -> Sink {
        std::mem::replace(&mut self.shared.state.borrow_mut().sink, Sink::Nowhere)
    }
}

/// Bytes over a time, in bits per second.
fn rate(bytes: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
