//! What limited a download: each moment is charged to one cause.

use crate::window::Reading;
use std::collections::BTreeMap;
use std::time::Duration;
use thalweg_model::{GetLimit, GetLimitShare};

/// Writing, or waiting for the rate limit, limits if it takes this share of the time.
const SHARE: f64 = 0.5;

/// What is known at one moment.
#[derive(Debug)]
pub struct Situation<'a> {
    /// Since the download began.
    pub now: Duration,
    /// Of each connection that receives.
    pub readings: &'a [Reading],
    /// Time in writes until now.
    pub writing: Duration,
    /// Time waited for the rate limit until now, by all workers.
    pub limited: Duration,
}

/// Time by limit.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    time: BTreeMap<GetLimit, Duration>,
    now: Duration,
    writing: Duration,
    limited: Duration,
}

impl Limits {
    /// Charges the time since the last call; returns whether the disk or the rate limit held the connections back.
    pub fn add(&mut self, situation: &Situation<'_>) -> bool {
        let passed = situation.now.saturating_sub(self.now);
        let share = |time: Duration, workers: usize| time.as_secs_f64() > passed.as_secs_f64() * SHARE * workers as f64;
        let readings = situation.readings;
        let count =
            |is: fn(&Reading) -> bool| readings.iter().filter(|reading| is(reading)).count() * 2 > readings.len();
        let limit = if share(situation.limited.saturating_sub(self.limited), readings.len().max(1)) {
            GetLimit::RateLimit
        } else if share(situation.writing.saturating_sub(self.writing), 1) {
            GetLimit::Disk
        } else if readings.is_empty() {
            GetLimit::StartUp
        } else if count(|reading| reading.window_limited) {
            GetLimit::ReceiveWindow
        } else if count(|reading| reading.growing) {
            GetLimit::StartUp
        } else if count(|reading| reading.queued) || readings.iter().any(|reading| reading.lost) {
            GetLimit::Path
        } else if count(|reading| reading.paused) {
            GetLimit::Server
        } else {
            GetLimit::Sender
        };
        *self.time.entry(limit).or_default() += passed;
        (self.now, self.writing, self.limited) = (situation.now, situation.writing, situation.limited);
        matches!(limit, GetLimit::RateLimit | GetLimit::Disk)
    }

    /// The shares, the largest first.
    pub fn shares(&self) -> Vec<GetLimitShare> {
        let all = self.time.values().sum::<Duration>().as_secs_f64();
        let mut shares: Vec<GetLimitShare> = self
            .time
            .iter()
            .filter(|(_, time)| !time.is_zero())
            .map(|(limit, time)| GetLimitShare { limit: *limit, share: time.as_secs_f64() / all })
            .collect();
        shares.sort_by(|one, other| other.share.total_cmp(&one.share));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_has_one_limit() {
        let mut limits = Limits::default();
        let second = Duration::from_secs(1);
        let mut add = |now: u32, reading: Reading, writing: Duration, limited: Duration| {
            limits.add(&Situation { now: second * now, readings: &[reading], writing, limited })
        };
        let (none, zero) = (Reading::default(), Duration::ZERO);
        assert!(!add(1, Reading { growing: true, ..none }, zero, zero));
        assert!(!add(2, Reading { window_limited: true, ..none }, zero, zero));
        assert!(!add(3, Reading { lost: true, ..none }, zero, zero));
        assert!(!add(5, none, zero, zero));
        assert!(add(6, none, second * 6 / 10, zero));
        assert!(add(10, none, second * 6 / 10, second * 3));
        let shares: Vec<_> = limits.shares().iter().map(|one| (one.limit, (one.share * 10.0).round() as u32)).collect();
        assert_eq!(shares[0], (GetLimit::RateLimit, 4));
        assert_eq!(shares[1], (GetLimit::Sender, 2));
        for limit in [GetLimit::StartUp, GetLimit::ReceiveWindow, GetLimit::Path, GetLimit::Disk] {
            assert!(shares.contains(&(limit, 1)), "{shares:?}");
        }
    }
}
