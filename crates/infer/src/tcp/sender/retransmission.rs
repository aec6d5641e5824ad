//! Data that is old, or must be: late, sent again, or sent again unseen; and why.

use super::Sender;
use super::ipid_inference::{Timed, timeouts_in};
use crate::event::RetransmitKind;
use crate::tcp::packet::Data;
use crate::tcp::receiver_view::remote_clock::TICK;
use crate::tcp::recovery::{Loss, RetransmitEvidence};
use thalweg_model::MarkKind;
use thalweg_units::SeqNum;

/// What is sent within this of an acknowledgement was set off by it: Linux sends in the softirq that handles it, in microseconds.
const CLOCKED: u64 = 300_000;

impl Sender {
    /// Whether all before `end` was sent already.
    pub(crate) fn has_sent(&self, end: SeqNum) -> bool {
        self.space.next_seq().is_some_and(|next| end.since(next) <= 0)
    }

    /// A packet of this sender came, with or without data.
    pub(crate) fn came(&mut self, now: u64, ip_id: Option<u16>, seq: SeqNum, has_data: bool) {
        self.ipid.gaps.came(ip_id);
        if !has_data {
            // Its number is what would be sent next: nothing new is among the missing.
            if self.has_sent(seq) {
                self.clocks.idle_at = Some(now);
                self.ipid.gaps.are_bare();
            }
            self.ipid.asked_again = None;
            self.ipid.is_asked = false;
            self.ipid.gaps.carry(self.losses.kind_now(), self.losses.episode.is_none());
        }
    }

    /// The receiver sent data once more, with this TSval.
    pub(crate) const fn asked_again(&mut self, tsval: Option<u32>) {
        self.ipid.is_asked = true;
        self.ipid.asked_again = tsval;
    }

    /// What comes twice is answered at once with a bare acknowledgement (Linux `tcp_data_queue`), which may be missing here. It did
    /// come twice where this `follows` what came and is sent sooner after it than what is lost could be sent again: that was sent before.
    pub(super) fn answered_again(&mut self, tsecr: Option<u32>, follows: bool) {
        let Some((asked, heard)) = self.ipid.asked_again.zip(tsecr) else { return };
        if heard.wrapping_sub(asked) as i32 >= 0 {
            self.ipid.asked_again = None;
            if follows && self.remote.timing.is_some_and(|then| (then.unheard as f64) < self.rtt.shortest_timeout()) {
                self.ipid.gaps.one_is_bare();
            }
        }
    }

    /// What comes now answers what the receiver sent at this time: it asked for more, or closed its side.
    pub(crate) fn answers(&mut self, asked_at: u64) {
        self.ipid.answers_at = asked_at.saturating_add(self.rtt.min.unwrap_or(0));
    }

    /// The receiver's program, which has all that came, asks for more and nothing it asked before is on its way: there was no more to
    /// send, so what was taken for new and lost was sent again. `first_at` is when, unless it was asked again.
    pub(crate) fn asked_for_more(&mut self, first_at: Option<u64>) {
        self.ipid.is_asked = true;
        if self.times_acks || self.scoreboard.gaps.total() > 0 {
            return;
        }
        if let Some(at) = first_at {
            self.answers(at);
        }
        let beyond = self.ipid.sent_to.saturating_sub(self.space.nxt).div_ceil(self.space.mss).max(self.ipid.tail);
        if beyond > 0 && self.totals.bytes > 0 {
            self.ipid.gaps.were_timers(beyond, self.scoreboard.sack_permitted);
            (self.ipid.tail, self.ipid.sent_to, self.ipid.opened_late) = (0, 0, None);
            self.losses.reaches_no_further_than(self.space.nxt);
        }
        self.ipid.gaps.add_up(false);
    }

    /// A packet below `nxt`: late, or sent again.
    pub(super) fn old_data(&mut self, data: &Data, start: u64, end: u64) {
        // Nobody sends again what was acknowledged: it left before that was heard.
        let resumed = !self.times_acks && self.losses.resume_before(end);
        self.sent_already(data, start, end);
        if resumed {
            self.losses.episode = None;
        }
    }

