//! What never came, before data that is new here: its own first copy, others', or retransmissions.
//!
//! At the receiver, where the numbers of IPv4 tell of packets that were lost on their way ([`crate::tcp::receiver_view::ipid_gaps`]).

use super::Sender;
use crate::event::RetransmitKind;
use crate::tcp::packet::Data;
use crate::tcp::receiver_view::ipid_gaps::IpIdGaps;
use crate::tcp::receiver_view::remote_clock::SendTiming;
use crate::tcp::recovery::{JIFFIES, Loss};
use std::ops::ControlFlow::{self, Break, Continue};

/// The first timeout of a sender that goes by RFC 6298 §2.4, which Linux and others undercut.
const LONGEST_FIRST: f64 = 1e9;

/// What had new data sent again, and for how many nanoseconds at most the sender waited for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    pub(super) kind: RetransmitKind,
    pub(super) most: u64,
}

impl From<RetransmitKind> for Timed {
    fn from(kind: RetransmitKind) -> Self {
        Self { kind, most: u64::MAX }
    }
}

/// What the identification of IPv4 tells of lost packets, and what is concluded from it.
#[derive(Debug, Default)]
pub(super) struct IpIdInference {
    pub(super) gaps: IpIdGaps,
    /// TSval of what its receiver's program asked once more, until it is answered.
    pub(super) asked_again: Option<u32>,
    /// Its receiver sent data since a packet came from it, so the next may be a bare acknowledgement.
    pub(super) is_asked: bool,
    /// When an answer to what it was asked last can come first: it had sent all before.
    pub(super) answers_at: u64,
    /// What was sent up to here is not all below `nxt`: some of it no tap saw.
    pub(super) sent_to: u64,
    /// Segments after `nxt` that were lost, as what no retransmission can have been tells.
    pub(super) tail: u64,
    /// Since the last timeout everything missing up to here was sent again.
    pub(super) resent_to: u64,
    /// How long the first data was in coming, where nothing tells that there was none before it; nanoseconds.
    pub(super) opened_late: Option<u64>,
}

/// What is missing just before new data, in packets.
struct Before {
    /// By the sequence numbers.
    hole: u64,
    /// By the packets' own numbers.
    gap: u64,
    /// Of the hole, what was taken for new, and lost, when it went missing.
    known: u64,
}

/// Answered: what made the sender send the data again, if it did. Or for the next to answer.
type Answer = ControlFlow<Option<Timed>>;

impl Sender {
    /// Judges what the numbers say is missing before new data; gives what made the sender send that data again, where it must have
    /// been sent before.
    pub(super) fn unseen_before(&mut self, data: &Data, start: u64) -> Option<Timed> {
        if self.times_acks {
            return None;
        }
        let hole = start.saturating_sub(self.space.nxt).div_ceil(self.space.mss);
        let mut before = Before { hole, gap: self.ipid.gaps.gap(), known: 0 };
        match self.missing_before(data, start, &mut before) {
            Break(timed) => timed,
            Continue(()) => None,
        }
    }

    fn missing_before(&mut self, data: &Data, start: u64, before: &mut Before) -> Answer {
        self.in_the_tail(data, start, before)?;
        self.in_the_timeouts_flight(data, start, before)?;
        self.in_the_first_flight(data, start, before)?;
        // What carries nothing answers data, or is no more than what comes next.
        let then = self.remote.timing.filter(|_| !self.ipid.is_asked && self.scoreboard.out_of_order == 0);
        let silence = self.silence_before(data, then);
        self.while_repairing(silence, before)?;
        self.out_of_silence(data, start, silence, then.is_some(), before)
    }

    /// Where new data was found lost already: this is the first of it that comes, and so was sent again, or what follows it.
    fn in_the_tail(&mut self, data: &Data, start: u64, before: &mut Before) -> Answer {
        if self.ipid.tail == 0 {
            return Continue(());
        }
        before.known = self.ipid.tail.min(before.hole);
        self.ipid.tail -= before.known;
        if before.hole == 0 {
            return Break(Some(self.first_of_the_tail(data, start, before.gap).into()));
        }
        if self.ipid.tail > 0 && before.gap < before.hole {
            // Retransmissions go from the lowest up, and those before this one would be missing too: it is new, and so less was
            // new of what was missing before the timer's.
            self.ipid.gaps.were_sent_again(std::mem::take(&mut self.ipid.tail), RetransmitKind::Timer);
            self.losses.reaches_no_further_than(start);
        }
        before.hole -= before.known;
        Continue(())
    }

