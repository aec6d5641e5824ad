//! What a load of streams between two hosts met.

use crate::cause::Code;
use crate::diagnosis::Limits;
use crate::load::Percentiles;
use crate::watch::LimitNow;
use crate::way::Way;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// The document of `thalweg load stream --json`, and of each test of `thalweg load serve --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StreamLoadReport {
    /// `thalweg.load-stream/1`.
    pub schema: &'static str,
    /// `client` or `server`: whose view this is.
    #[schemars(extend("enum" = ["client", "server"]))]
    pub role: &'static str,
    /// The other end, as address and port of the control connection.
    pub peer: String,
    /// A name that the client gave the test.
    pub title: Option<String>,
    /// Any text that the client gave for the reports.
    pub extra_data: Option<String>,
    /// What was asked for.
    pub test: StreamTest,
    /// What each interval had, in order of time: of each direction, and of each stream where there are several.
    pub intervals: Vec<StreamInterval>,
    /// Each direction as a whole.
    pub sums: Vec<StreamTotal>,
    /// Each stream.
    pub streams: Vec<StreamTotal>,
    /// Time on a processor.
    pub cpu: StreamCpu,
    /// What could not be done as asked.
    pub notes: Vec<String>,
    /// Why it ended before its end; `None` if it did not.
    pub failure: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StreamTest {
    /// `tcp` or `udp`.
    #[schemars(extend("enum" = ["tcp", "udp"]))]
    pub transport: &'static str,
    /// The directions in which data flowed.
    #[schemars(length(min = 1, max = 2))]
    pub ways: Vec<Way>,
    /// Streams of each direction.
    #[schemars(range(min = 1, max = 128))]
    pub streams: u32,
    /// How long, in seconds, if that ends it.
    pub duration_s: Option<u64>,
    /// How many bytes of a direction, if that ends it.
    pub bytes: Option<u64>,
    /// Seconds at the start that count for nothing.
    pub omit_s: u64,
    /// Bytes of a block, of UDP of a datagram.
    pub length_bytes: u32,
    /// The most that each stream sends, in bits per second.
    pub rate_bps: Option<u64>,
    /// The socket buffers that were asked for, in bytes.
    pub window_bytes: Option<u64>,
    /// The largest segment that was asked for, in bytes.
    pub segment_bytes: Option<u32>,
    /// The congestion control of this end's streams; `None` with UDP.
    pub congestion: Option<String>,
    /// That of the other end's, if it says.
    pub peer_congestion: Option<String>,
}

/// What a stream, or all of a direction, had in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StreamInterval {
    /// From the start of the test, in seconds; those of `omit` have a start of their own.
    pub start_s: f64,
    /// Until then.
    pub end_s: f64,
    /// It belongs to the seconds that count for nothing.
    pub omitted: bool,
    /// The direction.
    pub way: Way,
    /// The stream; `None` for all of the direction.
    pub stream: Option<u32>,
    /// This end is the sender.
    pub sender: bool,
    /// Bytes: of TCP, those that the receiver acknowledged or read; of UDP, those that were sent or received.
    pub bytes: u64,
    /// The same in bits per second.
    pub rate_bps: f64,
    /// TCP at the sender.
    pub tcp: Option<TcpInterval>,
    /// UDP.
    pub udp: Option<UdpInterval>,
}

/// TCP at the sender, in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TcpInterval {
    /// Segments sent again.
    pub retransmits: u64,
    /// The congestion window at its end, in bytes; of several streams the sum.
    pub cwnd_bytes: u64,
    /// The smoothed round-trip time at its end, in milliseconds; of several streams the mean.
    pub rtt_ms: Option<f64>,
    /// What limited the sending most; of several streams by the sum of their shares.
    pub limit: Option<LimitNow>,
}

/// UDP in an interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct UdpInterval {
    /// Datagrams that were sent; at the receiver, those that should have come.
    pub packets: u64,
    /// At the receiver, those that did not come.
    pub lost: Option<u64>,
    /// At the receiver, jitter in milliseconds (RFC 3550); of several streams the mean.
    pub jitter_ms: Option<f64>,
}

