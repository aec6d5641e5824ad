//! One TCP connection as a capture shows it: facts, and the series its plots draw.

use crate::application::Application;
use crate::diagnosis::{Finding, Limits, Verdict};
use crate::facts::Facts;
use crate::life::Life;
use crate::measured::Measured;
use crate::remedy::Remedy;
use crate::way::Way;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where on the path a capture was taken, seen from the data's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Vantage {
    /// At or beside the host that sends most of the data.
    Sender,
    /// At or beside the host that receives most of the data.
    Receiver,
    /// Between them.
    Middle,
    /// The capture does not tell.
    Unknown,
}

/// One TCP connection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Number in the capture, from 0, in order of first packets.
    pub id: u64,
    /// Number of its first packet in the file, from 1 as Wireshark counts; 0 of a socket that was sampled.
    pub first_packet: u64,
    /// `ip:port` of the side that connected (or seems to have).
    pub client: String,
    /// `ip:port` of the side that was connected to.
    pub server: String,
    /// Interface the flow was seen on, where the capture names several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interface: Option<String>,
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// Time of the first packet, seconds since the epoch.
    pub start: f64,
    /// Time from the first packet to the last; to the end of the capture where the server has sent nothing and a request waits for it.
    pub duration_s: f64,
    /// Payload the client sent, each byte counted once; what was acknowledged of it, if only the server's packets were captured.
    pub bytes_up: u64,
    /// Payload the server sent, as above.
    pub bytes_down: u64,
    /// Packets the client sent.
    pub packets_up: u64,
    /// Packets the server sent.
    pub packets_down: u64,
    /// What the handshake agreed.
    pub handshake: Handshake,
    /// The direction all that follows is about, up to the other one's part: the one with more payload.
    pub direction: Way,
    /// Data packets that carried bytes sent before.
    pub retransmits: Retransmits,
    /// Data packets that came late without having been sent twice.
    pub out_of_order: u64,
    /// Acknowledgements that acknowledged nothing new while data was out (RFC 5681 §2).
    pub dup_acks: u64,
    /// Window advertisements of zero by the data's receiver.
    pub zero_windows: u64,
    /// Data packets that filled the advertised window to within one segment.
    pub window_full: u64,
    /// Smallest round-trip time seen.
    pub rtt_min_ms: Option<f64>,
    /// Mean payload rate over the data phase.
    pub goodput_bps: f64,
    /// How long the data phase took, which goodput, gain and shares are of; the connection may have been idle for longer.
    pub phase_s: f64,
    /// What remedies are reckoned from.
    pub measured: Measured,
    /// The token bucket that discards what is over its rate, where losses fit one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policer: Option<TokenBucket>,
    /// What else the capture shows of it.
    pub facts: Facts,
    /// Where the time of the whole connection went; `None` of a socket that was sampled, and where only the packets of the data's receiver were
    /// captured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub life: Option<Life>,
    /// What the protocols above TCP show, where that is anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub application: Option<Box<Application>>,
    /// Where the time of the data phase went.
    pub limits: Limits,
    /// Why it was no faster.
    pub verdict: Verdict,
    /// What else is worth knowing.
    pub findings: Vec<Finding>,
    /// The other direction, where that carried enough to be held back by anything.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub other_direction: Option<Box<OtherDirection>>,
    /// What mends it; each is a way of its own, and the first is the best. Empty until a remedy is asked for.
    pub remedies: Vec<Remedy>,
    /// What it did in each interval, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub intervals: Vec<FlowInterval>,
}

/// The direction of a connection with less payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherDirection {
    /// Which it is.
    pub direction: Way,
    /// Where the capture was taken, seen from the sender of this data.
    pub vantage: Vantage,
    /// Mean payload rate over its data phase.
    pub goodput_bps: f64,
    /// Data packets that carried bytes sent before.
    pub retransmits: u64,
    /// Where the time of its data phase went.
    pub limits: Limits,
    /// Why it was no faster.
    pub verdict: Verdict,
}

