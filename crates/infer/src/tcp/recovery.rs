//! Why data was sent again: reported by acknowledgements, by a timer, as a probe; and whether it was needed.

use crate::event::RetransmitKind;
use std::collections::VecDeque;

/// Losses kept one by one; more are only counted. Bounds memory.
const MAX_LOSSES: usize = 4_096;
/// Retransmissions watched for proof that they were not needed. Bounds memory.
const MAX_WATCHED: usize = 1_024;

/// Timers run on jiffies, of 4 ms at 250 Hz, and take two at least (`TCP_TIMEOUT_MIN`); twice that, in nanoseconds.
pub(crate) const TIMER_ERROR_NS: f64 = 16e6;

/// Whether a sender sends tail-loss probes (RFC 8985 §7).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TailLossProbes {
    #[default]
    Unknown,
    /// What was sent again can have been nothing else.
    Sent,
    /// One was due, and did not come.
    Missed,
}

/// A loss episode's first retransmission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) kind: RetransmitKind,
    /// Smoothed RTT before it, in nanoseconds.
    pub(crate) rtt_before: f64,
    /// Silence before it, in nanoseconds; of timers and probes.
    pub(crate) silence: u64,
    /// Packets sent again until all was repaired.
    pub(crate) packets: u64,
}

/// A recovery under way: until `point` is acknowledged.
///
/// It is the kernel's congestion state: `TCP_CA_Loss` where a timer began it, else `TCP_CA_Recovery`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Episode {
    pub(crate) point: u64,
    pub(crate) timer: bool,
    /// Data that was sent once and is acknowledged proves the timeout needless (F-RTO, RFC 5682).
    frto: bool,
    /// TSval of the first retransmission (`retrans_stamp`).
    stamp: Option<u32>,
    /// First byte not acknowledged at its beginning, and retransmissions since that no DSACK reported (`undo_marker`,
    /// `undo_retrans`).
    began: u64,
    unreported: u32,
    /// It is one an acknowledgement has to go past, as a sender without SACK holds its state until then
    /// (`tcp_is_non_sack_preventing_reopen`).
    past: bool,
}

impl Episode {
    const fn is_over(&self, una: u64) -> bool {
        una > self.point || una == self.point && !self.past
    }
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    start: u64,
    end: u64,
    at: u64,
    /// Its TSval, where the segment was the first unacknowledged one.
    tsval: Option<u32>,
    known_spurious: bool,
    /// A DSACK reported it.
    reported: bool,
}

impl Watched {
    /// Whether it carried any of these bytes.
    const fn carried(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }
}

/// What an acknowledgement reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckNews {
    pub(crate) una: u64,
    pub(crate) next: u64,
    /// It acknowledged new data, by its number; it did so by SACK; it did neither.
    pub(crate) progress: bool,
    pub(crate) sacked: bool,
    pub(crate) duplicate: bool,
    /// Data sent once was acknowledged; see [`Losses::watches_originals`].
    pub(crate) original: bool,
    pub(crate) tsecr: Option<u32>,
    /// Where what a DSACK reports ends.
    pub(crate) reported_above: Option<u64>,
}

/// What is known when data is sent again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetransmitEvidence {
    /// How many full segments it holds.
    pub(crate) segments: u64,
    /// Nanoseconds since the sender last sent or heard of progress.
    pub(crate) silence: u64,
    /// Nanoseconds since the first unacknowledged byte was sent or came to be the first, which starts the timer.
    pub(crate) waited: u64,
    /// Nanoseconds since it was sent last; 0 where that is not known.
    pub(crate) age: u64,
    /// Nanoseconds since an acknowledgement reported that something came after the first unacknowledged byte; 0 where none did.
    pub(crate) told: u64,
    /// Nanoseconds since it heard of its receiver at all.
    pub(crate) unheard: u64,
    /// An acknowledgement came just before.
    pub(crate) clocked: bool,
    /// It was sent again since the last timeout.
    pub(crate) again: bool,
    /// Something was sent again since it was sent last: that may have come, and shown that this one was lost (RFC 8985).
    pub(crate) overtaken: bool,
    pub(crate) sacked_above: bool,
    pub(crate) duplicates: u32,
    /// It is the first unacknowledged segment.
    pub(crate) is_first: bool,
    /// It is the last segment sent.
    pub(crate) is_last: bool,
    pub(crate) sack_permitted: bool,
    /// It may be a probe, as far as its time and what its sender did before tell.
    pub(crate) may_be_probe: bool,
    /// See [`crate::tcp::rtt_estimator::RttEstimator::shortest_timeout`].
    pub(crate) shortest_timeout: f64,
    /// See [`crate::tcp::rtt_estimator::RttEstimator::timeout`].
    pub(crate) timeout: f64,
    pub(crate) rtt: f64,
    pub(crate) tsval: Option<u32>,
    /// Known otherwise.
    pub(crate) kind: Option<RetransmitKind>,
}

