//! Traffic of an interface in short bins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

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
    /// What counted the packets.
    pub source: BurstSource,
    /// Packets that were not counted, or may not have been: the ring was full.
    pub missed_packets: u64,
    /// What this host sent.
    pub sent: BurstDirection,
    /// What it received.
    pub received: BurstDirection,
    /// The flows with a row of their own, those with most bytes first, then all others together. None of a recording.
    #[serde(default)]
    pub flows: Vec<BurstFlow>,
    /// What TCP sent again; absent if flows are not told apart.
    #[serde(default)]
    pub resent: Option<BurstResent>,
}

/// What counted packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BurstSource {
    /// Its kind.
    pub kind: BurstSourceKind,
    /// Why none of those before it in the list of kinds was taken; absent for the first, and for one that was asked for.
    #[serde(default)]
    pub reason: Option<String>,
    /// Packets of so many microseconds come to the port at one instant; 0: each packet by itself.
    pub step_us: u64,
}

/// A way to count packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BurstSourceKind {
    /// BPF programs, by links to the interface.
    Tcx,
    /// BPF programs, by filters of its discipline `clsact`.
    Clsact,
    /// A ring of an AF_PACKET socket.
    AfPacket,
    /// A recording.
    Record,
}

impl BurstSourceKind {
    /// As a line of text says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcx => "BPF on tcx",
            Self::Clsact => "BPF on clsact",
            Self::AfPacket => "AF_PACKET",
            Self::Record => "a recording",
        }
    }
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
    /// When the port's buffer overflowed, the first 200 times.
    #[serde(default)]
    pub overflows: Vec<PortOverflow>,
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

/// A flow's traffic on an interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstFlow {
    /// Its ends; absent for all flows that have no row of their own, together.
    pub ends: Option<BurstFlowEnds>,
    /// What this host sent.
    pub sent: BurstFlowSide,
    /// What it received.
    pub received: BurstFlowSide,
    /// Segments that this host sent again; absent for flows together, and where nothing tells.
    pub resent: Option<FlowResent>,
}

/// The ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BurstFlowEnds {
    /// The protocol.
    pub protocol: FlowProtocol,
    /// This host's end.
    pub local: SocketAddr,
    /// The other.
    pub peer: SocketAddr,
}

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl FlowProtocol {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Tcp, Self::Udp];

    /// Its name, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// One direction of a flow. Bytes count from the IP header on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstFlowSide {
    /// Packets as the kernel hands them over.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of those, the ones that came while the port's buffer overflowed.
    pub overflow_bytes: u64,
    /// The bins, from the shortest on.
    pub bins: Vec<BurstBins>,
}

/// Segments of a flow that were sent again in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResent {
    /// All.
    pub segments: u64,
    /// By why, and how many of them follow an overflow; absent where only sockets' counters tell.
    pub classes: Option<FlowResentClasses>,
}

/// Segments that were sent again, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowResentClasses {
    /// SYNs that were not answered.
    pub syn: u64,
    /// Those that acknowledgements showed to be lost.
    pub fast: u64,
    /// By a timeout, or after one.
    pub timeout: u64,
    /// Probes.
    pub probe: u64,
    /// Of all these, the ones in an overflow of the port's buffer by what was sent, or just after it.
    pub after_overflow: u64,
}

/// What was sent again in an interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstResent {
    /// What tells: the kernel's tracepoint `tcp_retransmit_skb`, or sockets' counters.
    pub source: ResentSource,
    /// Why it is not the tracepoint.
    pub reason: Option<String>,
    /// The segments of flows with a row, in order, up to 200; none by sockets' counters.
    pub segments: Vec<ResentSegment>,
    /// Segments that came too fast to be told apart.
    pub missed: u64,
}

/// What tells of segments that are sent again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResentSource {
    /// A BPF program at the tracepoint `tcp_retransmit_skb`.
    Tracepoint,
    /// `tcpi_total_retrans` at the end of each interval.
    #[default]
    SockDiag,
}

/// What was sent again at one instant: a segment, or several that segmentation offload sends as one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResentSegment {
    /// When, in seconds since the epoch.
    pub at_s: f64,
    /// Whose: the place in the list of flows.
    pub flow: usize,
    /// Why.
    pub kind: ResentKind,
    /// How many segments.
    pub segments: u64,
    /// When the overflow began that it follows, in seconds since the epoch.
    pub overflow_at_s: Option<f64>,
}

/// Why a segment was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResentKind {
    /// A SYN that was not answered.
    Syn,
    /// Acknowledgements showed that it is lost.
    Fast,
    /// A timeout, or what follows one.
    Timeout,
    /// A probe.
    Probe,
}

/// A time in which a port's buffer overflowed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortOverflow {
    /// When the first byte did not fit, in seconds since the epoch.
    pub at_s: f64,
    /// From then to the last one that did not, in milliseconds.
    pub duration_ms: f64,
    /// What did not fit.
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
    /// An empty one with this number of cells.
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
