//! What limited a download: each moment is charged to one cause.

use crate::window::Reading;
use std::collections::BTreeMap;
use std::time::Duration;
use thalweg_model::{GetLimit, GetLimitShare};

/// This host limits if it waited for the network for less than the rest of the time.
const BUSY_SHARE: f64 = 0.9;

/// What is known at one moment.
#[derive(Debug)]
pub struct Situation<'a> {
    /// Since the download began.
    pub now: Duration,
    /// Of each connection that receives.
    pub readings: &'a [Reading],
    /// A connection waited for the rate limit since the last moment.
    pub rate_limited: bool,
    /// Time until now in which the program computed, wrote or read what had arrived, and did not wait.
    pub busy: Duration,
    /// Time in writes until now.
    pub writing: Duration,
}

/// Time by limit.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    time: BTreeMap<GetLimit, Duration>,
    now: Duration,
    busy: Duration,
    writing: Duration,
}

impl Limits {
    /// Charges the time since the last call; returns whether this host or the rate limit held the connections back.
    ///
    /// The rate limit comes first, then this host. Otherwise every connection gets an equal part of the time, charged to its own limit.
    pub fn add(&mut self, situation: &Situation<'_>) -> bool {
        let passed = situation.now.saturating_sub(self.now);
        let writing = situation.writing.saturating_sub(self.writing);
        // A stream is written in another thread, so that the time in writes is not the program's own.
        let local = situation.busy.saturating_sub(self.busy).max(writing);
        (self.now, self.busy, self.writing) = (situation.now, situation.busy, situation.writing);
        let own = if situation.rate_limited {
            Some(GetLimit::RateLimit)
        } else if local.as_secs_f64() < passed.as_secs_f64() * BUSY_SHARE {
            None
        } else if writing * 2 >= local {
            Some(GetLimit::Disk)
        } else {
            Some(GetLimit::Host)
        };
        match (own, situation.readings) {
            (Some(limit), _) => self.charge(limit, passed),
            (None, []) => self.charge(GetLimit::StartUp, passed),
            (None, readings) => {
                readings.iter().for_each(|reading| self.charge(reading.limit, passed / readings.len() as u32));
            }
        }
        own.is_some()
    }

    fn charge(&mut self, limit: GetLimit, time: Duration) {
        *self.time.entry(limit).or_default() += time;
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
        let mut add = |now: u32, limit: Option<GetLimit>, rate_limited: bool, busy: u32, writing: u32| {
            let reading = limit.map(|limit| Reading { limit, flight: 0 });
            let (busy, writing) = (second * busy / 10, second * writing / 10);
            let readings = reading.as_slice();
            limits.add(&Situation { now: second * now, readings, rate_limited, busy, writing })
        };
        assert!(!add(1, None, false, 0, 0));
        assert!(!add(2, Some(GetLimit::ReceiveWindow), false, 5, 5), "half of the time in writes holds nothing back");
        assert!(!add(5, Some(GetLimit::Path), false, 10, 5));
        assert!(add(6, Some(GetLimit::Path), false, 20, 14));
        assert!(add(7, Some(GetLimit::Path), false, 30, 14));
        assert!(add(8, Some(GetLimit::Path), false, 30, 24), "a stream, written in another thread");
        assert!(add(12, Some(GetLimit::Sender), true, 30, 24));
        let shares = limits.shares();
        let parts: Vec<_> = shares.iter().map(|one| (one.limit, (one.share * 12.0).round() as u32)).collect();
        let expected = [
            (GetLimit::RateLimit, 4),
            (GetLimit::Path, 3),
            (GetLimit::Disk, 2),
            (GetLimit::StartUp, 1),
            (GetLimit::ReceiveWindow, 1),
            (GetLimit::Host, 1),
        ];
        assert_eq!(parts[..3], expected[..3]);
        assert!(expected.iter().all(|part| parts.contains(part)), "{parts:?}");
    }

    #[test]
    fn connections_share_a_moment() {
        let mut limits = Limits::default();
        let readings = [GetLimit::Path, GetLimit::Path, GetLimit::Sender].map(|limit| Reading { limit, flight: 0 });
        let zero = Duration::ZERO;
        let now = Duration::from_secs(3);
        limits.add(&Situation { now, readings: &readings, rate_limited: false, busy: zero, writing: zero });
        assert_eq!(limits.shares()[0].limit, GetLimit::Path);
        assert!((limits.shares()[1].share - 1.0 / 3.0).abs() < 1e-9);
    }
}
