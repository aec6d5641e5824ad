//! What the TCP sockets of a host do: one refresh of `thalweg watch`.

use crate::diagnosis::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// One line of `thalweg watch --json`: all sockets that the filter wants, at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchReport {
    /// `thalweg.watch/1`.
    pub schema: String,
    /// When the kernel was asked, in seconds since the epoch.
    pub at_s: f64,
    /// Time since it was asked before, in seconds; 0 at the first time, where rates are 0.
    pub interval_s: f64,
    /// Sockets of the network namespace, whatever the filter.
    pub sockets_total: u64,
    /// What waits to be sent, of all sockets.
    pub backlog: Backlog,
    /// What could not be seen, and what would show it.
    pub notes: Vec<String>,
    /// The sockets.
    pub sockets: Vec<SocketRow>,
    /// Connections that ended since the last refresh; left out where the kernel does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedSockets>,
}

/// Connections that ended in an interval, also those that began in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedSockets {
    /// How many the kernel reported, whatever the filter. Of a connection between two sockets of the namespace each end counts.
    pub total: u64,
    /// How many it could not report, since the buffer of its messages was full. What they did since the refresh before is in no figure.
    pub missed: u64,
    /// Those that the filter wants, of the first 10,000: counters and `limit.life` are of their whole lives, rates what they moved in this interval.
    pub sockets: Vec<SocketRow>,
}

/// What waits in the send queues of a host, and what the memory behind them comes to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Backlog {
    /// Bytes written by programs and not yet acknowledged.
    pub queued_bytes: u64,
    /// By how much that grows, in bytes per second; negative when it shrinks.
    #[schemars(extend("minimum" = null))]
    pub growth_bytes_per_s: f64,
    /// Memory of all TCP sockets; `None` where the kernel does not show it, as in another than the first network namespace.
    pub tcp_memory: Option<TcpMemoryUse>,
    /// Programs whose memory grows behind send queues that drain too slowly.
    pub growing: Vec<GrowingProgram>,
    /// What will run out, in a sentence each.
    pub warnings: Vec<String>,
}

/// Memory of all TCP sockets of a host, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpMemoryUse {
    /// Taken.
    pub used_bytes: u64,
    /// From here on the kernel shrinks buffers (`tcp_mem[1]`).
    pub pressure_bytes: u64,
    /// From here on it drops (`tcp_mem[2]`).
    pub limit_bytes: u64,
}

/// A program whose memory grows while its sockets are behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowingProgram {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Bytes in its send queues.
    pub queued_bytes: u64,
    /// Memory it has (`VmRSS`), in bytes.
    pub resident_bytes: u64,
    /// By how much that grows, in bytes per second.
    pub growth_bytes_per_s: f64,
    /// What its control group, or else the host, has left, in bytes.
    pub available_bytes: u64,
    /// When that is used up at this growth, in seconds.
    pub full_in_s: f64,
}

/// A socket at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketRow {
    /// The kernel's cookie: the number of no other socket since the host started.
    pub id: u64,
    /// Who holds it; `None` where that may not be seen, and for a socket that its program has closed.
    pub process: Option<SocketProcess>,
    /// The user whom it belongs to; 4294967295 for a connection that began and ended within an interval, whose user the kernel does not report.
    pub uid: u32,
    /// This host's end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// The state of TCP's machine.
    pub state: SocketState,
    /// The name of the congestion control.
    pub congestion_control: String,
    /// Round trips.
    pub rtt: SocketRtt,
    /// What it sends.
    pub send: SendSide,
    /// What it receives.
    pub receive: ReceiveSide,
    /// What it sent again.
    pub retransmissions: SocketRetransmissions,
    /// What limits its sending.
    pub limit: SocketLimit,
}

/// A process that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketProcess {
    /// Its number.
    pub pid: u32,
    /// Its name, at most 15 bytes (`/proc/PID/comm`).
    pub name: String,
    /// Its control group of version 2, such as `/system.slice/nginx.service`; empty where there is none.
    pub cgroup: String,
}

