//! What the sender sent and no tap beyond a loss sees, from the IPv4 identification.
//!
//! Linux numbers the packets of a connection one by one (`ip_select_ident_segs`: `inet_id`), so a number that never comes is a
//! packet that was lost on its way. Those that are no first transmissions of what is missing are lost retransmissions.

use crate::event::RetransmitKind;
use std::collections::VecDeque;

/// Numbers further apart than this are not of one sequence.
const MOST_MISSING: i16 = 4_096;
/// Lost packets, and holes in what came, that are kept one by one.
const MOST_KEPT: usize = 4_096;
/// Acknowledgements that are lost in a row at most, where nothing else is.
const MOST_BARE: u64 = 64;
/// Packets before the numbers are trusted.
const FEW: u64 = 2;

/// A packet that did not come.
#[derive(Debug, Clone, Copy)]
struct Missing {
    number: u64,
    /// What made the sender send it again; `None` for a first transmission.
    kind: Option<RetransmitKind>,
    /// What made it, if it is a first transmission only for want of a better answer.
    doubt: Option<RetransmitKind>,
}

/// Bytes that were overtaken.
#[derive(Debug, Clone, Copy)]
struct Hole {
    start: u64,
    end: u64,
    /// Number of the packet that came instead.
    overtaker: u64,
}

/// The numbers of one sender's packets.
#[derive(Debug, Default)]
pub(crate) struct IpIdGaps {
    newest: Option<u64>,
    packets: u64,
    /// Its SYN-ACK had the number 0, as Linux's have: the first that is not 0 is the first of a sequence.
    linux: bool,
    in_sequence: u64,
    missing: VecDeque<Missing>,
    holes: VecDeque<Hole>,
    /// Packets missing just before the current one, not judged yet.
    gap: u64,
    /// Packets missing before bare acknowledgements since the last data, taken for first transmissions.
    carried: u64,
    /// Numbers of the first missing before the packet that a timer had sent again, and of that; how many of the missing it stands
    /// for itself.
    timer: Option<(u64, u64, u64)>,
    /// Of the first packet: nothing is known of what was before it.
    oldest: Option<u64>,
    /// Packets that came whose first copies had not.
    filled: u64,
    /// Missing since data was acknowledged last, and taken for retransmissions.
    again: u64,
    /// The first data that came was the first sent, so the numbers tell of all.
    whole: bool,
    /// The newest number of a packet with data.
    newest_data: u64,
    /// Up to which number it was added up what was lost again, and what had been filled by then.
    added_up: (u64, u64),
    /// The current one's number.
    current: Option<u64>,
    /// What was believed of it while it was missing, where it is late.
    late: Option<Missing>,
}

impl IpIdGaps {
    /// The next packet has this identification.
    pub(crate) fn came(&mut self, id: Option<u16>) {
        (self.gap, self.current, self.late) = (0, None, None);
        self.linux |= id == Some(0) && self.newest.is_none();
        // Zero is no number but where a sequence goes around.
        let goes_around = || self.newest.is_some_and(|newest| (newest as u16).wrapping_neg() <= MOST_MISSING as u16);
        let Some(id) = id.filter(|&id| id != 0 || goes_around()) else { return };
        let Some(newest) = self.newest else {
            let number = (1 << 32) + u64::from(id);
            (self.newest, self.current, self.oldest) = (Some(number), Some(number), Some(number));
            return;
        };
        let step = id.wrapping_sub(newest as u16) as i16;
        let number = newest.wrapping_add_signed(i64::from(step));
        self.packets += 1;
        self.current = Some(number);
        if step > 0 {
            self.newest = Some(number);
            if step <= MOST_MISSING {
                self.in_sequence += 1;
                self.gap = step as u64 - 1;
            }
        } else if let Ok(at) = self.missing.binary_search_by_key(&number, |missing| missing.number) {
            self.in_sequence += 1;
            self.late = self.missing.remove(at);
        }
    }

