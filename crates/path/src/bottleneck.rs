//! The bottleneck: a queue, and a link that sends from it.

use crate::counters::Counters;
use crate::packet::Run;
use crate::queue::{Queue, queue_bytes};
use crate::shaper::Shaper;
use crate::token_bucket::TokenBucket;
use thalweg_units::{Bytes, Rate, Span};

/// A queue and the link behind it.
///
/// The link takes a segment from the queue once the one before it has left, as the kernel's token bucket does; the discipline
/// decides at that time.
#[derive(Debug)]
pub(crate) struct Bottleneck<T> {
    queue: Queue<T>,
    shaper: Shaper,
    overhead: u16,
    sending: Option<Sending<T>>,
    peak: (u32, u64),
}

/// The segment on the link.
#[derive(Debug)]
struct Sending<T> {
    segment: Run<T>,
    leaves: Span,
    /// The shaper before the segment was taken, for a change of the rate meanwhile.
    before: Option<TokenBucket>,
}

impl<T: Clone> Bottleneck<T> {
    pub(crate) const fn new(queue: Queue<T>, shaper: Shaper, overhead: u16) -> Self {
        Self { queue, shaper, overhead, sending: None, peak: (0, 0) }
    }

    /// Takes one segment in.
    pub(crate) fn enter(&mut self, now: Span, segment: Run<T>, counters: &mut Counters) {
        let sending = self.length_of_sending();
        self.queue.enqueue(now, segment, sending, counters);
        let (packets, bytes) = self.length();
        self.peak = (self.peak.0.max(packets), self.peak.1.max(bytes));
        if self.sending.is_none() {
            self.begin(now, counters);
        }
    }

    /// When the segment on the link leaves.
    pub(crate) fn next(&self) -> Option<Span> {
        self.sending.as_ref().map(|sending| sending.leaves)
    }

    /// Lets the segment on the link leave, with the time it does so.
    pub(crate) fn leave(&mut self, counters: &mut Counters) -> Option<(Span, Run<T>)> {
        let Sending { segment, leaves, .. } = self.sending.take()?;
        self.begin(leaves, counters);
        Some((leaves, segment))
    }

    /// Changes the rate at `now`, for what is on the link too.
    pub(crate) fn set_rate(&mut self, now: Span, rate: Rate, burst: Bytes) {
        let Shaper::Rate(bucket) = &mut self.shaper else { return };
        if let Some(Sending { segment, leaves, before: Some(before) }) = &mut self.sending {
            *bucket = *before;
            bucket.set_rate(now, rate, burst);
            *before = *bucket;
            *leaves = bucket.take(now, queue_bytes(segment.first_bytes()) + u64::from(self.overhead));
        } else {
            bucket.set_rate(now, rate, burst);
        }
    }

    /// Segments that wait or are being sent, and their bytes with Ethernet headers.
    pub(crate) fn length(&self) -> (u32, u64) {
        let (waiting, sending) = (self.queue.length(), self.length_of_sending());
        (waiting.0 + sending.0, waiting.1 + sending.1)
    }

    /// The most segments and the most bytes that ever waited, as [`Self::length`] counts them.
    pub(crate) const fn peak(&self) -> (u32, u64) {
        self.peak
    }

    fn length_of_sending(&self) -> (u32, u64) {
        self.sending.as_ref().map_or((0, 0), |sending| (1, queue_bytes(sending.segment.first_bytes())))
    }

    fn begin(&mut self, now: Span, counters: &mut Counters) {
        let Some(segment) = self.queue.dequeue(now, counters) else { return };
        let before = match &self.shaper {
            Shaper::Rate(bucket) => Some(*bucket),
            Shaper::Trace(_) => None,
        };
        let leaves = self.shaper.take(now, segment.first_bytes(), self.overhead);
        self.sending = Some(Sending { segment, leaves, before });
    }
}
