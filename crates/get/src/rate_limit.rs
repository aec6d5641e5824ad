//! A rate limit over all ranges: a token bucket as a pure state machine.

use std::time::Duration;
use thalweg_units::Rate;

/// The bucket's depth in time: a tenth of a second of the rate, so that the limit holds over any second.
const DEPTH: Duration = Duration::from_millis(100);

/// A limit, or none.
#[derive(Debug, Clone)]
pub struct RateLimit {
    rate: Option<Rate>,
    /// When the bytes taken so far are paid for.
    paid: Duration,
}

impl RateLimit {
    /// A limit of `rate`.
    pub const fn new(rate: Option<Rate>) -> Self {
        Self { rate, paid: Duration::ZERO }
    }

    /// Takes bytes and returns how long to wait before taking more.
    pub fn take(&mut self, bytes: u64, now: Duration) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let cost = rate.time_for(thalweg_units::Bytes::new(bytes)).to_duration();
        self.paid = self.paid.max(now.saturating_sub(DEPTH)).saturating_add(cost);
        self.paid.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_paid_for_at_the_rate() {
        let mut limit = RateLimit::new(Some("8Mb/s".parse().expect("a rate")));
        let second = Duration::from_secs(1);
        // Idle time gives no more than the bucket's depth.
        assert_eq!(limit.take(100_000, second), Duration::ZERO);
        assert_eq!(limit.take(1_000_000, second), second);
        assert_eq!(RateLimit::new(None).take(u64::MAX, second), Duration::ZERO);
    }
}
