//! Workloads as actors on one stage: each is told of its own events, and none waits for another.

use super::stage::{Event, Stage};
use thalweg_host::HostError;
use thalweg_model::{Interval, Metrics};
use thalweg_units::Span;

/// A workload under way.
pub(super) trait Actor {
    /// Opens the first sockets.
    fn begin(&mut self, stage: &mut Stage) -> Result<(), HostError>;

    /// Goes on after an event of its own.
    fn handle(&mut self, stage: &mut Stage, event: Event) -> Result<(), HostError>;

    /// How much is done, 0 to 1.
    fn done(&self, now: Span) -> f64;

    /// Whether it has nothing more to do.
    fn is_over(&self) -> bool;

    /// What it measured; sockets are still open.
    fn report(&mut self, stage: &mut Stage) -> Result<Findings, HostError>;
}

/// What a workload measured.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) metrics: Metrics,
    /// One-second intervals, where it has such.
    pub(super) intervals: Vec<Interval>,
    /// What a reader should know, one sentence each.
    pub(super) notes: Vec<String>,
}

/// An actor and its part in the run.
pub(super) struct Role {
    pub(super) actor: Box<dyn Actor>,
    /// What its figures are grouped under, among several.
    pub(super) name: Option<String>,
    /// When it begins.
    pub(super) start: Span,
    /// Whether the run goes on only for others: cross traffic.
    pub(super) background: bool,
}

/// Plays until every actor that is not in the background is over.
pub(super) fn play(stage: &mut Stage, cast: &mut [Role]) -> Result<(), HostError> {
    for (at, role) in cast.iter_mut().enumerate() {
        stage.acting = at;
        if role.start == Span::ZERO {
            role.actor.begin(stage)?;
        } else {
            stage.call_at(role.start);
        }
    }
    while cast.iter().any(|role| !role.background && !role.actor.is_over()) {
        let (at, event) = stage.next(|now| {
            let foreground = cast.iter().filter(|role| !role.background);
            foreground.map(|role| role.actor.done(now)).fold(1.0, f64::min)
        })?;
        let Some(role) = cast.get_mut(at) else { continue };
        stage.acting = at;
        if event == Event::Call {
            role.actor.begin(stage)?;
        } else if !role.actor.is_over() || role.background {
            role.actor.handle(stage, event)?;
        }
    }
    Ok(())
}