    /// Whether the numbers tell anything: nine in ten follow one another, be it with gaps or late.
    pub(crate) const fn tells(&self) -> bool {
        self.packets >= if self.linux { 1 } else { FEW } && self.in_sequence * 10 >= self.packets * 9
    }

    /// How many were missing just before the current packet, since the last data.
    pub(crate) const fn gap(&self) -> u64 {
        self.gap + self.carried
    }

    /// None of the packets missing just before the current one carried anything new. So many are others'.
    pub(crate) const fn are_bare(&mut self) {
        if self.gap > MOST_BARE {
            self.are_others();
        }
    }

    /// The packets missing just before the current one are not this connection's: its sender numbers what it sends on all of them, as hosts
    /// other than Linux do.
    pub(crate) const fn are_others(&mut self) {
        if self.gap > 0 {
            self.in_sequence = self.in_sequence.saturating_sub(1);
        }
    }

    /// One of the packets missing just before the current one carried nothing.
    pub(crate) const fn one_is_bare(&mut self) {
        self.gap = self.gap.saturating_sub(1);
    }

    /// The current packet is a bare acknowledgement: what is lost before it may be anything, and the next data tells.
    pub(crate) fn carry(&mut self, kind: RetransmitKind, first: bool) {
        let gap = self.gap;
        self.push(if first { gap } else { 0 }, kind);
        if first {
            self.carried += gap;
        }
    }

    /// The current packet is the first of all that came.
    pub(crate) fn is_oldest(&self) -> bool {
        self.oldest.is_some() && self.oldest == self.current
    }

    /// The current packet overtook `[start, end)`.
    pub(crate) fn overtook(&mut self, start: u64, end: u64) {
        if let Some(overtaker) = self.current {
            if self.holes.len() >= MOST_KEPT {
                self.holes.pop_front();
            }
            self.holes.push_back(Hole { start, end, overtaker });
        }
    }

    /// Whether the current packet, which fills `[start, end)` or a part of it, was sent before what overtook it; `None` where that
    /// is not known.
    pub(crate) fn was_first(&self, start: u64) -> Option<bool> {
        let at = self.holes.partition_point(|hole| hole.end <= start);
        let hole = self.holes.get(at).filter(|hole| hole.start <= start)?;
        Some(self.current? < hole.overtaker)
    }

    /// All before `una` was acknowledged.
    pub(crate) fn acknowledged(&mut self, una: u64) {
        self.again = 0;
        while self.holes.front().is_some_and(|hole| hole.end <= una) {
            self.holes.pop_front();
        }
    }

    /// Of the packets missing just before the current one the first so many are first transmissions, the others of a kind. Where
    /// more are first transmissions than are missing here, some that were missing earlier are.
    pub(crate) fn judge(&mut self, first: u64, kind: RetransmitKind) {
        let Some(current) = self.current else { return };
        self.newest_data = self.newest_data.max(current);
        let (gap, carried) = (self.gap, std::mem::take(&mut self.carried));
        self.were_sent_again(carried.saturating_sub(first), kind);
        let here = first.saturating_sub(carried);
        self.push(here, kind);
        self.are_first(here.saturating_sub(gap));
    }

    /// The same where nothing shows those first transmissions yet.
    pub(crate) fn guess(&mut self, first: u64, kind: RetransmitKind) {
        let all = self.gap() as usize;
        self.judge(first, kind);
        let from = self.missing.len().saturating_sub(all);
        for missing in self.missing.range_mut(from..).filter(|missing| missing.kind.is_none()) {
            missing.doubt = Some(kind);
        }
    }

