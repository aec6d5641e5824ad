//! How late packets are.

use hdrhistogram::Histogram;
use thalweg_units::Span;

/// Lateness beyond this counts as this, in nanoseconds.
const MOST_NANOS: u64 = 10_000_000_000;

/// Lateness of departures: when a packet was handed over, less when it was due.
#[derive(Debug, Clone)]
pub struct Lateness {
    nanos: Histogram<u64>,
}

impl Lateness {
    pub(crate) fn new() -> Self {
        let nanos = Histogram::new_with_bounds(1, MOST_NANOS, 2).expect("invariant: valid bounds");
        Self { nanos }
    }

    pub(crate) fn record(&mut self, late: Span) {
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
