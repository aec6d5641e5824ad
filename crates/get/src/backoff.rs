//! When to try again: a pure state machine.

use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_millis(250);
/// The longest wait that the server did not ask for.
const LONGEST: Duration = Duration::from_secs(30);

/// Waits between tries that fetch nothing.
#[derive(Debug, Clone)]
pub struct Backoff {
    most: u32,
    failures: u32,
    until: Duration,
}

impl Backoff {
    /// Gives up after `most` failures in a row.
    pub const fn new(most: u32) -> Self {
        Self { most, failures: 0, until: Duration::ZERO }
    }

    /// Bytes came: what failed before no longer counts.
    pub const fn progress(&mut self) {
        self.failures = 0;
    }

    /// A try failed, and the server asked to wait for `asked`; returns whether another one makes sense.
    pub fn failed(&mut self, now: Duration, asked: Option<Duration>) -> bool {
        let wait = (FIRST * 2u32.saturating_pow(self.failures.min(16))).min(LONGEST);
        self.failures += 1;
        self.until = self.until.max(now + asked.unwrap_or(wait));
        self.failures <= self.most
    }

    /// Failures in a row.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// When the next try may begin.
    pub const fn until(&self) -> Duration {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_the_server_decides_where_it_says_so() {
        let mut backoff = Backoff::new(3);
        let now = Duration::from_secs(1);
        assert!(backoff.failed(now, None));
        assert_eq!(backoff.until() - now, FIRST);
        assert!(backoff.failed(now, None));
        assert_eq!(backoff.until() - now, FIRST * 2);
        assert!(backoff.failed(now, Some(Duration::from_secs(100))));
        assert_eq!(backoff.until() - now, Duration::from_secs(100));
        assert!(!backoff.failed(now, None));
        backoff.progress();
        assert!(backoff.failed(now, None));
    }
}
