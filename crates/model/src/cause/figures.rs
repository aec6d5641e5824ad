//! The figures of each cause.

use crate::SlowStartExit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Packets that show a fact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sights {
    /// Numbers of the packets, from 1 as Wireshark counts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    #[schemars(inner(range(min = 1)))]
    pub packets: Vec<u64>,
    /// When the first is, in seconds since the connection's first packet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_s: Option<f64>,
}

/// How often something happened, and the first packets that show it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Occurrences {
    /// How often.
    pub count: u64,
    /// Where.
    #[serde(flatten)]
    pub sights: Sights,
}

/// How a slow reader shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum SlowReader {
    /// By its window, at the sender or in packets.
    Window {
        /// The largest window that was advertised.
        largest_bytes: u64,
        /// The part of it below which a window counts as small.
        small_part: f64,
        /// Advertisements of a window of zero.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        zero: Option<Occurrences>,
        /// Packets that filled the window to within one segment.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        filled: Option<Occurrences>,
    },
    /// By data that lay unread in its socket.
    Unread {
        /// Samples in which it did.
        samples: u64,
        /// Samples.
        of: u64,
    },
}

/// A send buffer that was full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FullSendBuffer {
    /// By what it shows.
    #[serde(flatten)]
    pub seen: SendBufferSeen,
    /// Pauses that end as those of a full buffer do.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wakeups: Option<Wakeups>,
    /// The capture was taken at the sender, or the sender's kernel was asked.
    pub at_sender: bool,
}

/// How a full send buffer shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum SendBufferSeen {
    /// The program writes again when no more than this is unacknowledged.
    Level {
        /// That level, two thirds of the buffer.
        level_bytes: f64,
        /// The largest flight.
        flight_max_bytes: u64,
    },
    /// The flight is constant.
    Flight {
        /// The flight.
        flight_bytes: f64,
        /// Least round trip.
        rtt_min_s: f64,
        /// The largest receive window.
        window_max_bytes: u64,
    },
    /// The program writes again when all it wrote is acknowledged.
    Emptied {
        /// What it writes each time.
        write_bytes: u64,
        /// How often.
        writes: u64,
        /// Least round trip.
        rtt_min_s: f64,
        /// How much later than that the acknowledgement comes for which the next one waits, where the receiver delays it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        ack_delay_s: Option<f64>,
    },
    /// The kernel counted the time.
    Counted {
        /// What the buffer may hold, in bytes of memory.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        buffer_bytes: Option<u64>,
    },
}

/// Pauses that end with the acknowledgement that frees a third of the send buffer (Linux `sk_stream_write_space`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wakeups {
    /// Pauses.
    pub count: u64,
    /// Their time.
    pub seconds: f64,
    /// What is in flight at their end.
    pub level_bytes: f64,
    /// What the buffer holds by that.
    pub buffer_bytes: f64,
}

/// Growth of the congestion window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowGrowth {
    /// Least round trip.
    pub rtt_min_s: f64,
    /// Payload that moved while the window grew.
    pub bytes: f64,
    /// The time of growth.
    pub seconds: f64,
    /// Slow start, where packets show it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slow_start: Option<SlowStartSeen>,
}

/// A slow start in packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowStartSeen {
    /// Its round trips.
    pub rounds: u64,
    /// The first flight, where it can be told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first: Option<FirstFlight>,
    /// The first packet with data.
    pub first_data: Sights,
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

/// The flight that a connection began with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstFlight {
    /// In segments.
    pub segments: f64,
    /// Size in bytes.
    pub segment_bytes: u64,
    /// The window ended it, so it is the initial window; otherwise that is as large at least.
    pub is_window: bool,
}

/// Data that was sent again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repairs {
    /// Packets that were sent again; the sights are those of fast retransmissions.
    pub packets_again: Occurrences,
    /// Episodes of repair.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub episodes: Option<u64>,
}

/// Losses, whatever they come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Losses {
    /// Part of the segments that was sent again.
    pub part: f64,
    /// What was sent again.
    pub repairs: Repairs,
    /// Episodes with a standing queue before them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queued_episodes: Option<u64>,
    /// Episodes whose origin was judged: none where no round trip of data is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub judged_episodes: Option<u64>,
    /// Round trip before them, on average.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_before_s: Option<f64>,
    /// Least round trip.
    pub rtt_min_s: f64,
}

impl Losses {
    /// Whether nothing tells a full queue's losses from others.
    pub(super) fn is_origin_unknown(&self) -> bool {
        self.judged_episodes == Some(0)
    }
}

/// What the receiving host drops of what has reached it, as a tap beside it shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDrops {
    /// Part of the segments that was sent again.
    pub part: f64,
    /// What was sent again.
    pub repairs: Repairs,
    /// Of that, segments that had come to the tap before.
    pub arrived: u64,
}

