//! How data moved: round trips, windows, rates, losses, bursts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets that were overtaken on their way.
///
/// At the data's sender, where it leaves in order, an acknowledgement tells: of data sent once, below what was selectively acknowledged
/// before (Linux `tcp_check_sack_reordering`). Elsewhere the late packets are seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reordering {
    /// How many: late packets, or acknowledgements that tell of some.
    pub packets: u64,
    /// The most payload that overtook one.
    pub bytes_max: u64,
    /// The same in segments of full size, rounded up.
    pub segments_max: u64,
    /// The longest one came after what overtook it; `None` where acknowledgements tell, which are late by themselves.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late_ms_max: Option<f64>,
}

/// The source of round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttSource {
    /// An acknowledgement that ends on a segment sent once (Karn's algorithm, RFC 6298 §3): the tap is at the sender.
    Acknowledgements,
    /// Echoes of timestamps (RFC 7323 §4) and the handshake: the tap is elsewhere.
    Timestamps,
    /// The handshake alone.
    Handshake,
}

impl RttSource {
    /// The name it has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acknowledgements => "acknowledgements",
            Self::Timestamps => "timestamps",
            Self::Handshake => "handshake",
        }
    }
}

/// Round trips between the data's sender and its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTrips {
    /// Their source.
    pub source: RttSource,
    /// How many there are.
    pub samples: u64,
    /// Half of them are not longer; with a few exact, else to 2.2 %, as the next two are.
    pub p50_ms: f64,
    /// Nine tenths are not longer.
    pub p90_ms: f64,
    /// 99 of a hundred are not longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// The mean that delivered bytes met: its rise over the shortest is what waits in queues under load.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub loaded_ms: Option<f64>,
    /// At the sender's tap, the shortest by timestamps: from a TSval's first packet to its first echo.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timestamps_min_ms: Option<f64>,
    /// The mean time that acknowledgements wait on their way, where that is what makes the round trips long.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ack_wait_ms: Option<f64>,
}

/// What a receiver's buffer does, as its window shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferState {
    /// The window grew until the data ended, and held nothing up.
    Growing,
    /// It tuned itself up to a size at which it then stayed, full.
    Capped,
    /// Unread data filled it: the window closed, or nearly.
    ReaderSlow,
    /// It was of its size from the first window on, and full: what a program's SO_RCVBUF does, or a tcp_rmem that begins with its largest.
    Fixed,
}

impl BufferState {
    /// The name it has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Growing => "growing",
            Self::Capped => "capped",
            Self::ReaderSlow => "reader-slow",
            Self::Fixed => "fixed",
        }
    }
}

/// The window that the data's receiver advertised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveWindow {
    /// The first one after the SYN.
    pub first_bytes: u64,
    /// The largest.
    pub max_bytes: u64,
    /// What the buffer behind it did; `None` where the window was neither full nor growing nor closing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub state: Option<BufferState>,
    /// From the window scale: the buffer may grow to this at least. Linux `tcp_select_initial_window`: the scale is
    /// clamp(log2(max(third figure of tcp_rmem, core.rmem_max)) − 15, 0, 14), or what the program's SO_RCVBUF asks for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub buffer_least_bytes: Option<u64>,
    /// And stays below this; `None` with the largest scale, 14.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub buffer_below_bytes: Option<u64>,
}

/// The initial congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InitialWindow {
    /// The most in flight less what was acknowledged, over slow start.
    pub bytes: u64,
    /// The same in full segments.
    pub segments: f64,
    /// It is the window: data was pending, and went on with the first acknowledgement. Else it is at least this.
    pub exact: bool,
}

/// What ended the growth of slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartExit {
    /// A loss.
    Loss,
    /// An ECN echo.
    EcnEcho,
    /// Two rounds in turn grew by less than a quarter, with data pending: HyStart, another algorithm's delay signal, a send buffer or
    /// a clamp.
    GrowthStopped,
    /// The receiver's window was full when the data ended.
    ReceiveWindow,
    /// The program had nothing to send.
    Application,
}

impl SlowStartExit {
    /// The name it has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::EcnEcho => "ecn-echo",
            Self::GrowthStopped => "growth-stopped",
            Self::ReceiveWindow => "receive-window",
            Self::Application => "application",
        }
    }
}

/// Slow start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowStart {
    /// Round trips until the last in which the flight grew by a quarter or more.
    pub rounds: u64,
    /// What ended it; `None` where the data ended first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit: Option<SlowStartExit>,
    /// When, in seconds since the connection's first packet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_s: Option<f64>,
    /// It ended without a loss or an ECN echo, and the window crept up from there for longer than slow start had taken.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub crept: bool,
}

/// A path that several connections of the same two hosts have data on at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedPath {
    /// How many others.
    pub others: u64,
    /// What all of them carry on average while this one has data, of payload.
    pub together_bps: f64,
    /// What the path lets through: the most that one of them measured, or that they carry together in one span of ten.
    pub path_rate_bps: f64,
    /// Part of the time in which they use that up together.
    #[schemars(range(max = 1))]
    pub full_share: f64,
}

