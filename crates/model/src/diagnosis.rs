//! Why a connection was no faster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a cause, as `thalweg explain` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The receiver's window, as large as its buffer allows, is smaller than the path holds.
    ReceiveWindow,
    /// The handshake left the window scale out, so no window passes 65,535 bytes.
    WindowScalingMissing,
    /// The receiving program does not read fast enough.
    Reader,
    /// The sender's socket buffer holds less than the path.
    SendBuffer,
    /// The transfer was over before the congestion window had grown: the initial window decides.
    InitialWindow,
    /// Random loss keeps the congestion window below what the path holds.
    RandomLoss,
    /// A full queue on the path drops packets; the flow has its share of the bottleneck.
    CongestionLoss,
    /// A policer discards what is over its rate.
    Policer,
    /// Retransmission timeouts: silences of hundreds of milliseconds.
    RetransmissionTimeout,
    /// The path's own rate is used up.
    PathRate,
    /// The congestion window stands at a fixed size, below what the path holds.
    CongestionWindowClamp,
    /// After each pause the congestion window begins anew.
    IdleRestart,
    /// Small writes wait for acknowledgements that the other side delays.
    DelayedAck,
    /// Packets longer than the path carries vanish without a word.
    PathMtuBlackHole,
    /// Packets overtake each other, and the sender takes that for loss.
    Reordering,
    /// The queue in front of the path's bottleneck is far longer than the path needs.
    Bufferbloat,
    /// The sending program had nothing to send.
    Application,
    /// Nothing to gain: no limiter costs as much as five percent.
    NothingToGain,
    /// The capture does not tell.
    Unknown,
}

impl Code {
    /// Every code, in the order `thalweg explain` lists them.
    pub const ALL: [Self; 19] = [
        Self::ReceiveWindow,
        Self::WindowScalingMissing,
        Self::Reader,
        Self::SendBuffer,
        Self::InitialWindow,
        Self::RandomLoss,
        Self::CongestionLoss,
        Self::Policer,
        Self::RetransmissionTimeout,
        Self::PathRate,
        Self::CongestionWindowClamp,
        Self::IdleRestart,
        Self::DelayedAck,
        Self::PathMtuBlackHole,
        Self::Reordering,
        Self::Bufferbloat,
        Self::Application,
        Self::NothingToGain,
        Self::Unknown,
    ];

    /// The code's text, the same in JSON and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReceiveWindow => "receive-window",
            Self::WindowScalingMissing => "window-scaling-missing",
            Self::Reader => "reader",
            Self::SendBuffer => "send-buffer",
            Self::InitialWindow => "initial-window",
            Self::RandomLoss => "random-loss",
            Self::CongestionLoss => "congestion-loss",
            Self::Policer => "policer",
            Self::RetransmissionTimeout => "retransmission-timeout",
            Self::PathRate => "path-rate",
            Self::CongestionWindowClamp => "congestion-window-clamp",
            Self::IdleRestart => "idle-restart",
            Self::DelayedAck => "delayed-ack",
            Self::PathMtuBlackHole => "path-mtu-black-hole",
            Self::Reordering => "reordering",
            Self::Bufferbloat => "bufferbloat",
            Self::Application => "application",
            Self::NothingToGain => "nothing-to-gain",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where the time of a data phase went: shares of it that add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// The sending program had nothing to send.
    pub application: f64,
    /// The receiver's window was full.
    pub receive_window: f64,
    /// The sender's socket buffer was full.
    pub send_buffer: f64,
    /// The congestion window was still growing from its start.
    pub slow_start: f64,
    /// The congestion window was full, held down by earlier loss or by its own growth.
    pub congestion_window: f64,
    /// The path delivered all it can.
    pub path_rate: f64,
    /// Losses were being repaired by fast recovery.
    pub loss_recovery: f64,
    /// Nothing moved until a retransmission timer or a tail loss probe fired.
    pub timeout: f64,
    /// The receiving program let its window close.
    pub reader: f64,
}

impl Limits {
    /// The shares with the names JSON gives them.
    pub const fn named(&self) -> [(&'static str, f64); 9] {
        [
            ("application", self.application),
            ("receive_window", self.receive_window),
            ("send_buffer", self.send_buffer),
            ("slow_start", self.slow_start),
            ("congestion_window", self.congestion_window),
            ("path_rate", self.path_rate),
            ("loss_recovery", self.loss_recovery),
            ("timeout", self.timeout),
            ("reader", self.reader),
        ]
    }

    /// The sum of the shares: 1, or 0 for a flow without a data phase.
    pub fn total(&self) -> f64 {
        self.named().iter().map(|(_, share)| share).sum()
    }
}

/// The cause that costs most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The cause.
    pub code: Code,
    /// Its share of the data phase.
    pub share: f64,
    /// One sentence, with the figures.
    pub claim: String,
    /// How much faster the flow would be without it; 1 is no gain, `None` where it cannot be told.
    pub gain: Option<f64>,
    /// By what causes are ranked, where several are: how many times faster without it, or a bound of that where it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub weight: Option<f64>,
    /// What the claim rests on.
    pub evidence: Vec<Evidence>,
}

/// Something else worth knowing about a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The cause.
    pub code: Code,
    /// Its share of the data phase.
    pub share: f64,
    /// One sentence, with the figures.
    pub claim: String,
    /// How much faster the flow would be without it; 1 is no gain, `None` where it cannot be told.
    pub gain: Option<f64>,
    /// By what causes are ranked, where several are: how many times faster without it, or a bound of that where it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub weight: Option<f64>,
    /// The cause this is a symptom of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depends_on: Option<Code>,
    /// What the claim rests on.
    pub evidence: Vec<Evidence>,
}

/// A fact a claim rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The fact, with its figures and units.
    pub text: String,
    /// Numbers of the packets that show it, from 1 as Wireshark counts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub packets: Vec<u64>,
    /// When, in seconds since the connection's first packet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_s: Option<f64>,
}