/// A state of TCP's machine in which a socket has figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SocketState {
    /// The SYN is sent, and nothing has answered.
    SynSent,
    /// Open at both ends.
    Established,
    /// This end has closed, and its FIN is not acknowledged.
    #[serde(rename = "fin-wait-1")]
    FinWait1,
    /// This end has closed, the other has not.
    #[serde(rename = "fin-wait-2")]
    FinWait2,
    /// The other end has closed, this one has not.
    CloseWait,
    /// Both have closed, the last FIN is not acknowledged.
    LastAck,
    /// Both closed at once.
    Closing,
    /// It has ended: the kernel has freed its socket. TIME_WAIT, which keeps no figures, counts as that.
    Closed,
}

impl SocketState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::SynSent,
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::CloseWait,
        Self::LastAck,
        Self::Closing,
        Self::Closed,
    ];
    /// Those of sockets that exist.
    pub const LIVE: [Self; 7] = {
        let [live @ .., Self::Closed] = Self::ALL else { panic!("the closed state is the last") };
        live
    };

    /// The state of the kernel's number (include/net/tcp_states.h); `None` for those in which a listing has no figures.
    pub const fn of_kernel(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Established,
            2 => Self::SynSent,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            11 => Self::Closing,
            _ => return None,
        })
    }

    /// The name, as `ss` has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SynSent => "syn-sent",
            Self::Established => "established",
            Self::FinWait1 => "fin-wait-1",
            Self::FinWait2 => "fin-wait-2",
            Self::CloseWait => "close-wait",
            Self::LastAck => "last-ack",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for SocketState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Round trips, in milliseconds; `None` before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketRtt {
    /// As the kernel smooths them.
    pub smoothed_ms: Option<f64>,
    /// Their smoothed mean deviation.
    pub variation_ms: Option<f64>,
    /// The least that the kernel remembers.
    pub min_ms: Option<f64>,
}

/// What a socket sends. Rates are of the last interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SendSide {
    /// Payload acknowledged, in bits per second.
    pub rate_bps: f64,
    /// Payload acknowledged since it was opened.
    pub bytes: u64,
    /// The largest rate that the kernel measured lately (`tcpi_delivery_rate`), in bits per second.
    pub delivery_rate_bps: f64,
    /// Whether that was the program's rate, not the path's.
    pub delivery_rate_app_limited: bool,
    /// Congestion window, in segments.
    pub cwnd_segments: u64,
    /// Segment size.
    pub segment_bytes: u64,
    /// What is under way: neither acknowledged nor believed lost.
    pub in_flight_bytes: u64,
    /// The window that the peer gives (`tcpi_snd_wnd`); 0 before Linux 5.4, which does not tell.
    pub peer_window_bytes: u64,
    /// The peer's window is closed and something waits for it.
    pub zero_window: bool,
    /// Written by the program and not yet acknowledged.
    pub queued_bytes: u64,
    /// Of these, not yet sent.
    pub unsent_bytes: u64,
    /// How long the queue takes to drain at the present rate, in seconds; `None` if nothing drains.
    pub queued_s: Option<f64>,
    /// What the send buffer may hold, in bytes of memory.
    pub buffer_bytes: u64,
    /// Bytes of memory it holds.
    pub buffered_bytes: u64,
}

/// What a socket receives. Rates are of the last interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiveSide {
    /// Payload received in order, in bits per second.
    pub rate_bps: f64,
    /// Payload received since it was opened.
    pub bytes: u64,
    /// The window that this end gives (`tcpi_rcv_wnd`); 0 before Linux 6.2, which does not tell.
    pub window_bytes: u64,
    /// What the program reads in a round trip, as the kernel sizes its buffer by (`tcpi_rcv_space`).
    pub space_bytes: u64,
    /// Received and not yet read.
    pub unread_bytes: u64,
    /// Bytes of memory that the receive buffer holds.
    pub buffered_bytes: u64,
    /// What it may hold.
    pub buffer_bytes: u64,
    /// Segments that came out of order since it was opened (`tcpi_rcv_ooopack`).
    pub out_of_order_segments: u64,
}