impl RetransmitEvidence {
    fn is_silent(&self) -> bool {
        self.silence as f64 >= self.shortest_timeout
    }

    /// Whether the retransmission timer may have run out: after silence, or where acknowledgements came that did not restart it,
    /// after as long as it takes at least.
    fn is_timer(&self) -> bool {
        // Without SACK nothing but an acknowledgement or this timer sends again.
        let least = if self.sack_permitted { self.timeout } else { self.shortest_timeout };
        let unmoved = self.unheard as f64 <= self.rtt && self.waited as f64 >= least;
        // Without SACK acknowledgements have it sent again at once, or not at all.
        let late = !self.sack_permitted && self.unheard as f64 > self.rtt / 2.0 + TIMER_ERROR_NS / 2.0;
        // And have it sent again once (RFC 6582 §3.2), whatever of them comes in between.
        let spent = self.again && !self.sack_permitted && self.waited as f64 >= self.shortest_timeout;
        let unprompted = !self.clocked && (self.is_silent() || unmoved || late || self.is_alone());
        self.is_first && (unprompted || spent)
    }

    /// The longest that the reordering timer waits.
    fn latest(&self) -> f64 {
        self.rtt + TIMER_ERROR_NS
    }

    /// Whether the loss was reported longer ago than that.
    fn is_long_told(&self) -> bool {
        self.told as f64 > self.latest()
    }

    /// Whether it is too late for the reordering timer, and the retransmission timer may have run out: after a probe or that timer it
    /// counts from when the segment was sent.
    ///
    /// The first acknowledgement that reported the loss set the reordering timer to a round trip at most. Linux `tcp_rack_detect_loss`,
    /// `tcp_rack_update_reo_wnd`, `tcp_rearm_rto`.
    fn is_alone(&self) -> bool {
        let (age, silence) = (self.age as f64, self.silence as f64);
        let untold = !self.sacked_above && self.duplicates == 0 && !self.overtaken;
        let told = self.is_long_told() && (silence > self.rtt / 2.0 || age >= self.timeout);
        let over = untold || self.unheard as f64 > self.latest() || told;
        self.sack_permitted && over && age >= self.shortest_timeout
    }
}

/// Retransmissions proven needless, by the proof that came first.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    pub(crate) dsack: u64,
    pub(crate) eifel: u64,
    pub(crate) timing: u64,
}

/// Losses of one direction.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) episode: Option<Episode>,
    pub(crate) total: u64,
    /// All of them in full segments: beside a sender one packet may hold many.
    pub(crate) segments: u64,
    pub(crate) fast: u64,
    pub(crate) timer: u64,
    pub(crate) probe: u64,
    pub(crate) spurious: u64,
    /// Of these, those of what was sent again more than once: the first copy may have been lost.
    pub(crate) repeated: u64,
    pub(crate) proofs: Proofs,
    /// Acknowledgements with a DSACK, whatever it was about.
    pub(crate) dsacks: u64,
    /// Times a timer fired.
    pub(crate) timeouts: u64,
    pub(crate) episodes: Vec<Loss>,
    pub(crate) timer_just_fired: bool,
    /// A probe is out until this is acknowledged (`tlp_high_seq`).
    probing: Option<u64>,
    pub(crate) tail_probes: TailLossProbes,
    /// The least that a timeout took over the round trip, in nanoseconds.
    pub(crate) margin: Option<f64>,
    /// How long nothing came in the end though something was missing, in nanoseconds.
    pub(crate) in_vain: Option<u64>,
    /// First unacknowledged byte when the timer fired last.
    fired_at: Option<u64>,
    watched: VecDeque<Watched>,
    /// The episode that was over last, and what was acknowledged then.
    ended: Option<(Episode, u64)>,
}