/// What the direction with more payload did in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowInterval {
    /// Its start, in seconds since the connection's first packet.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Bytes acknowledged in it, or sent where no acknowledgement was seen.
    pub bytes: f64,
    /// Retransmissions in it.
    pub retransmits: u64,
    /// The largest flight in it, in bytes.
    pub flight_bytes: Option<f64>,
    /// The mean of its round-trip times, in milliseconds.
    pub rtt_ms: Option<f64>,
}

/// A policer, as the losses behind it tell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenBucket {
    /// The rate at which its bucket fills, Ethernet headers included.
    pub rate_bps: f64,
    /// What the bucket holds.
    pub burst_bytes: f64,
}

/// What the handshake agreed; `None` where the capture does not hold it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handshake {
    /// SYN to the ACK of the SYN-ACK, as far as this vantage sees it.
    pub rtt_ms: Option<f64>,
    /// Client's maximum segment size.
    pub mss_client: Option<u16>,
    /// Server's maximum segment size.
    pub mss_server: Option<u16>,
    /// Client's window scale; `None` where the SYN had no such option.
    pub wscale_client: Option<u8>,
    /// Server's window scale; `None` where the SYN-ACK had no such option.
    pub wscale_server: Option<u8>,
    /// Both sides permit selective acknowledgements.
    pub sack: Option<bool>,
    /// Both sides send timestamps.
    pub timestamps: Option<bool>,
    /// Data travelled in the SYN.
    pub fast_open: bool,
    /// SYNs and SYN-ACKs sent again.
    pub syn_retransmits: u32,
}

/// Data packets that carried bytes sent before, by what made the sender send them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retransmits {
    /// All of them.
    pub total: u64,
    /// Because acknowledgements reported the loss (RFC 6675, RFC 8985).
    pub fast: u64,
    /// Because the retransmission timer ran out (RFC 6298).
    pub rto: u64,
    /// As a tail loss probe (RFC 8985 §7).
    pub tlp: u64,
    /// Which were not needed: the first copy had arrived. Each is in one of the next three, by the proof that came first.
    pub spurious: u64,
    /// The receiver reported them as received twice (RFC 2883, RFC 3708).
    pub spurious_dsack: u64,
    /// The acknowledgement echoed a time before them (Eifel detection, RFC 3522).
    pub spurious_eifel: u64,
    /// Without timestamps: the acknowledgement came sooner after them than any round trip. Likely, not certain.
    pub spurious_timing: u64,
    /// Acknowledgements that report something as received twice, be it sent again or duplicated on the path (RFC 2883).
    pub dsacks: u64,
}

/// A value at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Seconds since the connection's first packet.
    pub t: f64,
    /// The value, in the series' unit.
    pub v: f64,
}

/// What is drawn for one direction of one connection; each series is in order of time and thinned keeping its extremes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Bytes in flight.
    pub flight_bytes: Vec<Point>,
    /// The receiver's window, in bytes, scaled.
    pub receive_window_bytes: Vec<Point>,
    /// The sender's congestion window, in bytes: samples of it, or else the largest flight of each round trip, which is not above it.
    pub cwnd_bytes: Vec<Point>,
    /// Highest byte sent, counted from the first.
    pub sent_bytes: Vec<Point>,
    /// Highest byte acknowledged, counted from the first.
    pub acked_bytes: Vec<Point>,
    /// Rate of new payload, in bits per second.
    pub throughput_bps: Vec<Point>,
    /// Round-trip times, in milliseconds.
    pub rtt_ms: Vec<Point>,
    /// Retransmissions and zero windows.
    pub marks: Vec<LossMark>,
    /// Those of the other direction, where marks alone were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub other_marks: Vec<LossMark>,
}

/// Something that happened at one moment and is marked in the plots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossMark {
    /// Seconds since the connection's first packet.
    pub t: f64,
    /// Number of the packet in the file, from 1: of a retransmission that was not needed, the packet that shows it.
    #[serde(default)]
    pub packet: u64,
    /// The byte it is about, counted from the first.
    pub byte: u64,
    /// What happened.
    pub kind: MarkKind,
}

/// What a mark stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// A fast retransmission.
    Fast,
    /// A retransmission after a timeout.
    Rto,
    /// A tail loss probe.
    Tlp,
    /// A retransmission that was not needed.
    Spurious,
    /// The receiver closed its window.
    ZeroWindow,
}
