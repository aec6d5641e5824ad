//! The names of causes, and what kind of cause each is.

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
    /// A middlebox ignores window scaling and drops what lies beyond the window field.
    WindowScaleIgnored,
    /// The receiver's buffer overruns with data out of order: it drops data that it had selectively acknowledged.
    ReceiveBufferOverrun,
    /// The receiving host drops packets that have reached it: its firewall, checksums, or a full queue of its own.
    ReceiverDrops,
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
    /// The sender paces its data at a fixed rate, below the path's.
    PacingRate,
    /// After each pause the congestion window is reset.
    IdleRestart,
    /// Small writes wait for acknowledgements that the other side delays.
    DelayedAck,
    /// Packets longer than the path carries vanish without a word.
    PathMtuBlackHole,
    /// Selective acknowledgements tell of data that was never sent: a firewall changes sequence numbers and leaves them as they are.
    SackNotTranslated,
    /// Packets overtake each other, and the sender takes that for loss.
    Reordering,
    /// The queue in front of the path's bottleneck is far longer than the path needs.
    Bufferbloat,
    /// A flow-control window above TCP, as HTTP/2's, is smaller than the path holds.
    ApplicationWindow,
    /// The connection opened late or never: SYNs or SYN-ACKs were lost, nothing answered, or a reset did.
    Connecting,
    /// The listener's accept queue was full, so the server took the connection late.
    AcceptQueue,
    /// A request was lost and came with a retransmission.
    RequestLost,
    /// The server had a request and did not answer.
    WaitingForServer,
    /// No request was outstanding.
    WaitingForClient,
    /// A reset ended the connection before its exchange was over.
    Reset,
    /// One side fell silent while the other sent again and again.
    VanishedPeer,
    /// The sending program had nothing to send.
    Application,
    /// Nothing to gain: no limiter costs as much as five percent.
    NothingToGain,
    /// The capture does not tell.
    Unknown,
}

impl Code {
    /// Every code, in the order `thalweg explain` lists them.
    pub const ALL: [Self; 32] = [
        Self::ReceiveWindow,
        Self::WindowScalingMissing,
        Self::WindowScaleIgnored,
        Self::ReceiveBufferOverrun,
        Self::ReceiverDrops,
        Self::Reader,
        Self::SendBuffer,
        Self::InitialWindow,
        Self::RandomLoss,
        Self::CongestionLoss,
        Self::Policer,
        Self::RetransmissionTimeout,
        Self::PathRate,
        Self::CongestionWindowClamp,
        Self::PacingRate,
        Self::IdleRestart,
        Self::DelayedAck,
        Self::PathMtuBlackHole,
        Self::SackNotTranslated,
        Self::Reordering,
        Self::Bufferbloat,
        Self::ApplicationWindow,
        Self::Connecting,
        Self::AcceptQueue,
        Self::RequestLost,
        Self::WaitingForServer,
        Self::WaitingForClient,
        Self::Reset,
        Self::VanishedPeer,
        Self::Application,
        Self::NothingToGain,
        Self::Unknown,
    ];

    /// The code's text, the same in JSON and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReceiveWindow => "receive-window",
            Self::WindowScalingMissing => "window-scaling-missing",
            Self::WindowScaleIgnored => "window-scale-ignored",
            Self::ReceiveBufferOverrun => "receive-buffer-overrun",
            Self::ReceiverDrops => "receiver-drops",
            Self::Reader => "reader",
            Self::SendBuffer => "send-buffer",
            Self::InitialWindow => "initial-window",
            Self::RandomLoss => "random-loss",
            Self::CongestionLoss => "congestion-loss",
            Self::Policer => "policer",
            Self::RetransmissionTimeout => "retransmission-timeout",
            Self::PathRate => "path-rate",
            Self::CongestionWindowClamp => "congestion-window-clamp",
            Self::PacingRate => "pacing-rate",
            Self::IdleRestart => "idle-restart",
            Self::DelayedAck => "delayed-ack",
            Self::PathMtuBlackHole => "path-mtu-black-hole",
            Self::SackNotTranslated => "sack-not-translated",
            Self::Reordering => "reordering",
            Self::Bufferbloat => "bufferbloat",
            Self::ApplicationWindow => "application-window",
            Self::Connecting => "connecting",
            Self::AcceptQueue => "accept-queue",
            Self::RequestLost => "request-lost",
            Self::WaitingForServer => "waiting-for-server",
            Self::WaitingForClient => "waiting-for-client",
            Self::Reset => "reset",
            Self::VanishedPeer => "vanished-peer",
            Self::Application => "application",
            Self::NothingToGain => "nothing-to-gain",
            Self::Unknown => "unknown",
        }
    }
}