    /// All that was sent has come. So each number missing before the newest data is the first copy of what came again, or a copy that was
    /// lost as well, and how many were that is certain. Those taken for first transmissions for want of a better answer are the first
    /// to be counted in; timeouts, of which there may have been fewer, to be left out.
    pub(crate) fn add_up(&mut self, joined: bool) {
        let from = self.missing.partition_point(|missing| missing.number < self.added_up.0);
        let to = self.missing.partition_point(|missing| missing.number < self.newest_data);
        let filled = self.filled - self.added_up.1;
        self.added_up = (self.newest_data, self.filled);
        if !self.whole || self.missing.len() >= MOST_KEPT || from >= to {
            return;
        }
        let again = self.missing.range(from..to).filter(|missing| missing.kind.is_some()).count() as u64;
        let short = ((to - from) as u64).saturating_sub(filled + again) as usize;
        let surplus = (again + filled).saturating_sub((to - from) as u64) as usize;
        let is_doubtful = |kind: RetransmitKind| !joined || kind == RetransmitKind::Timer;
        let doubtful = |m: &&mut Missing| m.kind.is_none() && m.doubt.is_some_and(is_doubtful);
        let doubtful = self.missing.range_mut(from..to).rev().filter(doubtful);
        doubtful.take(short).for_each(|missing| missing.kind = missing.doubt);
        let timers = self.missing.range_mut(from..to).filter(|missing| missing.kind == Some(RetransmitKind::Timer));
        timers.take(surplus).for_each(|missing| missing.kind = None);
    }

    fn push(&mut self, first: u64, kind: RetransmitKind) {
        let Some(current) = self.current else { return };
        let gap = std::mem::take(&mut self.gap);
        self.again += gap.saturating_sub(first);
        for (n, number) in (current - gap..current).enumerate() {
            if self.missing.len() >= MOST_KEPT {
                self.missing.pop_front();
            }
            self.missing.push_back(Missing { number, kind: (n as u64 >= first).then_some(kind), doubt: None });
        }
    }

    /// A timer had the current packet sent again; the first so many of those missing before it are first transmissions, then come a
    /// probe, if there was one, and earlier timeouts.
    pub(crate) fn by_timer(&mut self, first: u64, probed: bool) {
        let all = self.gap();
        self.guess(first, RetransmitKind::Timer);
        let Some(current) = self.current else { return };
        // A late packet's number is below some of the missing: only those before it precede the timeout.
        let before = self.missing.partition_point(|missing| missing.number < current);
        let from = before.saturating_sub(all as usize);
        self.timer = Some((self.missing.get(from).map_or(current, |missing| missing.number.min(current)), current, 1));
        if probed && let Some(missing) = self.missing.range_mut(from..).find(|missing| missing.kind.is_some()) {
            missing.kind = Some(RetransmitKind::Probe);
        }
    }

    /// The same where the timer's packet fills a hole: of those missing before it the first are first transmissions, the newest
    /// earlier timeouts, the others of a kind.
    pub(crate) fn by_timer_again(&mut self, first: u64, timeouts: u64, kind: RetransmitKind) {
        let gap = self.gap;
        self.guess(first, kind);
        for missing in self.missing.iter_mut().rev().take((gap - first.min(gap)).min(timeouts) as usize) {
            missing.kind = Some(RetransmitKind::Timer);
        }
        self.timer = self.current.map(|current| (current - gap, current, 0));
    }

    /// New data tells how many of those missing before the timer's packet were first transmissions. There was data to send, so a
    /// probe was new data, too.
    pub(crate) fn revealed(&mut self, first: u64) {
        let Some((from, to, own)) = self.timer.take() else { return };
        let first = first + own;
        let from = self.missing.partition_point(|missing| missing.number < from);
        let to = self.missing.partition_point(|missing| missing.number < to);
        if own == 0 {
            // So many more than were known.
            let taken = self.missing.range_mut(from..to).filter(|missing| missing.kind.is_some());
            taken.take(first as usize).for_each(|missing| missing.kind = None);
            return;
        }
        for (n, missing) in self.missing.range_mut(from..to).enumerate() {
            missing.kind = (n as u64 >= first).then_some(RetransmitKind::Timer);
        }
    }

    /// Where all that was believed sent again before the timer's packet is a probe, it was a first transmission; gives whether it was so.
    pub(crate) fn probed_with_new(&mut self) -> bool {
        let Some((from, to, 1)) = self.timer else { return false };
        let within = |m: &&mut Missing| m.kind.is_some() && (from..to).contains(&m.number);
        let mut again = self.missing.iter_mut().filter(within);
        if let (Some(Missing { kind: kind @ Some(RetransmitKind::Probe), .. }), None) = (again.next(), again.next()) {
            *kind = None;
            return true;
        }
        false
    }

