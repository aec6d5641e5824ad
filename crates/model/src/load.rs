//! What a load of players met.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// The document of `thalweg load --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadReport {
    /// `thalweg.load/1`.
    pub schema: &'static str,
    /// `hls` or `flv`.
    #[schemars(extend("enum" = ["hls", "flv"]))]
    pub kind: &'static str,
    /// What was asked for, without its query: that may hold a token.
    pub url: String,
    /// How long it took, in seconds.
    pub wall_s: f64,
    /// Players.
    pub players: PlayerCount,
    /// From when a player was due to start until its first keyframe was whole.
    pub first_frame_ms: Option<Percentiles>,
    /// From when a playlist was due until it was whole.
    pub playlist_ms: Option<Percentiles>,
    /// From when a segment was due until it was whole.
    pub segment_ms: Option<Percentiles>,
    /// How long stalls were.
    pub stall_ms: Option<Percentiles>,
    /// Stalls in all.
    pub stalls: Stalls,
    /// Answers that were whole.
    pub answers: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// These over `wall_s`, in bits per second.
    pub rate_bps: f64,
    /// What went wrong, and how often.
    #[schemars(with = "BTreeMap<String, NonZeroU64>")]
    pub failures: BTreeMap<String, u64>,
    /// What was expected.
    pub expect: Vec<Held>,
}

/// Players of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlayerCount {
    /// Those that started.
    pub started: u64,
    /// Those that had a picture.
    pub playing: u64,
}

/// Stalls of players that read as fast as media comes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Stalls {
    /// How many, those included that went on at the end.
    pub count: u64,
    /// How long in all, in seconds.
    pub s: f64,
    /// Time that players were there, in seconds.
    pub watched_s: f64,
    /// The part of that time that was stalls.
    pub part: f64,
}

/// Percentiles of times, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Percentiles {
    /// How many times there are.
    #[schemars(range(min = 1))]
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// 90 of 100 are at most this.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1,000.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// An expectation, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Held {
    /// As it was written.
    pub text: String,
    /// What was found: milliseconds, a part, or a number; nothing where nothing was met.
    pub found: Option<f64>,
    /// Whether that is as expected.
    pub holds: bool,
}
