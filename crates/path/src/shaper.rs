//! How fast a bottleneck sends: at a rate, or at the opportunities of a trace.

use crate::policer::LINK_HEADER_BYTES;
use crate::token_bucket::TokenBucket;
use crate::trace::TraceReplay;
use thalweg_units::{Bytes, Rate, Span};

/// Two frames, or what the rate sends in this time, leave at once after a pause, as from the lab's token bucket.
const DEFAULT_BURST: Span = Span::from_micros(20);

/// What decides when the packet at the head of a queue has left.
#[derive(Debug, Clone)]
pub(crate) enum Shaper {
    Rate(TokenBucket),
    Trace(TraceReplay),
}

/// The bucket of a direction that gives none.
pub(crate) fn default_burst(rate: Rate, mtu: u16) -> Bytes {
    let frame = u64::from(mtu) + LINK_HEADER_BYTES;
    Bytes::new((2 * frame).max(rate.bdp(DEFAULT_BURST).get()))
}

impl Shaper {
    /// When an IP packet of `bytes` that begins to be sent at `now` has left; each takes `overhead` bytes on the link besides
    /// its Ethernet header.
    pub(crate) fn take(&mut self, now: Span, bytes: u32, overhead: u16) -> Span {
        match self {
            Self::Rate(bucket) => bucket.take(now, u64::from(bytes) + LINK_HEADER_BYTES + u64::from(overhead)),
            Self::Trace(replay) => replay.take(now, u64::from(bytes)),
        }
    }
}