    /// The first of so many that are missing before the current packet was sent again for another reason.
    pub(crate) fn first_again(&mut self, gap: u64, kind: RetransmitKind) {
        let from = self.missing.len().saturating_sub(gap as usize);
        if let Some(first) = self.missing.range_mut(from..).next() {
            first.kind = Some(kind);
        }
    }

    /// So many that were taken for first transmissions, the newest, were sent again before the timer's packet: timeouts, and before them
    /// a probe where nothing was amiss, if none is known yet and the sender would have `probed`.
    pub(crate) fn were_timers(&mut self, count: u64, probed: bool) {
        let probed = self.timer.take().is_some_and(|(from, _, own)| {
            let known = self.missing.iter().any(|m| m.number >= from && m.kind == Some(RetransmitKind::Probe));
            probed && own == 1 && !known
        });
        let taken = self.missing.iter_mut().rev().filter(|missing| missing.kind.is_none()).take(count as usize);
        if let Some(oldest) = taken.map(|missing| missing.kind.insert(RetransmitKind::Timer)).last()
            && probed
        {
            *oldest = RetransmitKind::Probe;
        }
    }

    /// So many that were taken for retransmissions, the newest, were first transmissions.
    pub(crate) fn are_first(&mut self, count: u64) {
        for missing in self.missing.iter_mut().rev().filter(|missing| missing.kind.is_some()).take(count as usize) {
            missing.kind = None;
        }
    }

    /// So many that were taken for first transmissions, the newest, were retransmissions.
    pub(crate) fn were_sent_again(&mut self, count: u64, kind: RetransmitKind) {
        for missing in self.missing.iter_mut().rev().filter(|missing| missing.kind.is_none()).take(count as usize) {
            missing.kind = Some(kind);
        }
    }

    /// The current packet is late, and is or is not a first transmission: what was believed of it holds of another then.
    pub(crate) fn came_late(&mut self, first: bool) {
        if let Some(late) = self.late.take() {
            match (late.kind, first) {
                (Some(kind), true) => self.were_sent_again(1, kind),
                (None, false) => self.are_first(1),
                _ => {}
            }
        }
    }

    /// Whether the current packet, of which a copy came before it, is the first that was sent: it was overtaken by what was sent again.
    pub(crate) fn came_after_its_copy(&mut self, start: u64) -> bool {
        let is_first = self.late.is_some() && self.was_first(start) == Some(true);
        if is_first {
            self.came_late(true);
            self.filled = self.filled.saturating_sub(1);
            // It may be that it was added up already.
            self.added_up.1 = self.added_up.1.min(self.filled);
        }
        is_first
    }

    /// How many retransmissions were lost since data was acknowledged last.
    pub(crate) const fn lost_again(&self) -> u64 {
        self.again
    }

    /// The first data that came was, or was not, the first sent.
    pub(crate) const fn begins(&mut self, whole: bool) {
        self.whole = whole;
    }

    /// What came was sent before, and that was lost.
    pub(crate) const fn filled(&mut self) {
        self.filled += 1;
    }