    /// What made the sender send again what was lost behind all that came.
    fn first_of_the_tail(&mut self, data: &Data, start: u64, gap: u64) -> RetransmitKind {
        self.ipid.tail -= 1;
        if self.ipid.tail == 0 {
            self.losses.reaches_no_further_than(start + u64::from(data.len));
        }
        let silence = self.silence(data.now) as f64;
        let timer = silence >= self.nearly_timeout();
        let now = self.losses.kind_now();
        let kind = if timer { RetransmitKind::Timer } else { now };
        if timer && self.scoreboard.sack_permitted && gap > 0 && self.ipid.gaps.tells() {
            // Before the timer ran out new data may have been sent as well; what comes next tells.
            let timeout = self.timeout();
            let timeouts = (timeouts_in(silence, 0.0, timeout, self.rtt.least_timeout()) - 1).min(gap);
            let sent_before = if now == RetransmitKind::Fast { 1 + self.ipid.tail } else { 0 };
            let excess = (gap - timeouts).saturating_sub(sent_before);
            self.ipid.gaps.by_timer_again(excess, timeouts, now);
            self.ipid.sent_to = self.ipid.sent_to.max(1);
            self.ipid.tail += excess;
            return kind;
        }
        self.ipid.gaps.judge(0, kind);
        if timer && now == RetransmitKind::Fast && !self.scoreboard.sack_permitted {
            // The acknowledgement of all before it had it sent again, once (RFC 6582 §3.2 step 3).
            self.ipid.gaps.first_again(gap, now);
        }
        kind
    }

    /// Where a timer ran out and how much was new before it is not known yet: this is of that, or tells how much it was.
    fn in_the_timeouts_flight(&mut self, data: &Data, start: u64, before: &Before) -> Answer {
        let &Before { hole, gap, .. } = before;
        if self.ipid.sent_to == 0 {
            return Continue(());
        }
        if start < self.ipid.sent_to && hole == 0 && self.losses.episode.is_some() {
            // It follows the timeout's own segment; that of which it is a copy was missing then.
            self.ipid.gaps.judge(0, RetransmitKind::Timer);
            return Break(Some(RetransmitKind::Timer.into()));
        }
        let rest = data.fin || u64::from(data.len) < self.space.mss;
        if rest
            && hole + gap == 0
            && self.losses.kind_now() == RetransmitKind::Timer
            && self.ipid.gaps.probed_with_new()
        {
            // After a timeout new data goes first (RFC 5682 §3.1), and this did not; where there was more to send when a probe
            // was, it was the probe.
            self.ipid.gaps.judge(0, RetransmitKind::Timer);
            return Break(Some(RetransmitKind::Timer.into()));
        }
        // New data tells how much was sent before the timeout.
        self.ipid.sent_to = 0;
        let opened_late = self.ipid.opened_late.take();
        if hole <= gap {
            return Continue(());
        }
        if let Some(silence) = opened_late.filter(|_| self.losses.episode.is_none()) {
            self.first_flight_lost(data, silence);
            self.losses.still_by_timer(self.space.una, start);
            self.ipid.gaps.judge(gap, RetransmitKind::Timer);
            self.ipid.gaps.begins(false);
        } else {
            self.ipid.gaps.revealed(hole - gap);
            self.ipid.gaps.judge(gap, RetransmitKind::Timer);
            self.losses.still_by_timer(self.space.una, start);
        }
        Break(None)
    }