/// Losses or marks of a full queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum CongestionLosses {
    /// The queue drops packets.
    Dropped(Losses),
    /// The queue marks packets.
    Marked(QueueMarks),
    /// The queue of a path that several connections use up drops packets.
    SharedPath(Dropped),
    /// The queue drops packets, as the path itself counts: a scenario's does.
    Counted(QueueDrops),
}

/// Packets that a queue counted as dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueDrops {
    /// How many.
    pub packets: u64,
}

/// ECN marks of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueMarks {
    /// How often the sender cut its window.
    pub reductions: u64,
    /// Packets with ECE.
    pub echoes: u64,
}

/// Packets that a shared queue dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// What was sent again.
    pub repairs: Repairs,
}

/// A policer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicedRate {
    /// The rate above which it drops, headers included.
    pub rate_bps: f64,
    /// Size of the token bucket.
    pub burst_bytes: f64,
    /// What was sent again.
    pub repairs: Repairs,
    /// How well the bucket explains what was lost.
    pub fit: BucketFit,
}

/// How well a token bucket explains losses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BucketFit {
    /// Losses.
    pub losses: u64,
    /// Part of the losses at which the bucket is empty, round trips weighed alike.
    pub empty_part: f64,
    /// Part of the packets that passed for which it held enough.
    pub held_part: f64,
    /// Delay of packets that met an empty bucket, as a part of what a queue in its place would have added.
    pub delayed_part: f64,
}

/// Silences that only a timer ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeouts {
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub probes: Option<u64>,
    /// The longest silence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub longest_s: Option<f64>,
    /// No timer was seen to fire: data is missing at the end, and what the timer sent was lost as well.
    pub never_repaired: bool,
    /// The retransmissions that ended the silences.
    #[serde(flatten)]
    pub sights: Sights,
}

/// A path whose rate is used up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "used_by", rename_all = "snake_case")]
pub enum UsedPath {
    /// By this connection.
    Connection {
        /// The highest rate over a round trip.
        rate_bps: f64,
        /// The mean rate.
        mean_bps: f64,
        /// Mean round trip.
        rtt_mean_s: f64,
        /// Least round trip.
        rtt_min_s: f64,
        /// The rate at which trains of packets arrive.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        trains_bps: Option<f64>,
        /// A sender that paces its data looks the same where the capture was taken.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        or_paced: bool,
    },
    /// By several connections of the same two hosts.
    Several {
        /// The path's rate.
        rate_bps: f64,
        /// This connection's part.
        own_bps: f64,
        /// Other connections.
        others: u64,
    },
}

/// A congestion window that never passes a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clamp {
    /// That size.
    pub window_bytes: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Least round trip.
    pub rtt_min_s: f64,
    /// The largest receive window.
    pub window_max_bytes: u64,
    /// The capture was taken at the sender, or the sender's kernel was asked.
    pub at_sender: bool,
}

/// Data that leaves at an even rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PacedData {
    /// That rate.
    pub rate_bps: f64,
    /// Payload that leaves at a time.
    pub piece_bytes: f64,
    /// From one time to the next.
    pub interval_s: f64,
    /// Pieces, and those of them that came at the rate within 15 %.
    pub pieces: u64,
    /// Those that did.
    pub even: u64,
    /// The capture was taken at the sender.
    pub at_sender: bool,
}

/// Pauses after which the congestion window was reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Restarts {
    /// Bursts that began with a smaller window.
    pub restarted: Occurrences,
    /// What they took.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timing: Option<RestartTiming>,
}

/// What bursts take that begin with a smaller window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestartTiming {
    /// All bursts.
    pub bursts: u64,
    /// Payload of those that restarted.
    pub bytes: u64,
    /// What they took together.
    pub seconds: f64,
    /// What they would take together with the window kept.
    pub kept_s: f64,
    /// The round trip.
    pub rtt_s: f64,
}

/// Small writes that waited for an acknowledgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayedWrites {
    /// Those writes.
    pub writes: Occurrences,
    /// What they waited together.
    pub waited_s: f64,
    /// The acknowledgements came after a round trip; else the other side delayed them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub by_round_trips: bool,
}

