//! What clients may take.

use super::{at_least, set, time};
use crate::document::{DocumentError, Section};
use thalweg_units::{Bytes, Rate, Span};

/// What clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl LimitsConfig {
    pub(super) fn read(&mut self, section: &Section<'_>) -> Result<(), DocumentError> {
        set(&mut self.connections, at_least(section, "connections", 1)?);
        set(&mut self.per_address, at_least(section, "per_address", 1)?);
        set(&mut self.viewers, at_least(section, "viewers", 1)?);
        set(&mut self.viewers_per_address, at_least(section, "viewers_per_address", 1)?);
        set(&mut self.request_rate, at_least(section, "request_rate", 1)?);
        set(&mut self.streams, at_least(section, "streams", 1)?);
        self.publish_bitrate = section.quantity("publish_bitrate")?;
        set(&mut self.publish_silence, time(section, "publish_silence")?);
        set(&mut self.publish_return, time(section, "publish_return")?);
        set(&mut self.gop, time(section, "gop")?);
        set(&mut self.gop_bytes, section.quantity("gop_bytes")?);
        set(&mut self.head, section.quantity("head")?);
        set(&mut self.head_time, time(section, "head_time")?);
        set(&mut self.keep_alive, time(section, "keep_alive")?);
        set(&mut self.write_stall, time(section, "write_stall")?);
        set(&mut self.drain, section.quantity("drain")?);
        section.finish()
    }
}
