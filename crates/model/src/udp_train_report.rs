//! What trains of UDP packets between two hosts showed of the path.

use crate::way::Way;
use schemars::JsonSchema;
use serde::Serialize;

/// The document of `thalweg load udp-train --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct UdpTrainReport {
    /// `thalweg.load-udp-train/1`.
    pub schema: &'static str,
    /// The server's address and port.
    pub peer: String,
    /// The direction of the packets.
    pub way: Way,
    /// UDP payload of each packet, in bytes.
    #[schemars(range(min = 16))]
    pub payload_bytes: u32,
    /// The same with UDP, IP and Ethernet headers: what a buffer holds.
    #[schemars(range(min = 58))]
    pub frame_bytes: u64,
    /// Bytes a frame costs on the wire besides; rates count them.
    pub overhead_bytes: u32,
    /// What the trains show.
    pub finding: TrainFinding,
    /// The bottleneck's rate; `None` if packets came no slower than they were sent.
    pub rate: Option<RateEstimate>,
    /// The bottleneck's buffer; `None` unless losses found it full.
    pub buffer: Option<BufferEstimate>,
    /// The most that waited in the queue, in bytes; `None` without a rate.
    pub queue_max_bytes: Option<u64>,
    /// The longest queueing delay, in milliseconds.
    pub queue_max_ms: f64,
    /// The queueing delay of the last train in milliseconds, at each tenth of its packets.
    pub queue_course_ms: Vec<f64>,
    /// Which packets of the measured trains were lost.
    pub losses: LossRuns,
    /// The trains that grew, in order.
    pub growing: Vec<TrainRow>,
    /// The trains that the rate and the buffer are from.
    pub measured: Vec<TrainRow>,
}

/// What trains show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrainFinding {
    /// Losses found the bottleneck's buffer full.
    FullBuffer,
    /// A queue built up, and nothing was lost.
    NoLoss,
    /// A queue built up, and losses came at different lengths of it.
    ScatteredLosses,
    /// No queue: packets came as fast as they were sent.
    NoQueue,
}

/// A rate, of several trains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RateEstimate {
    /// The median, in bits per second.
    pub bps: f64,
    /// The least of a train.
    pub low_bps: f64,
    /// The greatest of a train.
    pub high_bps: f64,
    /// Trains that showed a rate.
    #[schemars(range(min = 1))]
    pub trains: u64,
}

/// A buffer, of several losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BufferEstimate {
    /// What it held at a loss, in bytes: the median.
    pub bytes: u64,
    /// The 5th percentile, and one frame less, which was being sent.
    pub low_bytes: u64,
    /// The 95th percentile, and one frame more, for which there was no room.
    pub high_bytes: u64,
    /// The median in packets.
    pub packets: u64,
    /// Losses that it is from.
    pub losses: u64,
}

/// Which packets were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LossRuns {
    /// Packets that were sent.
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Runs of consecutive packets among them.
    pub runs: u64,
    /// Packets of the longest run.
    pub longest: u64,
}

/// One train.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TrainRow {
    /// Packets that were sent.
    #[schemars(range(min = 1))]
    pub packets: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// The place of the first of them, from 0; `None` if all arrived.
    pub first_lost: Option<u64>,
    /// The rate they were sent at, in bits per second; `None` if they were sent at one moment.
    pub offered_bps: Option<f64>,
    /// The rate they left the queue at; `None` if there was none.
    pub drain_bps: Option<f64>,
    /// The longest queueing delay, in milliseconds; `None` if nothing arrived.
    pub queue_max_ms: Option<f64>,
    /// What the queue held at a loss, in bytes; `None` without a queue or a loss.
    pub buffer_bytes: Option<u64>,
    /// Packets that arrived more than once.
    pub duplicates: u64,
    /// Packets that the receiving socket had no room for.
    pub receiver_dropped: u64,
    /// Times the sending socket had no room.
    pub sender_blocked: u64,
}