/// Packets that are too long for the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "seen", rename_all = "snake_case")]
pub enum LargePackets {
    /// By long segments that were sent again in vain.
    Retransmissions {
        /// Payload of the longest segment that never arrived.
        segment_bytes: u64,
        /// Payload of the longest that arrived; 0 where none did.
        arrived_bytes: u64,
        /// Timeouts, and the retransmissions that followed them.
        timeouts: Occurrences,
        /// ICMP errors that said so, where there were any.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        errors: Option<TooBigErrors>,
    },
    /// By short segments that arrived after a silence.
    Arrivals {
        /// The silence before the first data.
        silence_s: f64,
        /// Payload of the longest segment.
        longest_bytes: u64,
        /// Payload that the handshake allows.
        agreed_bytes: u64,
        /// Payload that arrived.
        bytes: u64,
    },
    /// By what is missing to the end while short segments behind it arrived.
    Missing {
        /// The silence in which it did not come.
        silence_s: f64,
        /// Payload that is missing.
        missing_bytes: u64,
        /// Payload of the longest segment.
        longest_bytes: u64,
        /// Payload that the handshake allows.
        agreed_bytes: u64,
    },
    /// By the sender's kernel, which made its segments smaller after timeouts.
    Probing {
        /// Payload of a segment before.
        from_bytes: u64,
        /// And after.
        to_bytes: u64,
    },
}

/// ICMP "fragmentation needed" or "packet too big" about a connection's segments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TooBigErrors {
    /// How many.
    pub errors: Occurrences,
    /// The least MTU that they name, where they name one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mtu_bytes: Option<u32>,
}

/// Packets that overtook each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OvertakenPackets {
    /// What was sent again.
    pub repairs: Repairs,
    /// Retransmissions that were not needed: reported received twice, or acknowledged before they could have arrived.
    pub needless: u64,
    /// Packets that were seen to come late.
    pub late: u64,
}

/// A queue that is longer than the path needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FullQueue {
    /// Mean wait in it.
    pub wait_s: f64,
    /// Mean round trip.
    pub rtt_mean_s: f64,
    /// Least round trip.
    pub rtt_min_s: f64,
    /// The acknowledgements wait in it, in the other direction.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub acks: Option<AckWait>,
}

/// The round trip of a connection whose acknowledgements wait.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AckWait {
    /// Mean round trip without that wait.
    pub rtt_without_s: f64,
}

/// A flow-control window above TCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationWindow {
    /// The amount after which the sender stops, or that is in flight all the time.
    pub window_bytes: u64,
    /// Messages open it again piece by piece, so that the sender hardly stops.
    pub in_pieces: bool,
    /// The messages are requests of HTTP/1, each sent when the one before was answered.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub are_requests: bool,
    /// Amounts of that size, and the first packets after stops; or the messages, and the first of them.
    pub rounds: Occurrences,
    /// Least round trip.
    pub rtt_min_s: f64,
    /// The largest receive window of TCP.
    pub receive_window_bytes: u64,
}

/// Pauses of the sending program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Their time.
    pub idle_s: f64,
    /// The time they are part of.
    pub of_s: f64,
    /// Bursts of data between them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bursts: Option<u64>,
    /// Whom the connection waited for, where that is most of its life.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waited: Option<WaitedFor>,
    /// The timer by which the program writes, where it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timer: Option<WriteTimer>,
    /// By what they show.
    pub seen: PausesSeen,
}

/// A program that writes at equal intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WriteTimer {
    /// From one write to the next.
    pub period_s: f64,
    /// What it writes each time.
    pub bytes: u64,
}

/// Whom a connection waited for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "for", rename_all = "snake_case")]
pub enum WaitedFor {
    /// A request was acknowledged and no response had come.
    Server {
        /// For how long.
        seconds: f64,
    },
    /// No request was outstanding.
    Client {
        /// For how long.
        seconds: f64,
    },
}

/// How pauses of a program show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PausesSeen {
    /// At the sender.
    Sender,
    /// By timestamps: most of the data left when no acknowledgement had just arrived.
    Timestamps,
    /// By timestamps: it left at multiples of ten milliseconds by the sender's clock, which the round trip is not.
    Timer,
    /// By silence, elsewhere than at the sender.
    Silence,
}

/// What a connection carried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CarriedData {
    /// Payload.
    pub bytes: f64,
    /// In so long.
    pub seconds: f64,
    /// Of that, the time in which the sender waited for its turn in the exchange, where that was most of what it waited for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turns_s: Option<f64>,
}

/// What the kernel counted for a connection while it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCounters {
    /// Samples.
    pub samples: u64,
    /// Time sampled.
    pub seconds: f64,
    /// Time with data under way.
    pub busy_s: f64,
    /// Of that, limited by the receiver's window.
    pub window_limited_s: f64,
    /// Of that, limited by the send buffer.
    pub buffer_limited_s: f64,
    /// Rate of what was acknowledged.
    pub rate_bps: f64,
    /// Packets that were sent again.
    pub packets_again: u64,
    /// Smoothed round trip at the end.
    pub rtt_s: f64,
    /// Least round trip.
    pub rtt_min_s: f64,
}
