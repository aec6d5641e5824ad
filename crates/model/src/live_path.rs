//! What a path in real time did.

use crate::Metrics;
use crate::path::Path;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU64;

/// The document of `thalweg path --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LivePathReport {
    /// `thalweg.path/1`.
    pub schema: String,
    /// Its number among the paths of this host.
    pub id: u32,
    /// What was run.
    pub command: Vec<String>,
    /// The path asked for, with the changes made since it began.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub path: Path,
    /// Time since it began, in seconds.
    pub wall_s: f64,
    /// From the far end to the program.
    pub down: LiveDirection,
    /// From the program to the far end.
    pub up: LiveDirection,
    /// Time of processors that the emulator took, in seconds; the kernel's work of receiving at both ends is part of it.
    pub cpu_s: f64,
    /// The same for a gigabyte carried; `None` if less than a megabyte was.
    pub cpu_s_per_gb: Option<f64>,
    /// Whether the path was as asked for.
    pub verdict: PathVerdict,
    /// The program's exit code; `None` while it runs.
    pub exit_code: Option<u8>,
}

/// What one direction did. Packets are those of the wire, bytes count from the IP header on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveDirection {
    /// Packets that came in.
    pub arrived_packets: u64,
    /// Their bytes.
    pub arrived_bytes: u64,
    /// Packets that went out.
    pub departed_packets: u64,
    /// Their bytes.
    pub departed_bytes: u64,
    /// These bytes over the time, in bits per second.
    pub rate_bps: f64,
    /// Packets that the path dropped, by reason; reasons without one are left out.
    #[schemars(with = "BTreeMap<String, NonZeroU64>")]
    pub dropped_packets: BTreeMap<String, u64>,
    /// Copies that the path made.
    pub duplicated_packets: u64,
    /// Packets of which the path flipped a bit.
    pub corrupted_packets: u64,
    /// Packets that the path marked Congestion Experienced.
    pub marked_packets: u64,
    /// Packets that wait at the bottleneck.
    pub queue_packets: u64,
    /// Their bytes.
    pub queue_bytes: u64,
    /// The most bytes that waited, Ethernet headers included.
    pub queue_max_bytes: u64,
    /// How late packets were handed over.
    pub late_us: LateMicros,
    /// Frames that the emulator itself lost, which nobody asked for.
    pub lost_by_emulator: u64,
}

/// Lateness in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LateMicros {
    /// Half were at most this late.
    pub p50: f64,
    /// 99 of 100 were.
    pub p99: f64,
    /// The latest.
    pub max: f64,
}

/// Whether a path was as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathVerdict {
    /// Nothing below.
    pub faithful: bool,
    /// What was not as asked for, one sentence each.
    pub faults: Vec<String>,
}

/// How true a run of the lab in real time was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveReport {
    /// Whether the emulated path was as asked for.
    pub verdict: PathVerdict,
    /// Settings that this host refused and the run did without, one sentence each.
    pub skipped: Vec<String>,
}

/// Hosts that `thalweg path up` keeps up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveHostsReport {
    /// `thalweg.hosts/1`.
    pub schema: String,
    /// Their number among the paths of this host.
    pub id: u32,
    /// The scenario's name, with the arm's where it has several.
    pub name: String,
    /// The server, then the clients.
    pub hosts: Vec<LiveHost>,
    /// What is between them, one line each.
    pub between: Vec<String>,
    /// Time since they are up, in seconds.
    pub wall_s: f64,
    /// Packets that the path dropped and marked, and the longest queues, by the figures of `lab run`.
    pub figures: Metrics,
    /// Settings that this host refused and the hosts do without, one sentence each.
    pub skipped: Vec<String>,
    /// Whether the path was as asked for.
    pub verdict: PathVerdict,
}

/// A host of a topology.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveHost {
    /// `server`, `client`, `client2` …
    pub name: String,
    /// By which the other hosts reach it.
    pub address: IpAddr,
}
