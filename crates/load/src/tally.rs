//! What players met, counted; the counts of several threads and processes add up.

use crate::plan::{Kind, Plan};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use thalweg_model::{Held, LoadReport, Percentiles, PlayerCount, Stalls};

/// Longest time that the histogram resolves, in microseconds: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// Kinds of failures that are counted separately; all further ones are counted as one.
const MOST_KINDS: usize = 64;

/// Times, to a thousandth.
#[derive(Debug, Clone)]
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_US, 3).expect("invariant: the bounds are in order"))
    }
}

impl Times {
    /// Counts one.
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record((time.as_micros() as u64).max(1));
    }

    /// Percentiles; `None` where there are none.
    pub fn summary(&self) -> Option<Percentiles> {
        let at = |quantile: f64| self.0.value_at_quantile(quantile) as f64 / 1e3;
        (!self.0.is_empty()).then(|| Percentiles {
            count: self.0.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.0.max() as f64 / 1e3,
        })
    }
}

/// As a list of values, in microseconds, and how often each was met.
impl Serialize for Times {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())))
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut times = Self::default();
        for (value, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            times.0.saturating_record_n(value, count);
        }
        Ok(times)
    }
}

/// What was met.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Players that started.
    pub players: u64,
    /// Players that had a picture.
    pub playing: u64,
    /// From when a player was due to start until its first keyframe was whole.
    pub first_frame: Times,
    /// From when a playlist was due until it was whole.
    pub playlist: Times,
    /// From when a segment was due until it was whole.
    pub segment: Times,
    /// How long each stall was.
    pub stall: Times,
    /// Stalls, those included that went on at the end.
    pub stalls: u64,
    /// Time that players stood still after they had begun, in seconds.
    pub stalled_s: f64,
    /// Time that players were playing or standing still, in seconds.
    pub watched_s: f64,
    /// Answers that were whole.
    pub answers: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Connections that were made.
    pub connections: u64,
    /// What went wrong, and how often.
    pub failures: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds what others met.
    pub fn add(&mut self, other: &Self) {
        self.players += other.players;
        self.playing += other.playing;
        for (times, others) in [
            (&mut self.first_frame, &other.first_frame),
            (&mut self.playlist, &other.playlist),
            (&mut self.segment, &other.segment),
            (&mut self.stall, &other.stall),
        ] {
            times.0.add(&others.0).expect("invariant: all have the same bounds");
        }
        self.stalls += other.stalls;
        self.stalled_s += other.stalled_s;
        self.watched_s += other.watched_s;
        self.answers += other.answers;
        self.bytes += other.bytes;
        self.connections += other.connections;
        for (failure, count) in &other.failures {
            self.count(failure, *count);
        }
    }

    /// Counts a failure.
    pub(crate) fn failed(&mut self, failure: &str) {
        self.count(failure, 1);
    }

    /// The part of the time watched that was stalls.
    pub fn stalled_part(&self) -> f64 {
        self.stalled_s / self.watched_s.max(1e-9)
    }

    /// As a report, of a load that took `wall_s` seconds.
    pub fn report(&self, plan: &Plan, wall_s: f64, expect: Vec<Held>) -> LoadReport {
        let mut url = plan.url.clone();
        url.set_query(None);
        // A URL without a host has no password either.
        let _ = url.set_password(None);
        LoadReport {
            schema: "thalweg.load/1",
            kind: match plan.kind {
                Kind::Hls => "hls",
                Kind::Flv => "flv",
            },
            url: url.to_string(),
            wall_s,
            players: PlayerCount { started: self.players, playing: self.playing },
            first_frame_ms: self.first_frame.summary(),
            playlist_ms: self.playlist.summary(),
            segment_ms: self.segment.summary(),
            stall_ms: self.stall.summary(),
            stalls: Stalls {
                count: self.stalls,
                s: self.stalled_s,
                watched_s: self.watched_s,
                part: self.stalled_part(),
            },
            answers: self.answers,
            connections: self.connections,
            bytes: self.bytes,
            rate_bps: self.bytes as f64 * 8.0 / wall_s.max(1e-9),
            failures: self.failures.clone(),
            expect,
        }
    }

    /// Everything that went wrong.
    pub fn failures(&self) -> u64 {
        self.failures.values().sum()
    }

    fn count(&mut self, failure: &str, count: u64) {
        let is_known = self.failures.contains_key(failure);
        let failure = if is_known || self.failures.len() < MOST_KINDS { failure } else { "other failures" };
        *self.failures.entry(failure.to_owned()).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up_also_by_way_of_json() {
        let mut one = Tally::default();
        (1..=1000).for_each(|ms| one.segment.record(Duration::from_millis(ms)));
        one.failed("HTTP 404");
        let text = serde_json::to_string(&one).expect("JSON");
        let other: Tally = serde_json::from_str(&text).expect("a tally");
        one.add(&other);
        let summary = one.segment.summary().expect("times");
        assert_eq!(summary.count, 2000);
        assert!((summary.p50 - 500.0).abs() < 1.0 && (summary.p99 - 990.0).abs() < 1.0, "{summary:?}");
        assert_eq!((one.failures(), one.first_frame.summary()), (2, None));
    }
}