impl Losses {
    /// Whether anything was sent again.
    pub(crate) const fn any(&self) -> bool {
        self.total > 0
    }

    /// Counts a retransmission of class `loss.kind`. `una` and `next` are where an episode it opens begins and ends.
    pub(crate) fn retransmitted(&mut self, evidence: &RetransmitEvidence, loss: Loss, una: u64, next: u64) {
        self.total += 1;
        self.segments += evidence.segments;
        self.timer_just_fired = false;
        if self.episode.is_some()
            && let Some(last) = self.episodes.last_mut()
        {
            last.packets += 1;
        }
        let open = Episode {
            point: next,
            timer: false,
            frto: false,
            stamp: evidence.tsval,
            began: una,
            unreported: 0,
            past: !evidence.sack_permitted,
        };
        match loss.kind {
            RetransmitKind::Fast => {
                self.fast += 1;
                match &mut self.episode {
                    None => {
                        self.episode = Some(open);
                        self.note(loss);
                    }
                    // A retransmission was found lost: Linux goes from Loss to Recovery then (`FLAG_LOST_RETRANS`).
                    Some(episode) if episode.timer => (episode.timer, episode.point) = (false, next),
                    Some(_) => {}
                }
            }
            RetransmitKind::Probe => {
                self.probe += 1;
                self.probing = Some(next);
                self.timer_just_fired = true;
                self.note(Loss { silence: evidence.silence, ..loss });
                return;
            }
            RetransmitKind::Timer => {
                self.timer += 1;
                if self.fires(evidence) {
                    if evidence.unheard as f64 > evidence.rtt && evidence.rtt > 0.0 && evidence.kind.is_none() {
                        // Nothing else can have set it off: so short can a timeout be here.
                        let margin = (evidence.waited as f64 - evidence.rtt).max(0.0);
                        self.margin = Some(self.margin.map_or(margin, |least| least.min(margin)));
                    }
                    self.timeouts += 1;
                    self.timer_just_fired = true;
                    self.note(Loss { silence: evidence.silence, ..loss });
                    // RFC 5682 §3.1 and §3.2: not where another recovery was under way.
                    let frto = self.episode.is_none() || self.fired_at == Some(una);
                    self.fired_at = Some(una);
                    self.probing = None;
                    let before = self.episode.filter(|e| !e.is_over(una));
                    self.episode = Some(Episode { timer: true, frto, point: next, ..before.unwrap_or(open) });
                }
            }
        }
        if let Some(episode) = &mut self.episode {
            episode.unreported += 1;
            // Step 2.b of F-RTO is over: it had no new data to send.
            if !self.timer_just_fired {
                episode.frto = false;
            }
        }
    }

    /// Whether a probe is out: there is no other one then (`tcp_schedule_loss_probe`).
    pub(crate) const fn is_probing(&self) -> bool {
        self.probing.is_some()
    }

    /// Whether an episode ended when `una` was acknowledged.
    pub(crate) fn ended_at(&self, una: u64) -> bool {
        self.ended.is_some_and(|(_, at)| at == una)
    }

    /// Whether `end` was acknowledged by what ended the last episode: what is sent again of that left before, in that episode, which
    /// goes on for now.
    pub(crate) fn resume_before(&mut self, end: u64) -> bool {
        let resumed = self.ended.filter(|&(_, una)| self.episode.is_none() && end <= una);
        if let Some((episode, _)) = resumed {
            self.episode = Some(episode);
        }
        resumed.is_some()
    }

    /// `[start, end)` is sent again, and was not since its timer ran out last (`again`). A timeout that acknowledgements proved needless is over for
    /// a sender that heeds the proof. One that does not repeats all that was in flight then, and nothing else (RFC 5682 §1): it still is in Loss.
    pub(crate) fn resume_needless(&mut self, end: u64, again: bool) {
        let timeout = self.ended.map(|(episode, _)| episode).filter(|episode| episode.timer && end <= episode.point);
        if self.episode.is_none() && !again {
            self.episode = timeout.map(|episode| Episode { frto: false, ..episode });
        }
    }

    /// A flight up to `end` was lost before the tap, and of the timeouts after it this many were in vain.
    pub(crate) fn flight_lost(&mut self, in_vain: u64, end: u64) {
        if let Some(episode) = &mut self.episode {
            episode.point = episode.point.max(end);
            (self.total, self.timer) = (self.total + in_vain, self.timer + in_vain);
            (self.segments, self.timeouts) = (self.segments + in_vain, self.timeouts + in_vain);
        }
    }