/// What kind of cause it is. Each match names every code, so that a new one cannot be forgotten.
impl Code {
    /// Whether one of the hosts bounds what is under way, whatever the path would take.
    pub const fn is_host_limit(self) -> bool {
        match self {
            Self::ReceiveWindow
            | Self::WindowScalingMissing
            | Self::Reader
            | Self::SendBuffer
            | Self::CongestionWindowClamp
            | Self::PacingRate => true,
            Self::InitialWindow
            | Self::RandomLoss
            | Self::CongestionLoss
            | Self::Policer
            | Self::RetransmissionTimeout
            | Self::PathRate
            | Self::IdleRestart
            | Self::DelayedAck
            | Self::PathMtuBlackHole
            | Self::SackNotTranslated
            | Self::WindowScaleIgnored
            | Self::ReceiveBufferOverrun
            | Self::ReceiverDrops
            | Self::Reordering
            | Self::Bufferbloat
            | Self::ApplicationWindow
            | Self::Connecting
            | Self::AcceptQueue
            | Self::RequestLost
            | Self::WaitingForServer
            | Self::WaitingForClient
            | Self::Reset
            | Self::VanishedPeer
            | Self::Application
            | Self::NothingToGain
            | Self::Unknown => false,
        }
    }

    /// Whether it shows that the connection sends as much as something on the path takes: packets are lost or queue.
    pub const fn is_path_limit(self) -> bool {
        match self {
            Self::RandomLoss
            | Self::CongestionLoss
            | Self::RetransmissionTimeout
            | Self::PathRate
            | Self::Bufferbloat => true,
            // What a policer lets through is one connection's or all of a host's: it says nothing of a shared path.
            Self::Policer
            | Self::ReceiveWindow
            | Self::WindowScalingMissing
            | Self::Reader
            | Self::SendBuffer
            | Self::InitialWindow
            | Self::CongestionWindowClamp
            | Self::PacingRate
            | Self::IdleRestart
            | Self::DelayedAck
            | Self::PathMtuBlackHole
            | Self::SackNotTranslated
            | Self::WindowScaleIgnored
            | Self::ReceiveBufferOverrun
            | Self::ReceiverDrops
            | Self::Reordering
            | Self::ApplicationWindow
            | Self::Connecting
            | Self::AcceptQueue
            | Self::RequestLost
            | Self::WaitingForServer
            | Self::WaitingForClient
            | Self::Reset
            | Self::VanishedPeer
            | Self::Application
            | Self::NothingToGain
            | Self::Unknown => false,
        }
    }

    /// Whether a connection without it would only take from others that share a full path.
    pub const fn is_bounded_by_shared_path(self) -> bool {
        match self {
            Self::ReceiveWindow
            | Self::SendBuffer
            | Self::InitialWindow
            | Self::RandomLoss
            | Self::CongestionLoss
            | Self::RetransmissionTimeout
            | Self::CongestionWindowClamp
            | Self::PacingRate
            | Self::Reordering
            | Self::Bufferbloat => true,
            Self::WindowScalingMissing
            | Self::Reader
            | Self::Policer
            | Self::PathRate
            | Self::IdleRestart
            | Self::DelayedAck
            | Self::PathMtuBlackHole
            | Self::SackNotTranslated
            | Self::WindowScaleIgnored
            | Self::ReceiveBufferOverrun
            | Self::ReceiverDrops
            | Self::ApplicationWindow
            | Self::Connecting
            | Self::AcceptQueue
            | Self::RequestLost
            | Self::WaitingForServer
            | Self::WaitingForClient
            | Self::Reset
            | Self::VanishedPeer
            | Self::Application
            | Self::NothingToGain
            | Self::Unknown => false,
        }
    }

    /// Whether it slows a connection down that its programs and its path's rate would let go faster.
    pub const fn is_slowdown(self) -> bool {
        match self {
            Self::Application | Self::WaitingForClient | Self::PathRate | Self::NothingToGain | Self::Unknown => false,
            Self::ReceiveWindow
            | Self::WindowScalingMissing
            | Self::Reader
            | Self::SendBuffer
            | Self::InitialWindow
            | Self::RandomLoss
            | Self::CongestionLoss
            | Self::Policer
            | Self::RetransmissionTimeout
            | Self::CongestionWindowClamp
            | Self::PacingRate
            | Self::IdleRestart
            | Self::DelayedAck
            | Self::PathMtuBlackHole
            | Self::SackNotTranslated
            | Self::WindowScaleIgnored
            | Self::ReceiveBufferOverrun
            | Self::ReceiverDrops
            | Self::Reordering
            | Self::Bufferbloat
            | Self::ApplicationWindow
            | Self::Connecting
            | Self::AcceptQueue
            | Self::RequestLost
            | Self::WaitingForServer
            | Self::Reset
            | Self::VanishedPeer => true,
        }
    }

