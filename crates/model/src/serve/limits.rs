//! What clients may take.

use serde::Deserialize;
use thalweg_units::{Bytes, Rate, Span};

/// What clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LimitsConfig {
    /// Viewers' connections at a time.
    pub connections: u32,
    /// From one address.
    pub per_address: u32,
    /// Viewers at a time. One that plays HLS is one until `hls.expiry` after its last request.
    pub viewers: u32,
    /// From one IPv4 address or IPv6 network of 64 bits.
    pub viewers_per_address: u32,
    /// Requests in a second on one connection.
    pub request_rate: u32,
    /// Streams at a time.
    pub streams: u32,
    /// What a publisher may send, over a few seconds.
    pub publish_bitrate: Option<Rate>,
    /// A publisher that sends nothing for this time is closed.
    pub publish_silence: Span,
    /// A stream ends when its publisher is away for this time.
    pub publish_return: Span,
    /// The longest that a publisher's video may be without a keyframe.
    pub gop: Span,
    /// The most bytes of video from one keyframe to the next.
    pub gop_bytes: Bytes,
    /// Bytes of a request's head.
    pub head: Bytes,
    /// Time for a whole head, and for a TLS handshake.
    pub head_time: Span,
    /// Time an idle connection is kept.
    pub keep_alive: Span,
    /// A response that does not move for this time is cut off.
    pub write_stall: Span,
    /// Time that responses on their way have when the server ends.
    pub drain: Span,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            connections: 100_000,
            per_address: 10_000,
            viewers: 200_000,
            viewers_per_address: 20_000,
            request_rate: 200,
            streams: 1_000,
            publish_bitrate: None,
            publish_silence: Span::from_millis(30_000),
            publish_return: Span::from_millis(15_000),
            gop: Span::from_millis(60_000),
            gop_bytes: Bytes::new(64 << 20),
            head: Bytes::new(8_192),
            head_time: Span::from_millis(10_000),
            keep_alive: Span::from_millis(60_000),
            write_stall: Span::from_millis(30_000),
            drain: Span::from_millis(5_000),
        }
    }
}