    /// Lost retransmissions: fast, by the timer, probes.
    pub(crate) fn lost(&self) -> [u64; 3] {
        let mut lost = [0; 3];
        if self.tells() {
            for kind in self.missing.iter().filter_map(|missing| missing.kind) {
                lost[kind as usize] += 1;
            }
            // Each packet that came late stands for a first copy that is missing: no more than the rest was sent again. Holes are
            // counted in full segments until then, and short ones are more.
            if self.whole && self.missing.len() < MOST_KEPT {
                let most = (self.missing.len() as u64).saturating_sub(self.filled);
                let surplus = lost.iter().sum::<u64>().saturating_sub(most);
                // A probe is one only, and known by its time.
                let [fast, timer, probe] = &mut lost;
                if let Some(largest) = [probe, fast, timer].into_iter().max() {
                    *largest -= surplus.min(*largest);
                }
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that came, from the first data on.
    fn came(ids: &[u16]) -> IpIdGaps {
        let mut unseen = IpIdGaps::default();
        for &id in ids {
            unseen.came(Some(id));
            unseen.judge(0, RetransmitKind::Fast);
        }
        unseen.begins(true);
        unseen
    }

    #[test]
    fn zero_is_a_number_where_they_go_around() {
        let mut unseen = came(&[0xfffe, 0xffff, 0]);
        unseen.came(Some(1));
        assert_eq!(unseen.gap(), 0);
        let mut unseen = came(&[7, 8]);
        unseen.came(Some(0));
        assert_eq!(unseen.current, None);
    }

    #[test]
    fn what_was_lost_again_is_what_no_hole_accounts_for() {
        let mut unseen = came(&[1, 2]);
        // Three are lost, and a timer has the first sent again; how many of them it had sent is not known.
        unseen.came(Some(6));
        unseen.by_timer(3, false);
        unseen.filled();
        // The second comes, and it was the last.
        unseen.came(Some(7));
        unseen.judge(0, RetransmitKind::Timer);
        unseen.filled();
        assert_eq!(unseen.lost(), [0, 0, 0]);
        unseen.add_up(false);
        assert_eq!(unseen.lost(), [0, 1, 0]);
    }

    #[test]
    fn timeouts_that_cannot_have_been_are_left_out_before_a_probe() {
        let mut unseen = came(&[1, 2]);
        unseen.came(Some(6));
        unseen.by_timer(1, true);
        assert_eq!(unseen.lost(), [0, 1, 1]);
        unseen.filled();
        unseen.came(Some(7));
        unseen.judge(0, RetransmitKind::Timer);
        unseen.filled();
        unseen.add_up(false);
        assert_eq!(unseen.lost(), [0, 0, 1]);
    }

    #[test]
    fn a_timeout_whose_packet_is_late_covers_only_numbers_before_it() {
        let mut unseen = came(&[1, 2]);
        unseen.came(Some(4));
        unseen.judge(1, RetransmitKind::Fast);
        // Three are missing before an acknowledgement without data; number 3 is sent by a timer and comes only now.
        unseen.came(Some(8));
        unseen.carry(RetransmitKind::Fast, true);
        unseen.came(Some(3));
        unseen.by_timer(3, true);
        unseen.revealed(1);
        assert_eq!(unseen.lost(), [0, 0, 0]);
    }

    /// Packet 4 overtook 3, and 5 is a copy of that.
    fn overtaken() -> IpIdGaps {
        let mut unseen = came(&[1, 2]);
        unseen.came(Some(4));
        unseen.judge(1, RetransmitKind::Fast);
        unseen.overtook(100, 200);
        unseen.came(Some(5));
        assert_eq!(unseen.was_first(100), Some(false));
        unseen.judge(0, RetransmitKind::Fast);
        unseen.filled();
        unseen
    }

    #[test]
    fn a_first_copy_may_come_after_what_was_sent_again() {
        let mut unseen = overtaken();
        unseen.came(Some(3));
        assert!(unseen.came_after_its_copy(100));
        assert_eq!((unseen.filled, unseen.lost()), (0, [0, 0, 0]));
        // The network's own copy of it.
        unseen.came(Some(3));
        assert!(!unseen.came_after_its_copy(100));
    }

    #[test]
    fn a_first_copy_may_come_after_all_was_added_up() {
        // Two more are lost. What came since was a copy of neither, for a timer had sent them; or of one.
        for (filled, lost) in [(0, 2), (1, 1)] {
            let mut unseen = overtaken();
            unseen.add_up(false);
            unseen.came(Some(3));
            assert!(unseen.came_after_its_copy(100));
            unseen.came(Some(8));
            unseen.guess(2, RetransmitKind::Timer);
            (0..filled).for_each(|_| unseen.filled());
            unseen.add_up(false);
            assert_eq!(unseen.lost(), [0, lost, 0]);
        }
    }
}