    /// Whether it is a cause of the whole connection and not of its data phase: its share is one of the connection's life.
    pub const fn is_of_life(self) -> bool {
        match self {
            Self::Connecting
            | Self::AcceptQueue
            | Self::RequestLost
            | Self::WaitingForServer
            | Self::WaitingForClient
            | Self::Reset
            | Self::VanishedPeer => true,
            Self::ReceiveWindow
            | Self::WindowScalingMissing
            | Self::Reader
            | Self::SendBuffer
            | Self::InitialWindow
            | Self::RandomLoss
            | Self::CongestionLoss
            | Self::Policer
            | Self::RetransmissionTimeout
            | Self::PathRate
            | Self::CongestionWindowClamp
            | Self::PacingRate
            | Self::IdleRestart
            | Self::DelayedAck
            | Self::PathMtuBlackHole
            | Self::SackNotTranslated
            | Self::WindowScaleIgnored
            | Self::ReceiveBufferOverrun
            | Self::ReceiverDrops
            | Self::Reordering
            | Self::Bufferbloat
            | Self::ApplicationWindow
            | Self::Application
            | Self::NothingToGain
            | Self::Unknown => false,
        }
    }

    /// Whether it is a fault of the path, which is to be mended whatever that gains.
    pub const fn is_fault(self) -> bool {
        match self {
            Self::WindowScaleIgnored | Self::PathMtuBlackHole | Self::SackNotTranslated => true,
            Self::ReceiveWindow
            | Self::WindowScalingMissing
            | Self::ReceiveBufferOverrun
            | Self::ReceiverDrops
            | Self::Reader
            | Self::SendBuffer
            | Self::InitialWindow
            | Self::RandomLoss
            | Self::CongestionLoss
            | Self::Policer
            | Self::RetransmissionTimeout
            | Self::PathRate
            | Self::CongestionWindowClamp
            | Self::PacingRate
            | Self::IdleRestart
            | Self::DelayedAck
            | Self::Reordering
            | Self::Bufferbloat
            | Self::ApplicationWindow
            | Self::Connecting
            | Self::AcceptQueue
            | Self::RequestLost
            | Self::WaitingForServer
            | Self::WaitingForClient
            | Self::Reset
            | Self::VanishedPeer
            | Self::Application
            | Self::NothingToGain
            | Self::Unknown => false,
        }
    }

    /// The causes that this one brings about.
    pub const fn symptoms(self) -> &'static [Self] {
        match self {
            Self::WindowScalingMissing => &[Self::ReceiveWindow],
            Self::RandomLoss | Self::CongestionLoss => &[Self::RetransmissionTimeout],
            Self::Policer => &[Self::PathRate, Self::RetransmissionTimeout, Self::InitialWindow],
            Self::PathRate => &[Self::CongestionLoss, Self::RetransmissionTimeout, Self::Bufferbloat],
            Self::IdleRestart => &[Self::InitialWindow],
            Self::ApplicationWindow => &[Self::Application, Self::InitialWindow],
            Self::PathMtuBlackHole | Self::SackNotTranslated | Self::ReceiverDrops => {
                &[Self::RetransmissionTimeout, Self::RandomLoss, Self::CongestionLoss]
            }
            // A bucket of one window field that each acknowledgement fills, and a rate of one field a round trip.
            Self::WindowScaleIgnored => {
                &[Self::RetransmissionTimeout, Self::RandomLoss, Self::CongestionLoss, Self::Policer, Self::PathRate]
            }
            Self::ReceiveBufferOverrun => &[
                Self::ReceiveWindow,
                Self::Reader,
                Self::RetransmissionTimeout,
                Self::RandomLoss,
                Self::CongestionLoss,
                Self::Policer,
            ],
            Self::Reordering => &[Self::RetransmissionTimeout, Self::PathRate],
            // As a verdict it is the other direction's.
            Self::Bufferbloat => &[
                Self::RetransmissionTimeout,
                Self::RandomLoss,
                Self::CongestionLoss,
                Self::InitialWindow,
                Self::Application,
            ],
            Self::ReceiveWindow
            | Self::Reader
            | Self::SendBuffer
            | Self::InitialWindow
            | Self::RetransmissionTimeout
            | Self::CongestionWindowClamp
            | Self::PacingRate
            | Self::DelayedAck
            | Self::Connecting
            | Self::AcceptQueue
            | Self::RequestLost
            | Self::WaitingForServer
            | Self::WaitingForClient
            | Self::Reset
            | Self::VanishedPeer
            | Self::Application
            | Self::NothingToGain
            | Self::Unknown => &[],
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