    /// Data from `start` on came and what is before it did not: after a timeout new data is sent first (RFC 5682 §3.1), so what was in flight ends
    /// there. Whether it is so.
    pub(crate) fn reveals_flight(&mut self, start: u64) -> bool {
        let episode = self.episode.as_mut().filter(|episode| episode.timer && episode.frto);
        episode.map(|episode| episode.point = start).is_some()
    }

    /// Whether a retransmission of class [`RetransmitKind::Timer`] is the timeout's own, not one of those that follow.
    fn fires(&self, evidence: &RetransmitEvidence) -> bool {
        self.episode.is_none_or(|e| !e.timer) || evidence.is_timer()
    }

    /// The class of a retransmission.
    ///
    /// As Linux has it, a segment's class is the state it is sent in: `TCP_CA_Recovery` is fast (`TCPFastRetrans`); the timeout's
    /// own segment and all of `TCP_CA_Loss` is the timer's (`TCPTimeouts`, `TCPSlowStartRetrans`).
    pub(crate) fn kind(&self, evidence: &RetransmitEvidence) -> RetransmitKind {
        if let Some(kind) = evidence.kind {
            return kind;
        }
        let (silent, timer) = (evidence.is_silent(), evidence.is_timer());
        match self.episode {
            Some(episode) if episode.timer => {
                return if evidence.again && !timer && evidence.sack_permitted {
                    RetransmitKind::Fast
                } else {
                    RetransmitKind::Timer
                };
            }
            // A retransmission that was lost itself: nothing but the timer sends it again after a silence.
            Some(_) => return if timer { RetransmitKind::Timer } else { RetransmitKind::Fast },
            None => {}
        }
        // RFC 6675 §2 (three segments above, or what RACK takes for it), RFC 5681 §3.2 (three duplicates).
        let told = evidence.sacked_above || evidence.duplicates >= 3;
        let late =
            !evidence.sack_permitted || evidence.is_alone() || evidence.waited > 2 * evidence.rtt as u64 + 200_000_000;
        if told {
            return if timer && late { RetransmitKind::Timer } else { RetransmitKind::Fast };
        }
        // Linux tcp_schedule_loss_probe: SACK, not in recovery, the last segment, 2·SRTT after the last send, once. It never comes
        // after the timeout would, whose time it has where that is short, or of a single segment.
        let probes = evidence.sack_permitted && evidence.is_last && self.probing.is_none() && evidence.may_be_probe;
        if probes && (evidence.silence as f64 >= 1.5 * evidence.rtt || silent) {
            return RetransmitKind::Probe;
        }
        if silent || timer {
            return RetransmitKind::Timer;
        }
        // Nothing was heard but progress.
        if probes && !told && evidence.duplicates == 0 && !evidence.overtaken {
            return RetransmitKind::Probe;
        }
        // Early retransmit, and senders with other thresholds: whatever they heard, no timer runs out this soon.
        RetransmitKind::Fast
    }

    fn note(&mut self, loss: Loss) {
        if self.episodes.len() < MAX_LOSSES {
            self.episodes.push(loss);
        }
    }

    /// Remembers a retransmission until it is acknowledged.
    pub(crate) fn watch(&mut self, start: u64, end: u64, at: u64, tsval: Option<u32>) {
        if self.watched.len() >= MAX_WATCHED {
            self.watched.pop_front();
        }
        self.watched.push_back(Watched { start, end, at, tsval, known_spurious: false, reported: false });
    }

    /// An acknowledgement came in: ends the episode where it is over, or proven needless.
    ///
    /// Source: Linux `tcp_process_loss`, `tcp_try_undo_loss`, `tcp_may_undo`; `tcp_process_tlp_ack`, by which a probe is out until it is
    /// reported as needless or what was sent after it is acknowledged.
    pub(crate) fn heard(&mut self, heard: &AckNews) {
        self.probing = self.probing.filter(|&point| {
            heard.una < point || heard.una == point && !heard.duplicate && heard.reported_above.is_none()
        });
        let Some(episode) = &mut self.episode else { return };
        if heard.reported_above.is_some_and(|right| right > episode.began) {
            episode.unreported = episode.unreported.saturating_sub(1);
        }
        let delayed = heard.tsecr.zip(episode.stamp).is_some_and(|(echo, stamp)| (echo.wrapping_sub(stamp) as i32) < 0);
        let undone = heard.progress && (delayed || episode.unreported == 0);
        if episode.timer && (undone || episode.frto && heard.original) || episode.is_over(heard.una) {
            self.ended = self.episode.take().map(|episode| (episode, heard.una));
        } else if episode.timer && episode.frto {
            if heard.next > episode.point {
                episode.frto = !heard.sacked && !heard.duplicate;
            } else if heard.progress {
                episode.point = heard.next;
            }
        }
    }

