//! Packets, and the segments of one that stay together.

use crate::counters::Tally;
use std::ops::Range;

/// An IP packet, or the wire segments that segmentation offload holds in one buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<T> {
    /// What the caller recognises it by. It is cloned where segments part, and dropped when none is left on the path.
    pub data: T,
    /// The lengths of its segments.
    pub lengths: Lengths,
    /// A hash of its connection, for disciplines that queue by flow.
    pub flow: u64,
    /// Whether it is marked where others are dropped: its ECN field is ECT(0), ECT(1) or CE. Source: RFC 3168 §5.
    pub ecn_capable: bool,
    /// Whether it is TCP; with payload, a segment of it counts for a list of losses of segments.
    pub is_tcp: bool,
}

/// The lengths of a packet's segments, in bytes from the IP header on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    headers: u32,
    payload: u32,
    payload_per_segment: u32,
}

impl Lengths {
    /// One segment with `headers` bytes of headers and `payload` bytes after them.
    pub const fn whole(headers: u32, payload: u32) -> Self {
        Self { headers, payload, payload_per_segment: payload }
    }

    /// As many segments as `payload` needs of `per_segment` bytes (`gso_size`), each with headers of its own.
    pub const fn segmented(headers: u32, payload: u32, per_segment: u32) -> Self {
        let payload_per_segment = if per_segment == 0 { payload } else { per_segment };
        Self { headers, payload, payload_per_segment }
    }

    /// Number of segments, at least 1.
    pub fn count(&self) -> u32 {
        if self.payload <= self.payload_per_segment { 1 } else { self.payload.div_ceil(self.payload_per_segment) }
    }

    /// Bytes of segment `index`, counted from 0.
    pub fn segment_bytes(&self, index: u32) -> u32 {
        let before = index.saturating_mul(self.payload_per_segment);
        self.headers + self.payload.saturating_sub(before).min(self.payload_per_segment)
    }

    /// Segment `index`, counted from 0, as a packet of its own.
    pub fn segment(&self, index: u32) -> Self {
        Self::whole(self.headers, self.segment_bytes(index) - self.headers)
    }

    /// Whether there is payload at all.
    pub(crate) const fn has_payload(&self) -> bool {
        self.payload > 0
    }
}

/// Consecutive segments of one packet that have met the same fate so far.
#[derive(Debug, Clone)]
pub(crate) struct Run<T> {
    pub(crate) packet: Packet<T>,
    /// The packet's number by order of arrival.
    pub(crate) number: u64,
    pub(crate) segments: Range<u32>,
    /// Whether a queue or a loss marked them Congestion Experienced.
    pub(crate) is_marked: bool,
    /// Which bit of the one segment is flipped, counted from the IP header's first.
    pub(crate) flipped_bit: Option<u32>,
}

impl<T> Run<T> {
    /// All of a packet.
    pub(crate) fn whole(packet: Packet<T>, number: u64) -> Self {
        let segments = 0..packet.lengths.count();
        Self { packet, number, segments, is_marked: false, flipped_bit: None }
    }

    /// Bytes of its first segment.
    pub(crate) fn first_bytes(&self) -> u32 {
        self.packet.lengths.segment_bytes(self.segments.start)
    }

    /// Number and bytes of its segments.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.segments.clone().for_each(|index| tally.count(self.packet.lengths.segment_bytes(index)));
        tally
    }

    /// Whether `next` are the segments that follow, with the same fate.
    pub(crate) fn is_continued_by(&self, next: &Self) -> bool {
        self.number == next.number
            && self.segments.end == next.segments.start
            && self.is_marked == next.is_marked
            && self.flipped_bit.is_none()
            && next.flipped_bit.is_none()
    }
}

impl<T: Clone> Run<T> {
    /// Its first segment alone, and the others.
    pub(crate) fn split_first(mut self) -> (Self, Option<Self>) {
        if self.segments.len() <= 1 {
            return (self, None);
        }
        let first = self.segments.start;
        let one = Self { segments: first..first + 1, ..self.clone() };
        self.segments.start += 1;
        (one, Some(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_have_the_lengths_of_wire_packets() {
        let lengths = Lengths::segmented(52, 3000, 1448);
        let each: Vec<u32> = (0..lengths.count()).map(|index| lengths.segment_bytes(index)).collect();
        assert_eq!(each, [1500, 1500, 156]);
        assert_eq!((Lengths::whole(52, 0).count(), Lengths::whole(52, 0).segment_bytes(0)), (1, 52));
        assert_eq!(Lengths::segmented(28, 1200, 0), Lengths::whole(28, 1200));
        assert_eq!(Lengths::segmented(52, 2896, 1448).count(), 2);
    }
}
