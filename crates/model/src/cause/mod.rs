//! Causes, each with the figures that its sentences show.

mod claim;
mod code;
mod evidence;
mod figures;
mod life;
mod middlebox;
mod receive_buffer;
mod receive_window;
mod undecided;

pub use code::Code;
pub use figures::{
    AckWait, ApplicationWindow, BucketFit, CarriedData, Clamp, CongestionLosses, DelayedWrites, Dropped, FirstFlight,
    FullQueue, FullSendBuffer, HostDrops, KernelCounters, LargePackets, Losses, Occurrences, OvertakenPackets,
    PacedData, Pauses, PausesSeen, PolicedRate, QueueDrops, QueueMarks, Repairs, RestartTiming, Restarts,
    SendBufferSeen, Sights, SlowReader, SlowStartSeen, Timeouts, TooBigErrors, UsedPath, WaitedFor, Wakeups,
    WindowGrowth, WriteTimer,
};
pub use life::{FullAcceptQueue, LastSilence, LostRequest, Opening, ProgramWait, ResetSeen, SentAgain, SynRequest};
pub use middlebox::{ForeignBlocks, UnscaledEdge};
pub use receive_buffer::OverrunBuffer;
pub use receive_window::{FullWindow, PathHolds};
pub use undecided::UndecidedBy;

use crate::SharedPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a connection was no faster, one variant for each [`Code`], with every figure that its sentences show.
///
/// Sizes are in bytes of payload, times in seconds, rates in bits per second of payload, parts between 0 and 1. A figure that the
/// source of a verdict does not show, as samples of a socket do not show packets, is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum Cause {
    /// See [`Code::ReceiveWindow`].
    ReceiveWindow(FullWindow),
    /// See [`Code::WindowScalingMissing`].
    WindowScalingMissing(FullWindow),
    /// See [`Code::WindowScaleIgnored`].
    WindowScaleIgnored(UnscaledEdge),
    /// See [`Code::ReceiveBufferOverrun`].
    ReceiveBufferOverrun(OverrunBuffer),
    /// See [`Code::ReceiverDrops`].
    ReceiverDrops(HostDrops),
    /// See [`Code::Reader`].
    Reader(SlowReader),
    /// See [`Code::SendBuffer`].
    SendBuffer(FullSendBuffer),
    /// See [`Code::InitialWindow`].
    InitialWindow(WindowGrowth),
    /// See [`Code::RandomLoss`].
    RandomLoss(Losses),
    /// See [`Code::CongestionLoss`].
    CongestionLoss(CongestionLosses),
    /// See [`Code::Policer`].
    Policer(PolicedRate),
    /// See [`Code::RetransmissionTimeout`].
    RetransmissionTimeout(Timeouts),
    /// See [`Code::PathRate`].
    PathRate(UsedPath),
    /// See [`Code::CongestionWindowClamp`].
    CongestionWindowClamp(Clamp),
    /// See [`Code::PacingRate`].
    PacingRate(PacedData),
    /// See [`Code::IdleRestart`].
    IdleRestart(Restarts),
    /// See [`Code::DelayedAck`].
    DelayedAck(DelayedWrites),
    /// See [`Code::PathMtuBlackHole`].
    PathMtuBlackHole(LargePackets),
    /// See [`Code::SackNotTranslated`].
    SackNotTranslated(ForeignBlocks),
    /// See [`Code::Reordering`].
    Reordering(OvertakenPackets),
    /// See [`Code::Bufferbloat`].
    Bufferbloat(FullQueue),
    /// See [`Code::ApplicationWindow`].
    ApplicationWindow(ApplicationWindow),
    /// See [`Code::Connecting`].
    Connecting(Opening),
    /// See [`Code::AcceptQueue`].
    AcceptQueue(FullAcceptQueue),
    /// See [`Code::RequestLost`].
    RequestLost(LostRequest),
    /// See [`Code::WaitingForServer`].
    WaitingForServer(ProgramWait),
    /// See [`Code::WaitingForClient`].
    WaitingForClient(ProgramWait),
    /// See [`Code::Reset`].
    Reset(ResetSeen),
    /// See [`Code::VanishedPeer`].
    VanishedPeer(LastSilence),
    /// See [`Code::Application`].
    Application(Pauses),
    /// See [`Code::NothingToGain`].
    NothingToGain(CarriedData),
    /// See [`Code::Unknown`].
    Unknown(UndecidedBy),
}

impl Cause {
    /// The cause's name.
    pub const fn code(&self) -> Code {
        match self {
            Self::ReceiveWindow(_) => Code::ReceiveWindow,
            Self::WindowScalingMissing(_) => Code::WindowScalingMissing,
            Self::WindowScaleIgnored(_) => Code::WindowScaleIgnored,
            Self::ReceiveBufferOverrun(_) => Code::ReceiveBufferOverrun,
            Self::ReceiverDrops(_) => Code::ReceiverDrops,
            Self::Reader(_) => Code::Reader,
            Self::SendBuffer(_) => Code::SendBuffer,
            Self::InitialWindow(_) => Code::InitialWindow,
            Self::RandomLoss(_) => Code::RandomLoss,
            Self::CongestionLoss(_) => Code::CongestionLoss,
            Self::Policer(_) => Code::Policer,
            Self::RetransmissionTimeout(_) => Code::RetransmissionTimeout,
            Self::PathRate(_) => Code::PathRate,
            Self::CongestionWindowClamp(_) => Code::CongestionWindowClamp,
            Self::PacingRate(_) => Code::PacingRate,
            Self::IdleRestart(_) => Code::IdleRestart,
            Self::DelayedAck(_) => Code::DelayedAck,
            Self::PathMtuBlackHole(_) => Code::PathMtuBlackHole,
            Self::SackNotTranslated(_) => Code::SackNotTranslated,
            Self::Reordering(_) => Code::Reordering,
            Self::Bufferbloat(_) => Code::Bufferbloat,
            Self::ApplicationWindow(_) => Code::ApplicationWindow,
            Self::Connecting(_) => Code::Connecting,
            Self::AcceptQueue(_) => Code::AcceptQueue,
            Self::RequestLost(_) => Code::RequestLost,
            Self::WaitingForServer(_) => Code::WaitingForServer,
            Self::WaitingForClient(_) => Code::WaitingForClient,
            Self::Reset(_) => Code::Reset,
            Self::VanishedPeer(_) => Code::VanishedPeer,
            Self::Application(_) => Code::Application,
            Self::NothingToGain(_) => Code::NothingToGain,
            Self::Unknown(_) => Code::Unknown,
        }
    }

    /// The cause in one sentence or two; `share` is its part of the data phase, or of the connection's life.
    pub fn claim(&self, share: f64) -> String {
        claim::of(self, share)
    }

    /// What the claim rests on.
    pub fn evidence(&self) -> Vec<Evidence> {
        evidence::of(self)
    }
}

/// A fact about a connection that a verdict rests on, whatever its cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Context {
    /// What the kernel counted for a connection that was judged by samples of its socket.
    Kernel(KernelCounters),
    /// The connections that use up the path together.
    SharedPath(SharedPath),
}

impl Context {
    /// The facts, for a verdict of this cause.
    pub fn evidence(&self, code: Code) -> Vec<Evidence> {
        evidence::of_context(self, code)
    }
}

/// A fact a claim rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The fact, with its figures and units.
    pub text: String,
    /// Numbers of the packets that show it, from 1 as Wireshark counts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schemars(inner(range(min = 1)))]
    pub packets: Vec<u64>,
    /// When, in seconds since the connection's first packet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_s: Option<f64>,
}
