//! Traffic of an interface in short bins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of `thalweg watch --bursts IFACE --json`: what passed in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstsReport {
    /// `thalweg.bursts/1`.
    pub schema: String,
    /// The interface.
    pub interface: String,
    /// When the interval began, in seconds since the epoch.
    pub at_s: f64,
    /// How long it was, in seconds.
    pub interval_s: f64,
    /// Packets that were not counted, since the ring was full.
    pub missed_packets: u64,
    /// What this host sent.
    pub sent: BurstDirection,
    /// What it received.
    pub received: BurstDirection,
}

/// One direction. Bytes count from the IP header on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstDirection {
    /// Packets as the kernel hands them over: those that offloads have joined, or not yet divided, are one.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The longest of them.
    pub packet_max_bytes: u64,
    /// The bins, from the shortest on.
    pub bins: Vec<BurstBins>,
    /// What a port of the given rate and buffer would do to it.
    pub port: Option<PortBursts>,
}

/// The bins of one width.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstBins {
    /// How long a bin is, in microseconds.
    pub width_us: u64,
    /// All bins of the interval, empty ones too.
    pub count: u64,
    /// Those in which something passed.
    pub busy: u64,
    /// The rate that half of all bins do not pass, in bits per second.
    pub p50_bps: f64,
    /// That 90 of 100 do not pass.
    pub p90_bps: f64,
    /// That 99 of 100 do not pass.
    pub p99_bps: f64,
    /// That 999 of 1,000 do not pass.
    pub p999_bps: f64,
    /// That of the fullest bin.
    pub max_bps: f64,
    /// When the fullest bin began, in seconds since the epoch.
    pub max_at_s: f64,
}

/// What a port does to traffic: it sends at its rate, holds what its buffer takes, and drops the rest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortBursts {
    /// Its rate, in bits per second.
    pub rate_bps: f64,
    /// Its buffer.
    pub buffer_bytes: u64,
    /// The most that waited.
    pub queue_max_bytes: u64,
    /// How often the buffer overflowed: times from the first byte too many until it is empty.
    pub overflows: u64,
    /// What it could not hold.
    pub excess_bytes: u64,
}

/// An interface's traffic in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstMap {
    /// The interface.
    pub interface: String,
    /// The second of the first row, since the epoch.
    pub first_s: u64,
    /// A row for each second.
    pub rows: Vec<BurstMapRow>,
    /// Earlier rows that are not kept.
    pub dropped_rows: u64,
    /// The port that the traffic was held against.
    pub port: Option<MapPort>,
}

/// A second, in cells of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstMapRow {
    /// What this host sent.
    pub sent: Vec<BurstCell>,
    /// What it received.
    pub received: Vec<BurstCell>,
}

impl BurstMapRow {
    /// An empty one of so many cells.
    #[must_use]
    pub fn new(cells: usize) -> Self {
        Self { sent: vec![BurstCell::default(); cells], received: vec![BurstCell::default(); cells] }
    }
}

/// What passed in a cell's time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BurstCell {
    /// Bytes, from the IP header on.
    pub bytes: u32,
    /// Whether the port's buffer overflowed.
    pub overflows: bool,
}

/// A port of one rate and one buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapPort {
    /// Its rate, in bits per second.
    pub rate_bps: f64,
    /// Its buffer.
    pub buffer_bytes: u64,
}
