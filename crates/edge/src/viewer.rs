//! A viewer: who it is, what its workers count of it, and its record.

use crate::playout::Playout;
use serde::{Serialize, Serializer};
use std::net::{IpAddr, Ipv6Addr};
use thalweg_host::tcp_info::TcpInfo;

/// How a viewer plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HLS: a session over any number of connections.
    Hls,
    /// HTTP-FLV: one response.
    Flv,
}

impl Protocol {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hls => "hls",
            Self::Flv => "flv",
        }
    }
}

/// Why a viewer has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The viewer closed its connection, or it broke.
    Closed,
    /// The player asked for nothing.
    Silent,
    /// It took nothing of a live response.
    Stalled,
    /// The stream has ended.
    Over,
    /// An operator ended its session.
    Kicked,
    /// The server ends.
    Drained,
}

impl Left {
    /// All reasons there are.
    pub const ALL: [Self; 6] = [Self::Closed, Self::Silent, Self::Stalled, Self::Over, Self::Kicked, Self::Drained];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Silent => "silent",
            Self::Stalled => "stalled",
            Self::Over => "stream_ended",
            Self::Kicked => "kicked",
            Self::Drained => "drained",
        }
    }

    /// What is said of it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Closed => "the viewer closed the connection, or it broke",
            Self::Silent => "the player asked for nothing for longer than hls.expiry",
            Self::Stalled => "the viewer took nothing for longer than flv.stall",
            Self::Over => "the stream ended",
            Self::Kicked => "an operator ended the session",
            Self::Drained => "the server ends",
        }
    }

    /// Whether the server cuts off one who would play on.
    pub const fn is_cut_off(self) -> bool {
        matches!(self, Self::Stalled | Self::Kicked)
    }
}

/// Who a viewer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// `app/stream`.
    pub stream: Box<str>,
    /// How it plays.
    pub protocol: Protocol,
    /// Whether over TLS.
    pub is_tls: bool,
    /// Where from.
    pub address: IpAddr,
    /// Its `User-Agent`, cut to 200 bytes.
    pub agent: Box<str>,
    /// The token's subject.
    pub subject: Option<Box<str>>,
    /// When its session began, milliseconds since 1970.
    pub began_ms: u64,
}

/// A connection as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TcpFacts {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Segments retransmitted since the connection began.
    pub retransmits: u64,
    /// Bytes not sent yet.
    pub unsent_bytes: u64,
    /// Delivery rate, bytes per second.
    pub delivery_rate: u64,
}

impl TcpFacts {
    /// Of a connection's `tcp_info`.
    pub fn of(info: &TcpInfo) -> Self {
        Self {
            rtt_us: info.get("tcpi_rtt"),
            cwnd: info.get("tcpi_snd_cwnd"),
            retransmits: info.get("tcpi_total_retrans"),
            unsent_bytes: info.get("tcpi_notsent_bytes"),
            delivery_rate: info.get("tcpi_delivery_rate"),
        }
    }
}

/// What a worker counted of a viewer since it last reported.
#[derive(Debug, Clone)]
pub struct Update {
    /// The session's number.
    pub number: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Requests answered.
    pub requests: u64,
    /// Responses with media that were complete.
    pub segments: u64,
    /// Times a live viewer was moved to the newest keyframe, in all.
    pub skips: u32,
    /// By how much what a live viewer is sent is behind the newest, milliseconds.
    pub behind_ms: u64,
    /// When it last asked or took something, milliseconds since 1970.
    pub seen_ms: u64,
    /// When its first media was complete.
    pub first_media_ms: Option<u64>,
    /// The connection.
    pub tcp: Option<TcpFacts>,
    /// Why a live response ended, and the viewer has gone.
    pub left: Option<Left>,
}

impl Update {
    /// Nothing counted yet of a viewer that was last seen at `seen_ms`.
    pub const fn empty(number: u64, seen_ms: u64) -> Self {
        Self {
            number,
            bytes: 0,
            requests: 0,
            segments: 0,
            skips: 0,
            behind_ms: 0,
            seen_ms,
            first_media_ms: None,
            tcp: None,
            left: None,
        }
    }
}

/// A viewer's record, as in the API, the journal and `on_stop`.
#[derive(Debug, Clone, Serialize)]
pub struct Viewer {
    /// The session's number; in hexadecimal where it is shown.
    #[serde(serialize_with = "hexadecimal")]
    pub id: u64,
    /// `app/stream`.
    pub stream: Box<str>,
    /// How it plays.
    pub protocol: Protocol,
    /// Over TLS.
    pub tls: bool,
    /// Where from.
    pub address: IpAddr,
    /// Its `User-Agent`.
    pub agent: Box<str>,
    /// Of its token.
    pub subject: Option<Box<str>>,
    /// When it came, milliseconds since 1970.
    pub began_ms: u64,
    /// When it last asked or took something.
    pub seen_ms: u64,
    /// From its coming until its first media was complete, milliseconds.
    pub first_media_after_ms: Option<u64>,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Whole segments.
    pub segments: u64,
    /// Times it was moved to the newest keyframe.
    pub skips: u32,
    /// By how much what a live viewer is sent is behind the newest, milliseconds.
    pub behind_ms: u64,
    /// How its player fared, inferred from what it fetched and when.
    #[serde(flatten)]
    pub playout: Playout,
    /// Its connection when last sampled.
    pub tcp: Option<TcpFacts>,
    /// Why it has gone, once it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
}

impl Viewer {
    /// A viewer of which nothing was counted yet.
    pub fn new(number: u64, who: Who) -> Self {
        let Who { stream, protocol, is_tls, address, agent, subject, began_ms } = who;
        Self {
            id: number,
            stream,
            protocol,
            tls: is_tls,
            address,
            agent,
            subject,
            began_ms,
            seen_ms: began_ms,
            first_media_after_ms: None,
            bytes: 0,
            requests: 0,
            segments: 0,
            skips: 0,
            behind_ms: 0,
            playout: Playout::default(),
            tcp: None,
            why: None,
        }
    }

    /// Adds what a worker counted.
    pub fn add(&mut self, update: &Update) {
        self.seen_ms = self.seen_ms.max(update.seen_ms);
        self.bytes += update.bytes;
        self.requests += update.requests;
        self.segments += update.segments;
        self.skips = self.skips.max(update.skips);
        self.behind_ms = update.behind_ms;
        self.tcp = update.tcp.or(self.tcp);
        let first = update.first_media_ms.map(|at_ms| at_ms.saturating_sub(self.began_ms));
        self.first_media_after_ms = self.first_media_after_ms.or(first);
    }
}

fn hexadecimal<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:x}"))
}

/// The address that a client's share is counted under: an IPv4 address, or an IPv6 network of 64 bits, which a single host may have all
/// addresses of (RFC 4291 §2.5.4).
pub fn client_network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}