    /// The very first packet that came, after a `silence`, was the timer's: all of the first flight was lost, and no numbers tell of it.
    fn first_flight_lost(&mut self, data: &Data, silence: u64) {
        let min = self.rtt.min.unwrap_or(0) as f64;
        let rtt_before = self.rtt.smoothed;
        let loss =
            Loss { at: data.now, number: data.number, kind: RetransmitKind::Timer, rtt_before, silence, packets: 1 };
        // What the late packet echoed is no round trip, so the handshake's is the one to go by.
        let (silence, probe, usual) = (silence as f64, min * 2.0, min + (min * 2.0).max(200e6));
        // How long its program had nothing for it is in this silence as well.
        let once = (usual..1.5 * usual).contains(&(silence - probe));
        let timeouts = if once { 1 } else { timeouts_in(silence, probe, usual, min * 3.0) };
        self.losses.was_by_timer(timeouts, loss);
    }

    /// Whether the first data there is may be a copy is told by what comes next.
    fn in_the_first_flight(&mut self, data: &Data, start: u64, before: &Before) -> Answer {
        if self.totals.bytes > 0 {
            return Continue(());
        }
        self.ipid.gaps.begins(start == self.space.first);
        if !self.ipid.gaps.is_oldest() || before.hole > 0 {
            return Continue(());
        }
        self.ipid.opened_late = Some(data.now.saturating_sub(self.clocks.last_heard));
        self.ipid.sent_to = start + 1;
        self.ipid.gaps.judge(0, RetransmitKind::Timer);
        Break(None)
    }

    /// How long its sender was silent before data, in nanoseconds.
    fn silence_before(&self, data: &Data, then: Option<SendTiming>) -> f64 {
        // What is lost was sent once there was something to send.
        let since = if self.totals.bytes == 0 {
            self.clocks.last_heard
        } else {
            self.clocks.last_send.max(self.clocks.last_progress)
        };
        let since = since.max(self.ipid.answers_at);
        then.map_or(0, |then| then.unheard.min(then.quiet)).max(data.now.saturating_sub(since)) as f64
    }

    /// Where losses are being repaired, what is missing was sent again unless there is a hole for it.
    fn while_repairing(&mut self, silence: f64, before: &Before) -> Answer {
        let &Before { hole, gap, known } = before;
        let Some(episode) = self.losses.episode else { return Continue(()) };
        // All that is known of is repaired, then silence: what is missing was sent meanwhile, and a timer had to begin with it.
        if self.scoreboard.gaps.total() == 0 && hole == 0 && gap > 0 && silence >= self.nearly_timeout() {
            return Continue(());
        }
        let unseen = gap.saturating_sub(hole);
        if episode.timer && self.scoreboard.sack_permitted && unseen > 0 {
            // What is lost besides was sent again, from the lowest up.
            let from = self.ipid.resent_to.max(self.space.una);
            let below = |end| self.scoreboard.gaps.pieces_below(end, self.space.mss);
            let beyond = unseen.saturating_sub(below(self.space.nxt).saturating_sub(below(from))).min(known);
            self.ipid.resent_to = self.scoreboard.gaps.end_of_pieces(from, unseen, self.space.mss);
            if beyond > 0 {
                self.ipid.resent_to = self.space.nxt + beyond * self.space.mss;
            }
        }
        self.ipid.gaps.judge(hole, if episode.timer { RetransmitKind::Timer } else { RetransmitKind::Fast });
        Break(None)
    }

