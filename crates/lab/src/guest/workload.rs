//! Workloads under way, each driven by its own events, so that several run at once in one thread.

use super::event_loop::{Event, EventLoop};
use thalweg_host::HostError;
use thalweg_model::{Interval, Metrics};
use thalweg_units::Span;

/// A workload under way.
pub(super) trait RunningWorkload {
    /// Opens the first sockets.
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError>;

    /// Handles an event of its own.
    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError>;

    /// Progress, 0 to 1.
    fn done(&self, now: Span) -> f64;

    /// Whether it has nothing more to do.
    fn is_over(&self) -> bool;

    /// Its results; sockets are still open.
    fn report(&mut self, event_loop: &mut EventLoop) -> Result<Findings, HostError>;
}

/// Results of a workload.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) metrics: Metrics,
    /// One-second intervals, where it has such.
    pub(super) intervals: Vec<Interval>,
    /// What a reader should know, one sentence each.
    pub(super) notes: Vec<String>,
}

/// A workload and when it runs.
pub(super) struct Scheduled {
    pub(super) workload: Box<dyn RunningWorkload>,
    /// The group of its metrics, among several workloads.
    pub(super) name: Option<String>,
    pub(super) start: Span,
    /// Whether the run ends without it: cross traffic.
    pub(super) background: bool,
}

/// Runs until every workload that is not in the background is over.
pub(super) fn run_all(event_loop: &mut EventLoop, workloads: &mut [Scheduled]) -> Result<(), HostError> {
    for (at, scheduled) in workloads.iter_mut().enumerate() {
        event_loop.current = at;
        if scheduled.start == Span::ZERO {
            scheduled.workload.begin(event_loop)?;
        } else {
            event_loop.start_at(scheduled.start);
        }
    }
    while workloads.iter().any(|one| !one.background && !one.workload.is_over()) {
        let (at, event) = event_loop.next(|now| {
            let foreground = workloads.iter().filter(|one| !one.background);
            foreground.map(|one| one.workload.done(now)).fold(1.0, f64::min)
        })?;
        let Some(scheduled) = workloads.get_mut(at) else { continue };
        event_loop.current = at;
        if event == Event::Start {
            scheduled.workload.begin(event_loop)?;
        } else if !scheduled.workload.is_over() || scheduled.background {
            scheduled.workload.handle(event_loop, event)?;
        }
    }
    Ok(())
}
