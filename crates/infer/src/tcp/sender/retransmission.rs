//! Data that is old, or must be: late, sent again, or sent again unseen; and why.

use super::Sender;
use super::clocks::Silence;
use crate::event::{Event, Resent, RetransmitKind};
use crate::tcp::packet::Data;
use crate::tcp::receiver_view::remote_clock::TICK;
use crate::tcp::recovery::{Loss, RetransmitEvidence};
use thalweg_units::SeqNum;

/// What is sent within this of an acknowledgement was set off by it: Linux sends in the softirq that handles it, in microseconds.
const MAX_ACK_CLOCK_NS: u64 = 300_000;

/// Linux `TCP_TIMEOUT_MIN`: two jiffies, at 250 Hz less one that has begun.
const MIN_PROBE_TIMEOUT: f64 = 5e6;

/// Data that is new here was sent before, and that was lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstCopyLost {
    pub(super) kind: RetransmitKind,
    /// For how long at most the sender waited for its timer, in nanoseconds.
    pub(super) longest: u64,
    /// Timeouts in the silence: all but the last had the first segment sent again in vain.
    pub(super) timeouts: u64,
    /// Where the flight that was lost ends, if each of the other missing packets was a full segment of it.
    pub(super) flight_end: u64,
}

impl Sender {
    /// Whether all before `end` was sent already.
    pub(crate) fn has_sent(&self, end: SeqNum) -> bool {
        self.space.next_seq().is_some_and(|next| end.since(next) <= 0)
    }

    /// A packet without data came: where its number is what would be sent next, nothing new is on its way, and none of the packets that are
    /// missing before it had data.
    pub(crate) fn came_without_data(&mut self, now: u64, seq: SeqNum) {
        if self.has_sent(seq) {
            self.clocks.idle_at = Some(now);
            self.remote.ip_ids.had_no_data();
        }
    }

    /// Whether data that is new here was sent again: the numbers of IPv4 tell that its first copy never came, after a silence that a probe or
    /// a timer ended.
    pub(super) fn first_copy_lost(&mut self, data: &Data, start: u64) -> Option<FirstCopyLost> {
        // Where segments are smaller than the SYNs let them be, more of them fill it.
        let segment = self.space.mss.min(u64::from(self.space.largest_payload)).max(1);
        let hole = start.saturating_sub(self.space.nxt).div_ceil(segment);
        let missing = self.remote.ip_ids.missing();
        if self.is_exact() || self.is_repairing() || missing <= hole {
            return None;
        }
        let silence = self.silence(data.now) as f64;
        // No timer runs out before an acknowledgement could have come.
        if silence < self.rtt.min.map_or(self.rtt.shortest_timeout(), |min| min as f64).max(MIN_PROBE_TIMEOUT) {
            self.remote.ip_ids.are_others();
            return None;
        }
        let timeout = self.timeout();
        // Each timeout is twice as long as the one before (RFC 6298 §5.5).
        let longest = ((1u64 << missing.min(16)) - 1).saturating_mul(timeout as u64);
        if self.scoreboard.sack_permitted && !self.losses.is_probing() && missing == hole + 1 {
            return Some(FirstCopyLost { kind: RetransmitKind::Probe, longest, timeouts: 1, flight_end: 0 });
        }
        let timeouts = ((silence / timeout + 1.0).log2().round() as u64).clamp(1, missing - hole);
        let flight_end = start + (missing - hole + 1 - timeouts) * self.space.mss;
        Some(FirstCopyLost { kind: RetransmitKind::Timer, longest, timeouts, flight_end })
    }

    /// New data ends a silence: where its sender heard nothing for as long as a timer waits, that may have been a timeout, of which nothing but
    /// the identification would tell at once.
    pub(super) fn note_silence(&mut self, start: u64, end: u64) {
        self.clocks.silence = None;
        let Some(then) = self.remote.timing else { return };
        let waited = then.unheard.min(then.quiet) as f64;
        if !self.is_exact() && start == self.space.nxt && !self.is_repairing() && waited >= self.nearly_timeout() {
            self.clocks.silence = Some(Silence { since: self.clocks.last_send, start, end, longest: then.quiet });
        }
    }

    /// What is missing from `nxt` on was lost before the silence that ended with the packet before, which a timer sent: the sender that its
    /// acknowledgement lets go on sends what it has not sent yet (RFC 5682 §2.1, step 2.b), and of a flight of its program's nothing is missing at
    /// the beginning.
    pub(super) fn note_timeout(&mut self, data: &Data) {
        let silence = self.clocks.silence.take().filter(|silence| silence.end == self.space.nxt);
        let (Some(silence), Some(then)) = (silence, self.remote.timing) else { return };
        let least = self.rtt.min.unwrap_or(u64::MAX).saturating_sub(2 * TICK);
        if then.unheard > 2 * TICK || then.quiet < least {
            return;
        }
        self.clocks.before_timeout = silence.since;
        self.observers.event(&Event::WasTimeout { longest: silence.longest });
        self.retransmission(data, silence.start, silence.end, Some(RetransmitKind::Timer));
    }

    /// A packet below `nxt`: late, or sent again.
    pub(super) fn old_data(&mut self, data: &Data, start: u64, end: u64) {
        // A sender never retransmits acknowledged data: this left before it heard that acknowledgement.
        let resumed = !self.is_exact() && self.losses.resume_before(end);
        let new = self.scoreboard.gaps.remove(start, end);
        self.totals.bytes += new;
        if new > 0 && self.is_reordered(data, start) {
            self.scoreboard.came_late(start, end);
            // It had been sent before what overtook it.
            let late = data.now.saturating_sub(self.scoreboard.gap_shown_at(start));
            let bytes = self.space.nxt.saturating_sub(start);
            self.observers.event(&Event::Overtaken { bytes, late: Some((start, late)) });
        } else {
            self.note_refused(data, start, end, new);
            self.retransmission(data, start, end, None);
        }
        if resumed {
            self.losses.episode = None;
        }
    }

