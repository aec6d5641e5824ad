//! How long a connection's data took.

use crate::tcp::sender::Sender;

/// A data phase, in seconds: what it took, and what it takes at least, a round trip; 0 where that is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DataPhase {
    pub(crate) took: f64,
    pub(crate) least: f64,
}

impl DataPhase {
    /// A finished sender's.
    pub(crate) fn of(sender: &Sender) -> Self {
        let took = match (sender.observers.time.start, sender.clocks.last_delivery) {
            // Where the last of the data never came, the wait for it is part of the phase.
            (Some(start), Some(end)) => end.saturating_sub(start).max(sender.observers.time.total()) as f64 / 1e9,
            _ => 0.0,
        };
        Self { took, least: sender.rtt.min.unwrap_or(0) as f64 / 1e9 }
    }

    /// The most of it that another setting or path can save.
    pub(crate) fn most_saved(self) -> f64 {
        (self.took - self.least).max(0.0)
    }
}
