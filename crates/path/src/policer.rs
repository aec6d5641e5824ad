//! A policer: what exceeds its rate is dropped, nothing waits.

use crate::token_bucket::TokenBucket;
use thalweg_units::Span;

/// Ethernet header, which disciplines and policers count on top of an IP packet.
pub(crate) const LINK_HEADER_BYTES: u64 = 14;

/// A token bucket in which packets cannot wait. Source: net/sched/act_police.c.
#[derive(Debug)]
pub(crate) struct Policer {
    bucket: TokenBucket,
}

impl Policer {
    pub(crate) fn new(asked: &thalweg_model::Policer) -> Self {
        Self { bucket: TokenBucket::new(asked.rate, asked.burst) }
    }

    /// Whether an IP packet of `bytes` passes at `now`.
    pub(crate) fn passes(&mut self, now: Span, bytes: u32) -> bool {
        self.bucket.take_at_once(now, u64::from(bytes) + LINK_HEADER_BYTES)
    }
}