    /// Where nothing was amiss: a probe or timers sent what is missing, and this, if the `silence` before it was long enough.
    fn out_of_silence(&mut self, data: &Data, start: u64, silence: f64, is_stamped: bool, before: &Before) -> Answer {
        let &Before { hole, gap, .. } = before;
        // No timer runs out before an acknowledgement could have come.
        let least = self.rtt.min.map_or(self.rtt.shortest_timeout(), |min| min.max(5_000_000) as f64);
        // A FIN is the last there is, so a probe of it may come as soon as the timeout of what was sent long before it.
        let least = if data.fin || is_stamped { least.min(JIFFIES) } else { least };
        if self.scoreboard.gaps.total() > 0 || gap <= hole || !self.ipid.gaps.tells() || silence < least {
            let all_came = self.scoreboard.gaps.total() == 0 && gap > hole;
            if all_came {
                self.ipid.gaps.are_others();
            }
            self.ipid.gaps.judge(if all_came { gap } else { hole }, RetransmitKind::Fast);
            return Break(None);
        }
        // More is missing than has made room.
        let probes = self.scoreboard.sack_permitted && !self.losses.is_probing();
        if probes && gap == hole + 1 {
            self.ipid.gaps.judge(gap, RetransmitKind::Probe);
            return Break(Some(RetransmitKind::Probe.into()));
        }
        let timeout = self.timeout();
        // One of the missing is the first copy, and each timeout before the last one's sent another: before them its program was silent.
        let doubled = 1.2 * ((1u64 << gap.min(16)) - 1) as f64;
        if silence > doubled * timeout.max(LONGEST_FIRST) {
            self.ipid.gaps.by_timer(1, false);
            return Break(Some(Timed { kind: RetransmitKind::Timer, most: (doubled * timeout) as u64 }));
        }
        let probe = if probes { 2.0 * self.rtt.smoothed } else { 0.0 };
        let probed = probes && silence >= 0.8 * (probe + timeout.min(self.rtt.least_timeout()));
        let timeouts = timeouts_in(silence, if probed { probe } else { 0.0 }, timeout, self.rtt.least_timeout());
        let first = gap.saturating_sub(u64::from(probed) + timeouts - 1).max(1);
        self.ipid.gaps.by_timer(first, probed);
        self.ipid.sent_to = start + u64::from(data.len) + (first - 1) * self.space.mss;
        Break(Some(RetransmitKind::Timer.into()))
    }

    /// Nothing came any more while something was missing, for longer than a timer waits: what it sent, if anything, was lost as well.
    pub(super) fn wait_in_vain(&mut self) {
        let silence = self.observers.time.now().saturating_sub(self.clocks.last_send);
        if self.scoreboard.gaps.total() > 0 && silence as f64 >= self.nearly_timeout() {
            self.losses.in_vain = Some(silence);
            self.observers.time.timer_fired(u64::MAX);
        }
    }

    /// What was lost before new data never came here, and the program is not to be blamed for the silence.
    pub(super) fn charge_timer(&mut self, timed: Option<Timed>, now: u64) {
        let silence = self.silence(now);
        let Some(timed) = timed.filter(|timed| timed.kind != RetransmitKind::Fast) else { return };
        if silence as f64 >= self.rtt.shortest_timeout() {
            self.observers.time.timer_fired(timed.most);
        }
    }
}

/// How many timeouts made a silence: each is twice as long as the one before, and a probe comes first. The first took about the
/// `usual` time or, where that does not fit, the `least`, or what is between them.
pub(super) fn timeouts_in(silence: f64, probe: f64, usual: f64, least: f64) -> u64 {
    const NEAR: f64 = 0.1;
    /// No timer runs out early, and round trips are known to a few percent of it: so many times worse than late.
    const EARLY: f64 = 5.0;
    /// The kernel's timer wheel has steps of an eighth (kernel/time/timer.c).
    const WHEEL: f64 = 0.14;
    /// Timers run on jiffies, of 4 ms at 250 Hz: two at most are added.
    const TWO: f64 = JIFFIES / 2.0;
    let silence = (silence - probe).max(1.0);
    let fit = |timeout: f64| {
        let miss = |count: &u64| {
            let first = silence / ((1u64 << count) - 1) as f64;
            let miss = (first / first.clamp(timeout.max(1.0), timeout.max(1.0) + TWO)).ln();
            if miss < 0.0 { -miss * EARLY } else { miss }
        };
        (1..=16).map(|count| (miss(&count), count)).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 1))
    };
    let (by_usual, by_least) = (fit(usual), fit(least));
    if by_usual.0 <= WHEEL {
        return by_usual.1;
    }
    if by_least.0 < NEAR {
        return by_least.1;
    }
    // Something between the two, as a route may set.
    let between = least..=usual + TWO;
    (1..=16).find(|count| between.contains(&(silence / ((1u64 << count) - 1) as f64))).unwrap_or(by_usual.1)
}