    /// Whether a packet that fills a gap left before what overtook it.
    pub(super) fn is_reordered(&self, data: &Data, start: u64) -> bool {
        if let (Some(tsval), Some(newest)) = (data.tsval, self.space.newest_tsval)
            && tsval != newest
        {
            return (tsval.wrapping_sub(newest) as i32) < 0;
        }
        if let (Some(id), Some(newest)) = (data.ip_id, self.space.newest_ip_id)
            && id != 0
            && newest != 0
        {
            return (id.wrapping_sub(newest) as i16) < 0;
        }
        // Wireshark's 3 ms, and no retransmission comes sooner than a round trip.
        data.now.saturating_sub(self.scoreboard.gap_shown_at(start)) < self.rtt.min.unwrap_or(u64::MAX).min(3_000_000)
    }

    /// Takes a retransmission of `[start, end)` in: why it was sent, and what follows from that.
    pub(super) fn retransmission(&mut self, data: &Data, start: u64, end: u64, known: Option<RetransmitKind>) {
        let from = self.scoreboard.segments.partition_point(|candidate| candidate.end <= start);
        let evidence = self.evidence(data, start, end, from, known);
        self.losses.resume_needless(end, evidence.again);
        let kind = self.losses.kind(&evidence);
        self.note_probe(&evidence, kind);
        if start <= self.space.una {
            self.clocks.head_at = data.now;
        }
        self.clocks.last_again = data.now;
        let repairing = self.losses.episode.is_some();
        let rtt_before = self.rtt.smoothed;
        let loss = Loss { at: data.now, number: data.number, kind, rtt_before, silence: 0, packets: 1 };
        self.losses.retransmitted(&evidence, loss, self.space.una, self.space.nxt);
        if self.losses.timer_just_fired {
            self.scoreboard.timer_sends(start, end);
        }
        self.losses.watch(start, end, data.now, data.tsval.filter(|_| start <= self.space.una));
        self.observers.event(&Event::Resent(Resent {
            now: data.now,
            number: data.number,
            start,
            end,
            first: self.space.first,
            una: self.space.una,
            next: self.space.nxt,
            mss: self.space.mss,
            rtt: rtt_before as u64,
            kind,
            by_timer: self.losses.timer_just_fired,
            begins_recovery: !repairing && self.losses.episode.is_some(),
            is_tail: self.scoreboard.sacked.end().is_none_or(|top| top <= end),
            is_new_here: known.is_some(),
            out: &self.scoreboard.segments,
        }));
        self.scoreboard.resent.insert(start.max(self.space.una), end.max(self.space.una));
        let timeouts = self.losses.timeouts as u32;
        let mut begin =
            from.checked_sub(1).map_or(self.scoreboard.acked_end, |before| self.scoreboard.segments[before].end);
        for candidate in self.scoreboard.segments.range_mut(from..) {
            if begin >= end {
                break;
            }
            candidate.parted |= begin < start || candidate.end > end;
            if candidate.end <= end {
                candidate.resent = true;
                candidate.timeouts = timeouts;
            }
            begin = candidate.end;
        }
    }

    /// What tells why `[start, end)` is sent again; `from` is where the first segment of it is among the candidates.
    fn evidence(
        &self,
        data: &Data,
        start: u64,
        end: u64,
        from: usize,
        kind: Option<RetransmitKind>,
    ) -> RetransmitEvidence {
        let timeouts = self.losses.timeouts as u32;
        let again = self.scoreboard.segments.get(from).is_some_and(|c| c.resent && c.timeouts == timeouts);
        let (clocked, age) = if self.is_exact() {
            let sent = self.scoreboard.segments.get(from).filter(|candidate| !candidate.resent).map(|one| one.sent);
            (MAX_ACK_CLOCK_NS, data.now.saturating_sub(sent.unwrap_or(self.clocks.head_at)))
        } else {
            // It is known only about when an acknowledgement reaches the sender, and not when the segment left.
            (self.rtt.smoothed as u64 / 8, 0)
        };
        let mut evidence = RetransmitEvidence {
            segments: (end - start).div_ceil(self.space.mss.max(1)).max(1),
            silence: self.silence(data.now),
            waited: data.now.saturating_sub(self.clocks.head_at),
            age,
            told: self.clocks.told_at.map_or(0, |at| data.now.saturating_sub(at)),
            unheard: data.now.saturating_sub(self.clocks.last_heard),
            clocked: data.now.saturating_sub(self.clocks.last_heard) <= clocked,
            again,
            overtaken: self
                .scoreboard
                .segments
                .get(from)
                .is_none_or(|candidate| candidate.sent < self.clocks.last_again),
            sacked_above: self.scoreboard.sacked.end().is_some_and(|top| top > end),
            duplicates: self.scoreboard.duplicates_in_row,
            is_first: start <= self.space.una,
            is_last: end >= self.space.nxt,
            sack_permitted: self.scoreboard.sack_permitted,
            may_be_probe: self.may_be_probe(data.now, start <= self.space.una),
            shortest_timeout: self.rtt.shortest_timeout(),
            timeout: self.nearly_timeout(),
            rtt: self.rtt.usual(),
            tsval: data.tsval,
            kind,
        };
        if let Some(then) = self.remote.timing {
            evidence.unheard = then.unheard;
            evidence.silence = then.unheard.min(then.quiet);
            // Both stamps are whole ticks.
            evidence.clocked = then.unheard <= 2 * TICK;
        }
        evidence
    }
}
