//! Many captures diagnosed side by side, and given to sinks in their order.

mod defect;
mod files;
mod read;
mod remedies;
mod request;
mod shards;
mod sink;

pub use files::capture_files;
pub use read::{mark, plot};
pub use remedies::Remedies;
pub use request::{DiagnoseRequest, Plots};
pub use sink::Sink;

use crate::failure::{Failure, Party};
use crate::observer::Observer;
use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;
use thalweg_infer::CaptureDiagnosis;
use thalweg_model::CaptureReport;

/// Captures under way or waiting for one before them, for each worker: what bounds memory.
const WINDOW: usize = 2;
/// How often the observer hears how much was read.
const TICK: Duration = Duration::from_millis(100);

/// What came of it, besides what the sinks received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiagnoseOutcome {
    /// Whether something other than its programs makes a reported flow slower than it could be, or fails it.
    pub slowed: bool,
    /// Whose fault it is that a capture could not be read, where others were; the first one's.
    pub failed: Option<Party>,
}

/// Diagnoses the captures of `request`, as many at a time as there are processors, and gives each to the `sinks`.
///
/// Of several captures, those that cannot be read are given to [`Sink::failed`], and the others are diagnosed.
///
/// # Errors
/// Those of the sinks; a single capture that cannot be read; a flow that no capture has.
pub fn diagnose_many(
    request: &DiagnoseRequest,
    sinks: Vec<Box<dyn Sink + '_>>,
    observer: &mut dyn Observer,
) -> Result<DiagnoseOutcome, Failure> {
    let mut delivery = Delivery::new(request, sinks);
    let last = request.paths.len().saturating_sub(1);
    in_order(request, observer, |place, found| {
        let path = &request.paths[place];
        match found {
            Ok(found) => {
                let found = delivery.capture(path, found)?;
                if request.ends_process && place == last {
                    std::mem::forget(found);
                }
                Ok(())
            }
            Err(failure) if last == 0 => Err(failure),
            Err(failure) => delivery.failed(path, &failure),
        }
    })?;
    delivery.finish()
}

/// Gives what was diagnosed by other means, such as live packets or sockets, to the `sinks` as the capture `name`.
///
/// # Errors
/// Those of the sinks; a flow that it does not have.
pub fn deliver(
    request: &DiagnoseRequest,
    name: &str,
    mut found: CaptureDiagnosis,
    sinks: Vec<Box<dyn Sink + '_>>,
) -> Result<DiagnoseOutcome, Failure> {
    request.plan(&mut found);
    let mut delivery = Delivery::new(request, sinks);
    delivery.capture(Path::new(name), found)?;
    delivery.finish()
}

/// What was delivered so far.
struct Delivery<'a> {
    flow: Option<u64>,
    sinks: Vec<Box<dyn Sink + 'a>>,
    outcome: DiagnoseOutcome,
    /// Whether a capture has the flow that is wanted.
    has_flow: bool,
}

impl<'a> Delivery<'a> {
    fn new(request: &DiagnoseRequest, sinks: Vec<Box<dyn Sink + 'a>>) -> Self {
        Self { flow: request.flow, sinks, outcome: DiagnoseOutcome::default(), has_flow: false }
    }

    fn capture(&mut self, path: &Path, found: CaptureDiagnosis) -> Result<Option<CaptureDiagnosis>, Failure> {
        let found = match self.flow {
            None => Some(found),
            Some(id) => alone(found, id),
        };
        let Some(found) = found else { return Ok(None) };
        self.has_flow = true;
        self.outcome.slowed |= found.slowed;
        if !found.failed.is_empty() {
            self.outcome.failed.get_or_insert(Party::Host);
        }
        self.sinks.iter_mut().try_for_each(|sink| sink.capture(path, &found))?;
        Ok(Some(found))
    }

    fn failed(&mut self, path: &Path, failure: &Failure) -> Result<(), Failure> {
        self.outcome.failed.get_or_insert(failure.party());
        self.sinks.iter_mut().try_for_each(|sink| sink.failed(path, failure))
    }

    fn finish(self) -> Result<DiagnoseOutcome, Failure> {
        if let Some(id) = self.flow.filter(|_| !self.has_flow) {
            return Err(Failure::user(format!("there is no connection #{id} in what was read"))
                .hint("the list without --flow numbers them"));
        }
        self.sinks.into_iter().try_for_each(Sink::finish)?;
        Ok(self.outcome)
    }
}

/// A capture with this one of its flows; `None` if it does not have it.
fn alone(mut found: CaptureDiagnosis, id: u64) -> Option<CaptureDiagnosis> {
    let index = found.report.flows.iter().position(|flow| flow.id == id)?;
    let series = found.series.into_iter().filter(|(at, _)| *at == index).map(|(_, series)| (0, series)).collect();
    let flow = found.report.flows.swap_remove(index);
    let slowed = thalweg_infer::is_slowed(&flow);
    let report = CaptureReport { flows: vec![flow], ..found.report };
    Some(CaptureDiagnosis { report, series, slowed, ..found })
}

/// Diagnoses the captures by several threads, and gives each to `each` with its place, in their order.
fn in_order(
    request: &DiagnoseRequest,
    observer: &mut dyn Observer,
    mut each: impl FnMut(usize, Result<CaptureDiagnosis, Failure>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (count, jobs) = (request.paths.len(), request.jobs());
    let workers = jobs.clamp(1, count.max(1));
    let sizes = request.paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|data| data.len());
    let size = sizes.sum::<u64>().max(1) as f64;
    let (read, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().map_err(Failure::host)?;
    pool.in_place_scope_fifo(|scope| {
        let begin = |place: usize| -> Receiver<Result<CaptureDiagnosis, Failure>> {
            let (reply, result) = mpsc::channel();
            let (read, stop) = (&read, &stop);
            scope.spawn_fifo(move |_| {
                if !stop.load(Ordering::Relaxed) {
                    // Nobody listens any more where the work has failed.
                    let _ = reply.send(read::one(request, place, jobs / workers, read));
                }
            });
            result
        };
        let mut places = 0..count;
        let mut waiting: VecDeque<_> = places.by_ref().take(workers * WINDOW).map(begin).collect();
        for place in 0..count {
            let Some(result) = waiting.pop_front() else { break };
            let found = loop {
                match result.recv_timeout(TICK) {
                    Ok(found) => break found,
                    Err(RecvTimeoutError::Timeout) => observer.read(read.load(Ordering::Relaxed) as f64 / size),
                    Err(RecvTimeoutError::Disconnected) => unreachable!("invariant: each capture is answered"),
                }
            };
            waiting.extend(places.next().map(begin));
            observer.diagnosed(place + 1, count);
            if let Err(failure) = each(place, found) {
                stop.store(true, Ordering::Relaxed);
                return Err(failure);
            }
        }
        Ok(())
    })
}
