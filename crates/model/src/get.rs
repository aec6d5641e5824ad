//! What a download met.

use schemars::JsonSchema;
use serde::Serialize;

/// The document of `thalweg get --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GetReport {
    /// `thalweg.get/1`.
    pub schema: &'static str,
    /// What was asked for, without credentials and query: these may be secrets.
    pub url: String,
    /// Where redirects led, without credentials and query; `None` if there were none.
    pub final_url: Option<String>,
    /// Where it was stored; `None` for standard output.
    pub file: Option<String>,
    /// Bytes of the object.
    pub bytes: u64,
    /// Of these, those that an earlier, interrupted download had stored.
    pub resumed_bytes: u64,
    /// Wall time, from the first connect until the data was stored, in seconds.
    pub wall_s: f64,
    /// Payload bits per second, from the first connect on.
    pub goodput_bps: f64,
    /// The same after the first second; `None` if it took less than two.
    pub goodput_steady_bps: Option<f64>,
    /// `HTTP/1.1` or `HTTP/2`.
    #[schemars(extend("enum" = ["HTTP/1.1", "HTTP/2"]))]
    pub protocol: &'static str,
    /// The connections were to a proxy, and the round-trip time is that to it.
    pub proxy: bool,
    /// The ranges.
    pub ranges: GetRanges,
    /// What one connection had.
    pub connection: GetConnection,
    /// What limited the download, by time; the largest share first.
    pub limits: Vec<GetLimitShare>,
    /// Requests that failed and were repeated.
    pub retries: u32,
    /// How often the object was fetched from the beginning because it had changed.
    pub restarts: u32,
    /// The checksum that was compared; `None` if none was known.
    pub checksum: Option<GetChecksum>,
}

/// How many ranges a download had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GetRanges {
    /// Most at a time.
    pub most: u64,
    /// At the end.
    pub last: u64,
    /// Those that the receive window needs for the path, by arithmetic; `None` if the rate of the path was not reached.
    pub needed: Option<u64>,
    /// The server sends ranges of a version that can be identified.
    pub possible: bool,
}

/// What one connection of a download had.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct GetConnection {
    /// Least round-trip time, in milliseconds.
    pub min_rtt_ms: f64,
    /// Largest receive window, in bytes; 0 if the kernel does not say.
    pub window_bytes: u64,
    /// What that window allows over that round trip, in bits per second.
    pub window_allows_bps: f64,
    /// Segments that arrived out of order, of all connections.
    pub out_of_order_segments: u64,
}

/// What limits a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GetLimit {
    /// Connections, requests and slow start.
    StartUp,
    /// Every connection had its receive window full.
    ReceiveWindow,
    /// The path had a queue, or lost segments.
    Path,
    /// Neither window nor path: the sender's own window or buffer.
    Sender,
    /// The server's program paused.
    Server,
    /// This host's program was busy and did not wait for the network.
    Host,
    /// The same, and writing took most of its time.
    Disk,
    /// `--limit-rate`.
    RateLimit,
}

impl GetLimit {
    /// Every limit.
    pub const ALL: [Self; 8] = [
        Self::StartUp,
        Self::ReceiveWindow,
        Self::Path,
        Self::Sender,
        Self::Server,
        Self::Host,
        Self::Disk,
        Self::RateLimit,
    ];

    /// Its name, as in the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StartUp => "start-up",
            Self::ReceiveWindow => "receive-window",
            Self::Path => "path",
            Self::Sender => "sender",
            Self::Server => "server",
            Self::Host => "host",
            Self::Disk => "disk",
            Self::RateLimit => "rate-limit",
        }
    }
}

/// A part of a download's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct GetLimitShare {
    /// What limited.
    pub limit: GetLimit,
    /// For which share of the time that was measured.
    #[schemars(range(max = 1))]
    pub share: f64,
}

/// A checksum that held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GetChecksum {
    /// As `sha256:HEX`.
    pub value: String,
    /// `user` or `server`.
    #[schemars(extend("enum" = ["user", "server"]))]
    pub by: &'static str,
}