    fn sent_already(&mut self, data: &Data, start: u64, end: u64) {
        let (kind, waited) = (self.losses.kind_now(), data.now.saturating_sub(self.clocks.head_at) as f64);
        let (timeouts, before) = (self.losses.timeouts, self.losses.timer);
        let missing = self.scoreboard.gaps.pieces_below(self.space.nxt, self.space.mss);
        let below = self.scoreboard.gaps.pieces_below(start, self.space.mss);
        // What it was told of is sent again without a timer, and so is what follows a timeout; without SACK, once.
        let told = self.was_told(data.now, end);
        let spent = !self.scoreboard.sack_permitted && self.ipid.gaps.lost_again() > 0;
        let sent_before = if spent {
            0
        } else if told || kind == RetransmitKind::Timer {
            missing
        } else {
            // Without SACK it is an acknowledgement of a part that tells (RFC 6582 §3.2 step 3).
            let part = self.losses.episode.is_some_and(|episode| self.space.una < episode.point);
            missing.min(u64::from(self.scoreboard.sack_permitted || part))
        };
        let resent_to = self.ipid.resent_to;
        let before_it = self.losses.bounds();
        self.judge_old(data, start, end);
        if self.times_acks {
            return;
        }
        let gap = self.ipid.gaps.gap();
        let excess = if self.losses.timeouts > timeouts && self.losses.timer > before {
            let timeout = self.timeout();
            let timeouts = timeouts_in(waited, 0.0, timeout, self.rtt.least_timeout()) - 1;
            let fast = u64::from(told && kind == RetransmitKind::Fast && !spent);
            let timeouts = timeouts.min(gap.saturating_sub(fast));
            let excess = gap.saturating_sub(timeouts).saturating_sub(sent_before);
            self.ipid.gaps.by_timer_again(excess, timeouts, kind);
            self.ipid.sent_to = self.ipid.sent_to.max(1);
            excess
        } else {
            // What is sent again and lost is not sent again once more before something sent later is heard of, so each of the missing
            // below this one accounts for one packet.
            let mut below = below;
            if !self.scoreboard.sack_permitted && kind == RetransmitKind::Timer && resent_to > 0 && start > resent_to {
                // Without SACK all is sent again after a timeout, what came as well.
                below = below.max((start - resent_to).div_ceil(self.space.mss));
            }
            let excess = if self.scoreboard.out_of_order > 0 { 0 } else { gap.saturating_sub(below) };
            self.ipid.gaps.guess(excess, kind);
            excess
        };
        if excess > 0 && self.ipid.gaps.tells() {
            self.ipid.tail += excess;
            // What was lost since the episode began was sent since.
            if self.losses.bounds() != before_it {
                self.losses.reaches(self.space.nxt + self.ipid.tail * self.space.mss);
            }
        }
    }

    fn judge_old(&mut self, data: &Data, start: u64, end: u64) {
        if self.scoreboard.gaps.overlaps(start, end) {
            let new = self.scoreboard.gaps.remove(start, end);
            self.totals.bytes += new;
            let first = self.ipid.gaps.was_first(start).filter(|_| self.ipid.gaps.tells());
            let first = first.unwrap_or_else(|| self.is_reordered(data));
            self.ipid.gaps.came_late(first);
            if first {
                self.scoreboard.out_of_order += 1;
                self.note_late(data.now, start);
                self.observers.policer_log.arrived(start);
                return;
            }
            self.ipid.gaps.filled();
        } else if self.ipid.gaps.tells() && self.ipid.gaps.came_after_its_copy(start) {
            self.scoreboard.out_of_order += 1;
            self.note_late(data.now, start);
            return;
        } else {
            self.ipid.gaps.came_late(false);
        }
        self.retransmission(data, start, end, None);
    }

    /// Whether acknowledgements told the sender that what ends here was lost: three segments after it came (RFC 6675 §2), or fewer and
    /// the reordering window is over: a quarter of a round trip (RFC 8985 §6.2), and what Linux's timers take besides.
    fn was_told(&self, now: u64, end: u64) -> bool {
        if self.scoreboard.duplicates_in_row >= 3 {
            return true;
        }
        let waited = now.saturating_sub(self.clocks.last_heard) as f64;
        self.scoreboard.sacked.end().is_some_and(|top| top > end)
            && (self.scoreboard.sacked.pieces_below(u64::MAX, self.space.mss) >= 3
                || waited > self.rtt.smoothed / 4.0 + 12e6)
    }

    /// Whether a packet that fills a gap left before what overtook it.
    pub(super) fn is_reordered(&self, data: &Data) -> bool {
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
        data.now.saturating_sub(self.scoreboard.gap_at) < self.rtt.min.unwrap_or(u64::MAX).min(3_000_000)
    }