/// How fast data arrived.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The largest rate over a round trip, of payload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bps: Option<f64>,
    /// What the path's bottleneck lets through, of payload: the rate at which trains of segments arrive (Dovrolis et al., ToN 2004), or the
    /// largest rate where a queue stood.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub capacity_bps: Option<f64>,
    /// What fills the path: its capacity in the shortest round trip.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bdp_bytes: Option<f64>,
}

/// What lost packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossClass {
    /// A token bucket that discards and delays nothing.
    Policer,
    /// A queue that overflowed: a shaper's, a link's or a switch's.
    Queue,
    /// Neither a queue nor a bucket explains it.
    Random,
    /// Some of both: neither makes out three quarters of the episodes.
    Mixed,
}

impl LossClass {
    /// The name it has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policer => "policer",
            Self::Queue => "queue",
            Self::Random => "random",
            Self::Mixed => "mixed",
        }
    }
}

/// What the path lost, by when it had been sent. An episode ends with a round trip without a loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossFacts {
    /// What lost it; `None` where only timers tell, which say nothing of queues.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub class: Option<LossClass>,
    /// How many episodes.
    pub episodes: u64,
    /// Packets lost in them, as far as they are known one by one.
    pub packets: u64,
    /// Most of one episode.
    pub packets_max: u64,
    /// From the first loss of an episode to its last: half of them are not longer. To 6 %; an episode of one packet has no length.
    pub p50_ms: f64,
    /// Four fifths are not longer.
    pub p80_ms: f64,
    /// Nine tenths are not longer.
    pub p90_ms: f64,
    /// 99 of a hundred are not longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Losses of the last segments sent, which only a tail loss probe or the timer can find.
    pub tails: u64,
}

/// How data was sent within milliseconds, or arrived where the tap is not at the sender; payload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bursts {
    /// Most in a millisecond.
    pub peak_1ms_bytes: u64,
    /// Most in a tenth of one.
    pub peak_100us_bytes: u64,
    /// The most of a millisecond as a rate.
    pub peak_1ms_bps: f64,
    /// The most of a tenth of one as a rate.
    pub peak_100us_bps: f64,
    /// What losses have to do with it; `None` below 8 losses, and elsewhere than at the sender.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub losses: Option<BurstLosses>,
}

/// Losses, joined to the milliseconds they were sent in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstLosses {
    /// Losses that could be joined.
    pub joined: u64,
    /// Of these, the part sent in a millisecond, or just after one, that had as many bytes by then as the top tenth of all packets met.
    #[schemars(range(max = 1))]
    pub after_largest: f64,
    /// The part of all packets of which the same is true.
    #[schemars(range(max = 1))]
    pub by_chance: f64,
    /// Most bytes in the millisecond before one that was lost.
    pub bytes_max: u64,
}

/// Bursts after pauses of 200 ms and more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleRestarts {
    /// Such pauses.
    pub pauses: u64,
    /// Of these, pauses after which the congestion window was reset (RFC 5681 §4.1, Linux `tcp_slow_start_after_idle`).
    pub restarts: u64,
    /// Time the bursts after these took, those left out in which something was sent again.
    pub restarted_ms: f64,
}

/// Small segments that Nagle's algorithm held until a delayed acknowledgement came (RFC 896, RFC 1122 §4.2.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayedAcks {
    /// How many, of the side that waited longer.
    pub waits: u64,
    /// How long they waited in all, round trips apart.
    pub waited_ms: f64,
}

/// A path on which longer packets vanish (RFC 2923 §2.1); payload of segments.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathMtu {
    /// The longest that arrived, sent once; 0 where none did.
    pub passed_bytes: u64,
    /// The longest that never did.
    pub vanished_bytes: u64,
}

/// A family of congestion controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FamilyName {
    /// The window is halved at a loss.
    Reno,
    /// The window goes to 0.7 at a loss.
    Cubic,
    /// The window does not follow losses, or goes down to four segments every ten seconds: BBR, of whichever version.
    Bbr,
    /// Too few losses, or none that agree.
    Unknown,
}

impl FamilyName {
    /// The name it has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Unknown => "unknown",
        }
    }
}

/// Whose congestion control the sender likely has.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CongestionFamily {
    /// The family.
    pub name: FamilyName,
    /// How likely, 0 to 1; 0 of an unknown one.
    #[schemars(range(max = 1))]
    pub confidence: f64,
    /// Episodes of loss after which the window was seen, or the flight.
    pub episodes: u64,
    /// Median of the window after them, in parts of what it was before; absent where the flight alone was seen, and was kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_after: Option<f64>,
    /// Times it went down to four segments with data pending, as BBR does to measure the round trip.
    pub probes: u64,
}
