//! The bytes of one version of an object: workers, as many as the controller says, until all is stored.

use crate::backoff::Backoff;
use crate::client::{Connection, shown};
use crate::controller::{Controller, Sample};
use crate::division::WorkerId;
use crate::error::GetError;
use crate::journal::Journal;
use crate::limits::{Limits, Situation};
use crate::options::{Observer, Options, Progress};
use crate::store::Sink;
use crate::window::{Reading, SocketSample, WindowMeter};
use crate::worker::{End, Shared, work};
use hyper::body::Incoming;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_model::{GetConnection, GetRanges, GetReport};
use tokio::task::{AbortHandle, Id, JoinHandle, JoinSet};

/// Bounds of the time between two looks; between them it is a round trip.
const LOOK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(200));
/// The shortest time between two checkpoints; they take at most a fifth of the time, so that the disk has time for data.
const CHECKPOINT: Duration = Duration::from_millis(500);
/// How often progress is shown, and over how long its rate is taken.
const SHOW: Duration = Duration::from_millis(100);
const SHOWN_RATE: Duration = Duration::from_secs(3);
/// The least that is worth a request of its own, and in windows: a request costs a round trip, so it should last two.
const LEAST: u64 = 1 << 20;
const LEAST_WINDOWS: u64 = 2;
/// From here on the rate is called steady.
const STEADY: Duration = Duration::from_secs(1);

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
    meters: BTreeMap<WorkerId, WindowMeter>,
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
        self.workers.abort_all();
        while self.workers.join_next().await.is_some() {}
        if let Some((_, running)) = self.checkpoint.running.take() {
            // The next one tells what this one could not.
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
                return Err(GetError::Stopped);
            }
            self.spawn();
            let look = self.path.min_rtt.clamp(LOOK.0, LOOK.1);
            tokio::select! {
                ended = self.workers.join_next_with_id(), if !self.workers.is_empty() => {
                    if let Some(outcome) = self.ended(ended, observer)? {
                        return Ok(outcome);
                    }
                }
                () = tokio::time::sleep(look) => self.look(),
            }
            self.save().await?;
            let now = self.shared.now();
            if now >= shown + SHOW {
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
            let has_work = state.division.has_work(if self.tasks.is_empty() { 0 } else { state.least });
            drop(state);
            if !has_work || self.shared.validator.is_none() && self.next > 0 {
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
        if let Some(meter) = self.meters.remove(&id) {
            self.path.out_of_order += meter.out_of_order;
        }
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
        self.tasks.remove(&id);
        let received = self.shared.state.borrow().lines.get(&id).is_some_and(|line| line.receives);
        self.forget(id);
        if received {
            self.backoff.progress();
        }
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
            return Err(GetError::GivenUp { url: self.url.clone(), tries: self.backoff.failures(), why });
        }
        if others == 0 && self.shared.validator.is_some() {
            let wait = self.backoff.until().saturating_sub(self.shared.now());
            observer.note(&format!("{why}; the next try is in {:.1} s", wait.as_secs_f64()));
        }
        let is_single = self.shared.validator.is_none();
        Ok(is_single.then_some(Outcome::Again(Again::Broken { why })))
    }

    /// Looks at every socket, and asks the controller.
    fn look(&mut self) {
        let now = self.shared.now();
        let (mut readings, mut silent) = (Vec::new(), Vec::new());
        let lines = self.shared.state.borrow().lines.clone();
        for (id, line) in &lines {
            if !line.waits && line.heard.elapsed() > self.stall {
                silent.push(*id);
            }
            if !line.receives {
                continue;
            }
            let Some(sample) = SocketSample::of(&*line.socket) else { continue };
            let meter = self.meters.entry(*id).or_default();
            readings.push(meter.add(now, &sample));
            self.path.window = self.path.window.max(meter.window_max);
            self.path.min_rtt =
                if self.path.min_rtt.is_zero() { meter.min_rtt } else { self.path.min_rtt.min(meter.min_rtt) };
        }
        for id in silent {
            if let Some((_, task)) = self.tasks.remove(&id) {
                task.abort();
                self.forget(id);
                self.retries += 1;
                self.backoff.failed(now, None);
            }
        }
        self.judge(now, &readings);
    }

    fn judge(&mut self, now: Duration, readings: &[Reading]) {
        let mut state = self.shared.state.borrow_mut();
        state.least = LEAST.max(self.path.window * LEAST_WINDOWS);
        let (bytes, writing, limited) = (state.received, state.writing, state.limited);
        drop(state);
        let situation = Situation { now, readings, writing, limited };
        let held_back = self.limits.add(&situation);
        if now >= STEADY && self.steady.is_none() {
            self.steady = Some((now, bytes));
        }
        if readings.is_empty() {
            return;
        }
        let window_limited = readings.iter().filter(|reading| reading.window_limited).count();
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
            self.checkpoint.next = now + CHECKPOINT.max(begun.elapsed() * 4);
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
        while self.shown.get(1).is_some_and(|(at, _)| *at + SHOWN_RATE <= now) {
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
        let steady = self.steady.filter(|(at, _)| now >= *at + STEADY);
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