/// A stream, or all of a direction, as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StreamTotal {
    /// The direction.
    pub way: Way,
    /// The stream; `None` for all of the direction.
    pub stream: Option<u32>,
    /// What the sender says; `None` if its results did not come.
    pub sent: Option<EndTotal>,
    /// What the receiver says; `None` if its results did not come.
    pub received: Option<EndTotal>,
    /// Segments that TCP sent again; `None` where the sender does not say.
    pub retransmits: Option<u64>,
    /// TCP at this end's sender.
    pub tcp: Option<TcpTotal>,
    /// UDP, as the receiver says.
    pub udp: Option<UdpTotal>,
}

/// What one end says of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct EndTotal {
    /// Bytes.
    pub bytes: u64,
    /// In this many seconds.
    pub duration_s: f64,
    /// The quotient, in bits per second.
    pub rate_bps: f64,
}

/// TCP at the sender, as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TcpTotal {
    /// The largest congestion window, in bytes; of several streams the largest of one.
    pub cwnd_max_bytes: u64,
    /// The smoothed round-trip time in milliseconds, sampled every 100 ms.
    pub rtt_ms: Option<Percentiles>,
    /// Where the time went; of several streams the mean.
    pub limits: Limits,
    /// What limited it; of several streams that of the first whose verdict costs most.
    pub verdict: Option<StreamVerdict>,
}

/// What limited a stream, as `diagnose` judges a socket.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StreamVerdict {
    /// The stream.
    pub stream: u32,
    /// The cause.
    pub code: Code,
    /// Its share of the time.
    #[schemars(range(max = 1))]
    pub share: f64,
    /// The sentence.
    pub claim: String,
}

/// UDP, as the receiver says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct UdpTotal {
    /// Datagrams that should have come: the largest number, of several streams the sum.
    pub packets: u64,
    /// Those that did not come.
    pub lost: u64,
    /// Those that came after a later one; `None` where the other end is the receiver, whose protocol does not say.
    pub out_of_order: Option<u64>,
    /// Jitter at the end in milliseconds (RFC 3550); of several streams the mean.
    pub jitter_ms: f64,
}

/// Time on a processor, of the threads of this test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct StreamCpu {
    /// This end's.
    pub local: CpuShare,
    /// The other end's; `None` if its results did not come.
    pub peer: Option<CpuShare>,
}

/// Time on a processor in percent of the test's duration: 200 are two processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct CpuShare {
    /// All.
    pub total_percent: f64,
    /// In the program.
    pub user_percent: f64,
    /// In the kernel.
    pub system_percent: f64,
}

/// The document of `thalweg load rr --json` and `thalweg load crr --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TransactionReport {
    /// `thalweg.load-transactions/1`.
    pub schema: &'static str,
    /// `rr`: many on a connection; `crr`: one on each.
    #[schemars(extend("enum" = ["rr", "crr"]))]
    pub kind: &'static str,
    /// The server's address and port.
    pub peer: String,
    /// Transactions at a time.
    #[schemars(range(min = 1))]
    pub streams: u32,
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
    /// How long, in seconds.
    pub duration_s: f64,
    /// Transactions that were complete.
    pub transactions: u64,
    /// The quotient.
    pub transactions_per_s: f64,
    /// From the first byte of a request, with `crr` from the SYN, until the response was whole, with `crr` until the connection was closed.
    pub latency_ms: Option<Percentiles>,
    /// From the SYN until the connection was there.
    pub connect_ms: Option<Percentiles>,
    /// This end's send buffer (`SO_SNDBUF`), of the last connection.
    pub send_buffer_bytes: u64,
    /// This end's receive buffer (`SO_RCVBUF`).
    pub receive_buffer_bytes: u64,
    /// What went wrong, and how often.
    #[schemars(with = "BTreeMap<String, NonZeroU64>")]
    pub failures: BTreeMap<String, u64>,
    /// Time on a processor, of this end.
    pub cpu: CpuShare,
}