/// What a socket sent again, since it was opened where it does not say otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketRetransmissions {
    /// Segments.
    pub segments: u64,
    /// Segments per second, in the last interval.
    pub rate_per_s: f64,
    /// Part of all segments sent with payload.
    #[schemars(range(max = 1))]
    pub share: f64,
    /// Retransmission timeouts; 0 before Linux 6.7, which does not tell.
    pub timeouts: u64,
    /// Segments that the peer had already, by its DSACKs.
    pub spurious_segments: u64,
    /// Times at which segments turned out to be late and not lost.
    pub reordering_seen: u64,
}

/// What limits the sending of a socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketLimit {
    /// In the last interval; `None` for one that sent nothing and waited for nothing.
    pub now: Option<LimitNow>,
    /// Since it was opened.
    pub life: LimitLife,
}

/// The limit that took most of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitNow {
    /// Its name.
    pub cause: LimitName,
    /// The part of the interval that it took.
    #[schemars(range(max = 1))]
    pub share: f64,
    /// All limits: where the interval went.
    pub limits: Limits,
}

/// What the kernel's clocks say of a socket's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitLife {
    /// Seconds with data under way (`tcpi_busy_time`).
    pub busy_s: f64,
    /// The limit that took most of that; `None` if there was no such time.
    pub cause: Option<LifeLimit>,
    /// The part of the busy time in which the peer's window was full.
    #[schemars(range(max = 1))]
    pub receive_window: f64,
    /// The part in which the send buffer was.
    #[schemars(range(max = 1))]
    pub send_buffer: f64,
    /// The rest: the congestion window, the path, losses.
    #[schemars(range(max = 1))]
    pub network: f64,
}

/// What the kernel's clocks divide a life into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LifeLimit {
    /// The peer's window.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
    /// Neither of them.
    Network,
}

impl LifeLimit {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::ReceiveWindow, Self::SendBuffer, Self::Network];

    /// The name, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReceiveWindow => "receive-window",
            Self::SendBuffer => "send-buffer",
            Self::Network => "network",
        }
    }
}

impl LimitNow {
    /// The largest of these limits; `None` where all are zero.
    pub fn largest_of(limits: Limits) -> Option<Self> {
        let (cause, (_, share)) =
            LimitName::ALL.into_iter().zip(limits.named()).max_by(|(_, (_, a)), (_, (_, b))| a.total_cmp(b))?;
        (share > 0.0).then_some(Self { cause, share, limits })
    }
}

/// The name of a part of [`Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitName {
    /// The sending program had nothing to send.
    Application,
    /// The receiver's window was full.
    ReceiveWindow,
    /// The sender's socket buffer was full.
    SendBuffer,
    /// The congestion window was still growing from its start.
    SlowStart,
    /// The congestion window was full.
    CongestionWindow,
    /// The path delivered all it can.
    PathRate,
    /// Losses were being repaired by fast recovery.
    LossRecovery,
    /// Nothing moved until a timer fired.
    Timeout,
    /// The receiving program let its window close.
    Reader,
}

impl LimitName {
    /// Every one, in the order of [`Limits::named`].
    pub const ALL: [Self; 9] = [
        Self::Application,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::SlowStart,
        Self::CongestionWindow,
        Self::PathRate,
        Self::LossRecovery,
        Self::Timeout,
        Self::Reader,
    ];

    /// The name, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive-window",
            Self::SendBuffer => "send-buffer",
            Self::SlowStart => "slow-start",
            Self::CongestionWindow => "congestion-window",
            Self::PathRate => "path-rate",
            Self::LossRecovery => "loss-recovery",
            Self::Timeout => "timeout",
            Self::Reader => "reader",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        let named = Limits::default().named();
        for (limit, (name, _)) in LimitName::ALL.iter().zip(named) {
            assert_eq!(limit.as_str(), name.replace('_', "-"));
            assert_eq!(serde_json::to_value(limit).expect("JSON"), limit.as_str());
        }
        for state in SocketState::ALL {
            assert_eq!(serde_json::to_value(state).expect("JSON"), state.as_str());
        }
        for limit in LifeLimit::ALL {
            assert_eq!(serde_json::to_value(limit).expect("JSON"), limit.as_str());
        }
        let known = (0..=12).filter_map(SocketState::of_kernel).count();
        assert_eq!(known, SocketState::LIVE.len());
    }
}
