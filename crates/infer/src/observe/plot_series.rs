//! Series for plots, thinned while they are recorded so that each keeps its extremes and stays small.

use super::Recording;
use crate::event::{Acked, Sent};
use thalweg_model::{LossMark, MarkKind, Point};

/// Groups of points a series keeps; each gives at most two points. Bounds memory.
const GROUPS_MAX: usize = 2_000;
/// Marks of a direction that plots draw; more could not be distinguished. Bounds work.
const PLOTTED_MARKS: usize = 4_000;
/// Marks of a direction that are recorded at most, 4 MB of them. Bounds memory.
const MARKS_MAX: usize = 100_000;

#[derive(Debug, Clone, Copy)]
struct Group {
    index: u64,
    min: (f64, f64),
    max: (f64, f64),
}

/// One series being recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlotSeries {
    groups: Vec<Group>,
    /// Seconds each group spans; 0 while every point has its own.
    width: f64,
    pushed: u64,
    /// Nothing is recorded.
    is_off: bool,
}

impl PlotSeries {
    /// Adds a point; times do not go back by more than a group.
    pub(crate) fn push(&mut self, t: f64, v: f64) {
        if self.is_off {
            return;
        }
        self.pushed += 1;
        let index = self.index(t, self.pushed);
        match self.groups.last_mut() {
            Some(last) if last.index >= index => absorb(last, (t, v), (t, v)),
            _ => self.groups.push(Group { index, min: (t, v), max: (t, v) }),
        }
        if self.groups.len() > GROUPS_MAX {
            self.widen();
        }
    }

    fn index(&self, t: f64, ordinal: u64) -> u64 {
        if self.width > 0.0 { (t / self.width).max(0.0) as u64 } else { ordinal }
    }

    fn widen(&mut self) {
        let (Some(first), Some(last)) = (self.groups.first(), self.groups.last()) else { return };
        let span = (last.max.0.max(last.min.0) - first.min.0.min(first.max.0)).max(1e-9);
        self.width = (self.width * 2.0).max(span * 2.0 / GROUPS_MAX as f64);
        let groups = std::mem::take(&mut self.groups);
        for group in groups {
            let index = (group.min.0.min(group.max.0) / self.width).max(0.0) as u64;
            match self.groups.last_mut() {
                Some(last) if last.index >= index => absorb(last, group.min, group.max),
                _ => self.groups.push(Group { index, ..group }),
            }
        }
        // Points that all fall on one instant would leave no room.
        self.groups.truncate(GROUPS_MAX);
    }

    /// The points kept, in order of time.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut points = Vec::with_capacity(self.groups.len() * 2);
        for group in &self.groups {
            let (mut first, mut second) = (group.min, group.max);
            if first.0 > second.0 {
                std::mem::swap(&mut first, &mut second);
            }
            points.push(Point { t: first.0, v: first.1 });
            if first != second {
                points.push(Point { t: second.0, v: second.1 });
            }
        }
        points
    }
}

fn absorb(group: &mut Group, min: (f64, f64), max: (f64, f64)) {
    if min.1 < group.min.1 {
        group.min = min;
    }
    if max.1 > group.max.1 {
        group.max = max;
    }
}

/// The series plots draw, where they are wanted.
#[derive(Debug, Default)]
pub(crate) struct PlotRecorder {
    pub(crate) flight: PlotSeries,
    pub(crate) window: PlotSeries,
    pub(crate) cwnd: PlotSeries,
    pub(crate) sent: PlotSeries,
    pub(crate) acked: PlotSeries,
    pub(crate) rtt: PlotSeries,
    pub(crate) marks: Vec<LossMark>,
    most_marks: usize,
}

impl PlotRecorder {
    /// A recorder of these, if of anything.
    pub(crate) fn of(recording: Recording) -> Option<Box<Self>> {
        let off = || PlotSeries { is_off: true, ..PlotSeries::default() };
        match recording {
            Recording::Nothing => None,
            Recording::Plots => Some(Box::new(Self { most_marks: PLOTTED_MARKS, ..Self::default() })),
            Recording::Marks => Some(Box::new(Self {
                flight: off(),
                window: off(),
                cwnd: off(),
                sent: off(),
                acked: off(),
                rtt: off(),
                marks: Vec::new(),
                most_marks: MARKS_MAX,
            })),
        }
    }

    /// Whether it records marks and no series.
    pub(crate) const fn is_of_marks(&self) -> bool {
        self.flight.is_off
    }

    /// New payload was sent; `window` is the largest flight of the round trip that ended with it, if one did.
    pub(crate) fn sent(&mut self, sent: &Sent, window: Option<u64>) {
        let t = sent.now as f64 / 1e9;
        if let Some(window) = window {
            self.cwnd.push(t, window as f64);
        }
        self.sent.push(t, sent.next.saturating_sub(sent.first) as f64);
    }

    /// An acknowledgement came.
    pub(crate) fn acked(&mut self, acked: &Acked) {
        let t = acked.now as f64 / 1e9;
        if acked.window.is_known {
            self.window.push(t, acked.window.bytes as f64);
        }
        self.flight.push(t, acked.flight as f64);
        if acked.advanced {
            self.acked.push(t, acked.una.saturating_sub(acked.first) as f64);
        }
    }

    /// Adds a mark, unless there are very many.
    pub(crate) fn mark(&mut self, now: u64, packet: u64, byte: u64, kind: MarkKind) {
        if self.marks.len() < self.most_marks {
            self.marks.push(LossMark { t: now as f64 / 1e9, packet, byte, kind });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_survive_and_the_size_is_bounded() {
        let mut series = PlotSeries::default();
        for n in 0..1_000_000u32 {
            let v = if n == 654_321 {
                9.0
            } else if n == 123_456 {
                -9.0
            } else {
                f64::from(n % 7)
            };
            series.push(f64::from(n) * 1e-5, v);
        }
        let points = series.points();
        assert!(points.len() <= 2 * GROUPS_MAX && points.len() > GROUPS_MAX / 2, "{}", points.len());
        assert!(points.iter().any(|p| p.v == 9.0) && points.iter().any(|p| p.v == -9.0));
        assert!(points.windows(2).all(|w| w[0].t <= w[1].t));
    }
}
