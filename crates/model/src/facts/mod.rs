//! What a capture shows of one connection beyond its counts: what was agreed, what was lost and when, how windows and rates went.
//!
//! Each part is there where the capture shows it, and left out where it does not. Unless a field says otherwise it is about the
//! flow's `direction`, as its sender lives it.

mod motion;

pub use motion::{
    BufferState, BurstLosses, Bursts, CongestionFamily, DelayedAcks, Delivery, FamilyName, IdleRestarts, InitialWindow,
    LossClass, LossFacts, PathMtu, ReceiveWindow, Reordering, RoundTrips, RttSource, SharedPath, SlowStart,
    SlowStartExit,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts of one connection.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Copies that the tap delivered of packets it had delivered before, both ways; they are counted nowhere else.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub tap_duplicates: u64,
    /// Payload that was acknowledged though it is not in the capture, in bytes: the capture lost packets.
    #[serde(default)]
    pub missed_bytes: u64,
    /// Explicit congestion notification, where an end asked for it or packets carry it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ecn: Option<Ecn>,
    /// TCP Fast Open, where a SYN carries its option or data.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fast_open: Option<Box<FastOpen>>,
    /// Multipath TCP, where packets carry its option.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub multipath: Option<Multipath>,
    /// Keep-alives and probes of a closed window, where an end sent any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub keep_alives: Option<Box<KeepAlives>>,
    /// Packets that were overtaken, where any were.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reordering: Option<Box<Reordering>>,
    /// Round trips, where there is a sample.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt: Option<Box<RoundTrips>>,
    /// The window the data's receiver advertised, where the capture shows its scale.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receive_window: Option<Box<ReceiveWindow>>,
    /// The initial congestion window, where the capture shows it or a bound of it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub initial_window: Option<InitialWindow>,
    /// How slow start went, where there was data.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slow_start: Option<SlowStart>,
    /// What it shared with others of the same two hosts, where that and the path's rate are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shared_path: Option<Box<SharedPath>>,
    /// How fast data arrived, where it was seen to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delivery: Option<Delivery>,
    /// Most bytes in flight: sent, and neither acknowledged nor believed lost (RFC 6675 §4, `pipe`).
    #[serde(skip_serializing_if = "is_zero", default)]
    pub flight_max_bytes: u64,
    /// What the path lost, where it lost anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub losses: Option<Box<LossFacts>>,
    /// How data was sent within milliseconds, where there was any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bursts: Option<Box<Bursts>>,
    /// Pauses of the program of 200 ms and more, where there were any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub idle_restarts: Option<Box<IdleRestarts>>,
    /// Small segments that waited for a delayed acknowledgement, where any did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delayed_acks: Option<DelayedAcks>,
    /// Lengths that pass and that do not, where packets of some length vanish.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_mtu: Option<PathMtu>,
    /// Whose congestion control the sender likely has, where it showed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub congestion_control: Option<CongestionFamily>,
}

/// Whether a count is left out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
pub(crate) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Explicit congestion notification.
///
/// Source: RFC 3168.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ecn {
    /// The SYN asked for it and the SYN-ACK agreed (§6.1.1); `None` where the capture does not hold both.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub negotiated: Option<bool>,
    /// Packets of the data's sender that carry ECT(0), ECT(1) or CE (§5).
    pub capable: u64,
    /// Of these, packets marked CE: a queue they passed before this tap was congested.
    pub marked: u64,
    /// Packets of the data's receiver with ECE, which it sends until it hears CWR (§6.1.3); SYNs apart.
    pub echoes: u64,
    /// Packets of the data's sender with CWR: it cut its window (§6.1.2); SYNs apart.
    pub reductions: u64,
}

/// TCP Fast Open.
///
/// Source: RFC 7413.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FastOpen {
    /// The client's SYN asks for a cookie (§4.1.2).
    pub asked: bool,
    /// It carries one.
    pub sent: bool,
    /// The SYN-ACK gives one.
    pub granted: bool,
    /// Bytes of payload in the SYN.
    pub syn_bytes: u64,
    /// The SYN-ACK acknowledges all of these; `None` without such bytes, or without a SYN-ACK in the capture.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub accepted: Option<bool>,
}

/// Multipath TCP: this connection is a subflow of another one, or of itself.
///
/// Source: RFC 8684.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Multipath {
    /// What its SYNs say.
    pub kind: MultipathKind,
    /// Both SYNs carry it; `None` where the capture does not hold both.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agreed: Option<bool>,
}

/// What a subflow begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MultipathKind {
    /// `MP_CAPABLE`: it is the first subflow (§3.1).
    Capable,
    /// `MP_JOIN`: it joins a connection that is there (§3.2).
    Join,
    /// Its packets carry the option, and the capture does not hold its SYNs.
    Unknown,
}

impl MultipathKind {
    /// The name it has in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Capable => "capable",
            Self::Join => "join",
            Self::Unknown => "unknown",
        }
    }
}

/// Probes of a connection that is idle, and of a window that is closed.
///
/// Source: RFC 9293 §3.8.4 and §3.8.6.1; Linux `tcp_write_wakeup` sends both alike: no payload, or one old byte, a number below
/// what comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeepAlives {
    /// Keep-alives the client sent.
    pub client: u64,
    /// Keep-alives the server sent.
    pub server: u64,
    /// Probes of either side whose peer had closed its window.
    pub window_probes: u64,
    /// Packets that answered one of these, before anything else came.
    pub answers: u64,
}