    /// Takes a retransmission of `[start, end)` in: why it was sent, and what follows from that.
    pub(super) fn retransmission(&mut self, data: &Data, start: u64, end: u64, timed: Option<Timed>) {
        let from = self.scoreboard.segments.partition_point(|candidate| candidate.end <= start);
        let evidence = self.evidence(data, start, end, from, timed);
        let kind = self.losses.kind(&evidence);
        self.note_probe(&evidence, kind);
        if start <= self.space.una {
            self.clocks.head_at = data.now;
        }
        self.clocks.last_again = data.now;
        self.space.fin_joined |= data.fin && data.len > 0;
        self.log_again(data, start, end);
        let repairing = self.losses.episode.is_some();
        let rtt_before = self.rtt.smoothed;
        let before_it = self.losses.bounds();
        let loss = Loss { at: data.now, number: data.number, kind, rtt_before, silence: 0, packets: 1 };
        self.losses.retransmitted(&evidence, loss, self.space.una, self.space.nxt);
        if kind == RetransmitKind::Timer && self.losses.timer_just_fired {
            self.ipid.resent_to = 0;
        }
        self.ipid.resent_to = self.ipid.resent_to.max(end);
        if self.losses.bounds() != before_it {
            self.losses.reaches(self.ipid.sent_to);
            if self.ipid.tail > 0 {
                self.losses.reaches(self.space.nxt + self.ipid.tail * self.space.mss);
            }
        }
        if !repairing && kind == RetransmitKind::Fast && self.times_acks {
            self.observers.rtt_before_loss.lost();
        }
        self.losses.watch(start, end, data.now, data.tsval.filter(|_| start <= self.space.una));
        if kind != RetransmitKind::Fast && self.losses.timer_just_fired {
            self.observers.time.timer_fired(u64::MAX);
        } else {
            self.observers.time.sent_again();
        }
        self.note_again((start, end), kind, !repairing && self.losses.episode.is_some());
        self.observers.slow_start.lost(data.now);
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
        self.observers.time.lossy(data.now);
        let mark = match kind {
            RetransmitKind::Fast => MarkKind::Fast,
            RetransmitKind::Timer => MarkKind::Rto,
            RetransmitKind::Probe => MarkKind::Tlp,
        };
        self.mark(data.now, start, mark);
    }

    /// What tells why `[start, end)` is sent again; `from` is where the first segment of it is among the candidates.
    fn evidence(&self, data: &Data, start: u64, end: u64, from: usize, timed: Option<Timed>) -> RetransmitEvidence {
        let timeouts = self.losses.timeouts as u32;
        let unseen = !self.times_acks && self.ipid.gaps.tells() && end <= self.ipid.resent_to;
        let again = unseen || self.scoreboard.segments.get(from).is_some_and(|c| c.resent && c.timeouts == timeouts);
        // Elsewhere it is known only about when an acknowledgement reaches the sender.
        let clocked = if self.times_acks { CLOCKED } else { self.rtt.smoothed as u64 / 8 };
        let mut evidence = RetransmitEvidence {
            segments: (end - start).div_ceil(self.space.mss.max(1)).max(1),
            silence: self.silence(data.now),
            waited: data.now.saturating_sub(self.clocks.head_at),
            age: match self.scoreboard.segments.get(from) {
                _ if !self.times_acks => 0,
                Some(candidate) if !candidate.resent => data.now.saturating_sub(candidate.sent),
                _ => data.now.saturating_sub(self.clocks.head_at),
            },
            told: self.clocks.told_at.map_or(0, |at| data.now.saturating_sub(at)),
            unheard: data.now.saturating_sub(self.clocks.last_heard),
            clocked: data.now.saturating_sub(self.clocks.last_heard) <= clocked,
            again,
            overtaken: self
                .scoreboard
                .segments
                .get(from)
                .is_none_or(|candidate| candidate.sent < self.clocks.last_again),
            first_again: !self.times_acks
                && self.ipid.gaps.tells()
                && self.ipid.gaps.gap() + self.ipid.gaps.lost_again() == 0
                && !self.scoreboard.resent.overlaps(start, end),
            lost_before: !self.times_acks
                && self.ipid.gaps.tells()
                && self.ipid.gaps.gap() > 0
                && self.was_told(data.now, end),
            sacked_above: self.scoreboard.sacked.end().is_some_and(|top| top > end),
            duplicates: self.scoreboard.duplicates_in_row,
            spent: !self.times_acks && !self.scoreboard.sack_permitted && self.ipid.gaps.lost_again() > 0,
            reordered: self.scoreboard.out_of_order > 0,
            is_first: start <= self.space.una,
            // What is missing before it was sent after it, or is an earlier copy, and only one probe is sent.
            is_last: end >= self.space.nxt && (self.times_acks || !self.ipid.gaps.tells() || self.ipid.gaps.gap() == 0),
            sack_permitted: self.scoreboard.sack_permitted,
            may_be_probe: self.may_be_probe(data.now, start <= self.space.una),
            shortest_timeout: self.rtt.shortest_timeout(),
            timeout: self.nearly_timeout(),
            rtt: self.rtt.usual(),
            tsval: data.tsval,
            kind: timed.map(|timed| timed.kind),
        };
        if let Some(then) = self.remote.timing {
            evidence.unheard = then.unheard;
            evidence.silence = then.unheard.min(then.quiet);
            // Both stamps are whole ticks.
            evidence.clocked = then.unheard <= 2 * TICK;
            // Where it was not seen before, it was sent before what came instead.
            if evidence.first_again
                && let Some(candidate) = self.scoreboard.segments.get(from).filter(|c| !c.resent || c.end > end)
            {
                evidence.age = data.now.saturating_sub(candidate.sent);
            }
        }
        evidence.silence = evidence.silence.min(timed.map_or(u64::MAX, |timed| timed.most));
        evidence
    }
}
