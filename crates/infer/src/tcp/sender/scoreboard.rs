//! The scoreboard: which segments are out, selectively acknowledged, sent again, or missing (RFC 6675 §3).

use super::send_space::ORIGIN;
use crate::event::SentSegment;
use crate::reset::{Reset, reset_keeping};
use crate::tcp::range_set::RangeSet;
use std::collections::VecDeque;

/// Segments whose departure is remembered for RTT samples; past it no new ones are, so memory stays bounded.
pub(super) const MAX_SEGMENTS: usize = 1 << 16;
/// Gaps whose time is remembered. Bounds memory.
const MAX_GAPS: usize = 1 << 10;

/// Segments out, and what acknowledgements tell of them.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    pub(super) segments: VecDeque<SentSegment>,
    pub(crate) sacked: RangeSet,
    pub(crate) resent: RangeSet,
    /// Below `nxt`, but never seen.
    pub(super) gaps: RangeSet,
    /// Where the latest gaps ended when they showed, and when, in order.
    gaps_shown: VecDeque<(u64, u64)>,
    /// Bytes that duplicates reported and that are not acknowledged yet, where nothing is acknowledged selectively.
    pub(super) duplicated: u64,
    pub(super) acked_end: u64,
    pub(crate) duplicates_in_row: u32,
    /// Largest payload of a segment that was acknowledged and sent once.
    pub(crate) largest_delivered: u64,
    /// Where the last packet that a timer sent began and ended, and whether one began there that was shorter than the one before.
    by_timer: Option<(u64, u64)>,
    pub(super) is_cut: bool,
    /// What arrives is acknowledged selectively, and the capture shows it.
    pub(crate) sack_permitted: bool,
    /// The capture holds too little of packets for what they acknowledge selectively.
    pub(crate) blocks_cut: bool,
    /// Blocks of selective acknowledgements.
    pub(crate) sack_blocks: u64,
    /// Packets that came after one that was sent later.
    pub(crate) out_of_order: u64,
    /// Times that packets were overtaken: those that come late one after the other were overtaken at once.
    pub(crate) overtakings: u64,
    /// Where the latest of them ended.
    late_end: u64,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            segments: VecDeque::new(),
            sacked: RangeSet::default(),
            resent: RangeSet::default(),
            gaps: RangeSet::default(),
            gaps_shown: VecDeque::new(),
            duplicated: 0,
            acked_end: ORIGIN,
            duplicates_in_row: 0,
            largest_delivered: 0,
            by_timer: None,
            is_cut: false,
            sack_permitted: false,
            blocks_cut: false,
            sack_blocks: 0,
            out_of_order: 0,
            overtakings: 0,
            late_end: 0,
        }
    }
}

impl Reset for Scoreboard {
    fn reset(&mut self) {
        reset_keeping!(self, segments, sacked, resent, gaps, gaps_shown);
    }
}

impl Scoreboard {
    /// The timer sends `[start, end)` again: shorter than before, where the sender takes the path for one that carries no longer packets
    /// (`tcp_mtu_probing`).
    pub(super) fn timer_sends(&mut self, start: u64, end: u64) {
        self.is_cut |= self.by_timer.replace((start, end)).is_some_and(|before| before.0 == start && end < before.1);
    }

    /// A packet of so many bytes was delivered. Once segments are cut, one that is longer than they were is merged of an unknown number.
    pub(super) fn delivered(&mut self, bytes: u64, segment: u64) {
        if !self.is_cut || bytes <= segment {
            self.largest_delivered = self.largest_delivered.max(bytes);
        }
    }

    /// What lies in `[start, end)` was sent before what comes now, and did not come.
    pub(super) fn gap(&mut self, start: u64, end: u64, now: u64) {
        self.gaps.insert(start, end);
        if self.gaps_shown.len() >= MAX_GAPS {
            self.gaps_shown.pop_front();
        }
        self.gaps_shown.push_back((end, now));
    }

    /// When the gap showed that a byte lies in; 0 where none did.
    pub(super) fn gap_shown_at(&self, byte: u64) -> u64 {
        let at = self.gaps_shown.partition_point(|(end, _)| *end <= byte);
        self.gaps_shown.get(at).map_or(0, |(_, shown)| *shown)
    }

    /// The segment `[start, end)` came after one that was sent later.
    pub(super) const fn came_late(&mut self, start: u64, end: u64) {
        self.out_of_order += 1;
        if start != self.late_end {
            self.overtakings += 1;
        }
        self.late_end = end;
    }

    /// Bytes that did not come, below others that did.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.gaps.total()
    }

    /// Whether a segment that ends in `(from, to]` and not after `point` was sent once and not acknowledged yet.
    ///
    /// Source: Linux `FLAG_ORIG_SACK_ACKED`; without SACK, data sent again beside it leaves doubt (`tcp_clean_rtx_queue`).
    pub(super) fn has_original(&self, from: u64, to: u64, point: u64) -> bool {
        let first = self.segments.partition_point(|candidate| candidate.end <= from);
        let mut within = self.segments.range(first..).take_while(|candidate| candidate.end <= to);
        let found = within.any(|c| !c.resent && c.end <= point && !self.sacked.overlaps(c.end - 1, c.end));
        found && (self.sack_permitted || !self.resent.overlaps(from, to))
    }
}
