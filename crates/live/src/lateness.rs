//! How late packets and programs are.

use hdrhistogram::Histogram;
use thalweg_units::Span;

/// Lateness beyond this counts as this, in nanoseconds.
const MOST_NANOS: u64 = 10_000_000_000;

/// Lateness of departures, or of whatever else has a time: when it happened, less when it was due.
#[derive(Debug, Clone)]
pub struct Lateness {
    nanos: Histogram<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

impl Lateness {
    /// Of nothing yet.
    pub fn new() -> Self {
        let nanos = Histogram::new_with_bounds(1, MOST_NANOS, 2).expect("invariant: valid bounds");
        Self { nanos }
    }

    /// Adds one.
    pub fn record(&mut self, late: Span) {
        self.nanos.saturating_record(late.as_nanos());
    }

    /// The lateness that this part of the departures did not exceed.
    pub fn quantile(&self, part: f64) -> Span {
        Span::from_nanos(if self.nanos.is_empty() { 0 } else { self.nanos.value_at_quantile(part) })
    }

    /// The most.
    pub fn max(&self) -> Span {
        Span::from_nanos(self.nanos.max())
    }
}