    /// Whether proof that a timeout was needless would be in what an acknowledgement newly covers.
    pub(crate) fn watches_originals(&self) -> Option<u64> {
        self.episode.filter(|episode| episode.timer && episode.frto).map(|episode| episode.point)
    }

    /// A DSACK reports `[left, right)` as received twice; whether that proves a retransmission needless.
    ///
    /// Source: RFC 2883; RFC 3708 for its use as proof.
    pub(crate) fn reported_twice(&mut self, left: u64, right: u64) -> bool {
        let mut copies = self.watched.iter_mut().filter(|w| !w.reported && w.carried(left, right));
        let Some(mut watched) = copies.next() else { return false };
        // One of its copies that was proven before is what came twice.
        if !watched.known_spurious
            && let Some(proven) = copies.find(|w| w.known_spurious)
        {
            watched = proven;
        }
        watched.reported = true;
        if std::mem::replace(&mut watched.known_spurious, true) {
            return false;
        }
        let (start, end) = (watched.start, watched.end);
        self.proofs.dsack += 1;
        self.count_needless(start, end);
        true
    }

    /// The cumulative acknowledgement went from `from` to `to`; gives the start of a retransmission now proven needless. `least` is
    /// the shortest round trip seen, where it is known when acknowledgements reach the sender.
    ///
    /// Source: the Eifel detection algorithm, RFC 3522 §3.2: the acknowledgement echoes a time before the retransmission. Without
    /// timestamps it came too soon: less than nine tenths of the shortest round trip after it.
    pub(crate) fn acknowledged(
        &mut self,
        (from, to): (u64, u64),
        now: u64,
        tsecr: Option<u32>,
        rtt_min: Option<u64>,
        least: Option<u64>,
    ) -> Option<u64> {
        let first =
            self.watched.iter().position(|w| w.start < to && w.end <= to && w.tsval.is_some() && !w.known_spurious);
        let age = |watched: &Watched| now.saturating_sub(watched.at);
        let proven = if let Some(n) = first
            && let (Some(tsval), Some(echo)) = (self.watched[n].tsval.take(), tsecr)
            && (echo.wrapping_sub(tsval) as i32) < 0
            && echo != 0
            // Without a round trip in between, the acknowledgement cannot speak of the retransmission at all.
            && age(&self.watched[n]) < rtt_min.map_or(0, |min| min.saturating_mul(4))
        {
            Some((n, &mut self.proofs.eifel))
        } else if tsecr.is_none()
            && let Some(least) = least
            && let Some(n) = self.watched.iter().rposition(|w| w.start <= from && from < w.end && w.end <= to)
            && !self.watched[n].known_spurious
            && age(&self.watched[n]) < least / 10 * 9
        {
            Some((n, &mut self.proofs.timing))
        } else {
            None
        };
        let mut needless = None;
        if let Some((n, proofs)) = proven {
            let Watched { start, end, .. } = self.watched[n];
            // What was reported of another copy of it may be this one; if it is not, this will be reported, too.
            if !self.watched.iter().any(|w| w.reported && w.carried(start, end)) {
                *proofs += 1;
                self.watched[n].known_spurious = true;
                self.count_needless(start, end);
                needless = Some(start);
            }
        }
        // A DSACK follows the acknowledgement by up to a round trip: keep the watched a while, they are bounded anyway.
        while self.watched.front().is_some_and(|w| w.end + (1 << 24) < to) {
            self.watched.pop_front();
        }
        needless
    }

    /// Counts what was sent again, `start` to `end`, as proven needless.
    fn count_needless(&mut self, start: u64, end: u64) {
        self.spurious += 1;
        let copies = self.watched.iter().filter(|w| w.carried(start, end)).take(2).count();
        self.repeated += u64::from(copies > 1);
    }
}
