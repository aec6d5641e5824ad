//! What is kept of a direction for evidence and for plots.

use crate::thin::Thinned;
use model::LossMark;

/// Moments worth pointing at.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    /// First packets that filled the window: number and time.
    pub(crate) window_full: Vec<(u64, u64)>,
    pub(crate) zero_window: Vec<(u64, u64)>,
    pub(crate) largest_window: Option<(u64, u64)>,
}

/// The series plots draw, where they are wanted.
#[derive(Debug, Default)]
pub(crate) struct Drawn {
    pub(crate) flight: Thinned,
    pub(crate) window: Thinned,
    pub(crate) cwnd: Thinned,
    pub(crate) sent: Thinned,
    pub(crate) acked: Thinned,
    pub(crate) rtt: Thinned,
    pub(crate) marks: Vec<LossMark>,
}
