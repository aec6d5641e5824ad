//! One direction of a connection as its sender lives it: what it sent, what it heard back, what it waited for.
//!
//! All times are those of the sender: the flow hands acknowledgements in when they reach it, not when the tap saw them.
//! Sequence numbers are unwrapped to 64 bits.

mod clocks;
mod limit_state;
mod notes;
mod retransmission;
mod sack;
mod scale_search;
mod scoreboard;
mod send_pauses;
mod send_space;
mod send_window;
mod tail_loss_probe;
mod totals;
mod window_probes;

pub(crate) use send_window::FULL_PART;

use crate::event::{
    Accuracy, Acked, Advertised, DataPacket, Ended, Event, Limit, RttSample, Sent, SentSegment, Trigger, Unseen,
};
use crate::observe::{Observers, Recording};
use crate::reset::Reset;
use crate::tcp::packet::{Ack, Data};
use crate::tcp::receiver_view::RemoteSender;
use crate::tcp::receiver_view::one_way_delay::OneWayDelay;
use crate::tcp::recovery::{AckNews, Losses};
use crate::tcp::rtt_estimator::RttEstimator;
use clocks::Clocks;
use retransmission::FirstCopyLost;
use sack::Sacked;
use scoreboard::{MAX_SEGMENTS, Scoreboard};
use send_space::{ORIGIN, SendSpace};
use send_window::SendWindow;
use thalweg_units::SeqNum;
use totals::Totals;

/// Beyond what was seen sent, an acknowledgement of the connection is at most by the largest window (RFC 7323 §2.3).
const MAX_ACKED_UNSEEN: u64 = 1 << 30;

/// One direction of a connection, as its sender lives it.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    pub(crate) space: SendSpace,
    pub(crate) scoreboard: Scoreboard,
    pub(crate) window: SendWindow,
    pub(crate) clocks: Clocks,
    pub(crate) losses: Losses,
    pub(crate) rtt: RttEstimator,
    pub(crate) totals: Totals,
    pub(crate) observers: Observers,
    /// What a tap elsewhere than at the sender tells of it.
    pub(crate) remote: RemoteSender,
    /// How well it is known what the sender did and heard: as a tap at the sender shows it, or elsewhere.
    accuracy: Accuracy,
}

impl Reset for Sender {
    fn reset(&mut self) {
        // Part by part: to make one elsewhere and move it here is to write thousands of bytes twice.
        self.space = SendSpace::default();
        self.scoreboard.reset();
        self.window = SendWindow::default();
        self.clocks = Clocks::default();
        self.losses = Losses::default();
        self.rtt = RttEstimator::default();
        self.totals = Totals::default();
        self.observers.reset();
        self.remote = RemoteSender::default();
        self.accuracy = Accuracy::Exact;
    }
}

impl Sender {
    pub(crate) fn new(recording: Recording) -> Self {
        let mut new = Self::default();
        new.begin_flow(recording);
        new
    }

    /// Begins a flow of which nothing was seen yet, in the memory of one that is over, and records what is wanted of it.
    pub(crate) fn begin_flow(&mut self, recording: Recording) {
        self.reset();
        self.observers.record(recording);
    }

    /// The tap turns out not to be at the sender, where acknowledgements do not pass it when they reach the sender; or to be there after all.
    pub(crate) fn set_accuracy(&mut self, accuracy: Accuracy) {
        self.accuracy = accuracy;
        self.observers.event(&Event::Accuracy(accuracy));
    }

    /// Whether the tap is at the sender: each event is seen when it happens. Else it is reconstructed (`receiver_view`).
    pub(crate) fn is_exact(&self) -> bool {
        self.accuracy == Accuracy::Exact
    }

    /// Whether round trips of data are known: elsewhere than at the sender, timestamps tell them.
    pub(crate) fn times_data(&self) -> bool {
        self.is_exact() || self.rtt.is_of_data()
    }

    /// Whether the program, and no acknowledgement, set off what a far sender sent.
    pub(crate) fn is_set_off_by_the_program(&self) -> bool {
        self.remote.triggers.are_the_programs() || self.is_set_off_by_a_timer()
    }

    /// Whether a far sender sends by a timer of the program.
    pub(crate) fn is_set_off_by_a_timer(&self) -> bool {
        self.remote.timer.is_a_programs(self.rtt.min)
    }

    /// What is in flight: from afar it is an estimate, and no sender sends beyond the window (RFC 9293 §3.8.6).
    fn within_window(&self, flight: u64) -> u64 {
        if self.is_exact() || !self.window.known { flight } else { flight.min(self.window.max) }
    }

    /// Takes a packet with data, or with the FIN, that the sender sent in.
    pub(crate) fn data(&mut self, data: &Data) {
        self.space.begin(data.seq);
        let Some(start) = self.space.unwrap_seq(data.seq) else { return };
        let end = start + u64::from(data.len) + u64::from(data.fin);
        // A jump of a gigabyte is a damaged packet, or another connection's.
        if start > self.space.nxt + (1 << 30) {
            return;
        }
        // Keep-alives carry one old byte, or none (RFC 9293 §3.8.4): no loss, no data.
        if data.len <= 1 && !data.fin && start + 1 == self.space.nxt && end <= self.space.una {
            self.clocks.idle_at = Some(data.now);
            return;
        }
        if self.is_window_probe(start, data.len) {
            self.space.probed = Some(end);
            return;
        }
        // The end of a direction that sent nothing.
        if data.len == 0 && self.totals.first_data.is_none() {
            return;
        }
        if !self.is_exact() {
            self.remote.timing =
                data.tsval.zip(data.tsecr).and_then(|(tsval, tsecr)| self.remote.clock.sent(data.now, tsval, tsecr));
            if end > self.space.nxt {
                self.remote.triggers.sent(self.remote.timing);
                if let Some(tsval) = data.tsval.filter(|_| self.remote.timing.is_some()) {
                    self.remote.timer.sent(tsval);
                }
            }
        }
        self.totals.data_packets += u64::from(data.len > 0);
        if data.len > 0 {
            self.clocks.burst.sent(data.now, data.len);
        }
        self.space.carried(data.len, data.ends_write);
        if self.totals.first_data.is_none() {
            self.totals.first_data = Some((data.now, data.number));
            if self.space.una == ORIGIN && self.space.nxt == ORIGIN && !self.space.knows_first {
                (self.space.first, self.space.una, self.space.nxt) = (start, start, start);
                self.scoreboard.acked_end = start;
            }
            self.clocks.last_progress = data.now;
        }
        self.clocks.now = self.clocks.now.max(data.now);
        self.observers.event(&Event::Packet(DataPacket {
            now: data.now,
            start,
            end,
            next: self.space.nxt,
            mss: self.space.mss,
            len: data.len,
            burst: self.clocks.burst.bytes(),
            new_tsval: data.tsval.filter(|_| data.tsval != self.space.newest_tsval),
            quiet: self.remote.timing.map(|timing| timing.quiet),
            limit: self.class(),
        }));
        if end > self.space.nxt {
            let lost = self.first_copy_lost(data, start);
            if let Some(FirstCopyLost { longest, .. }) = lost {
                self.observers.event(&Event::TimerExpired { longest });
            }
            self.new_data(data, start, end);
            if let Some(lost) = lost {
                self.retransmission(data, start, end, Some(lost.kind));
                self.losses.flight_lost(lost.timeouts - 1, lost.flight_end);
                (self.clocks.silence, self.clocks.before_timeout) = (None, self.clocks.last_send);
            }
        } else {
            self.old_data(data, start, end);
        }
        self.clocks.last_gap = data.now.saturating_sub(self.clocks.last_send);
        self.clocks.last_send = data.now;
        if data.len > 0 && !data.is_alert {
            self.clocks.last_data = data.now;
        }
        let flight = self.flight();
        self.totals.flight_at_send = flight;
        let flight = self.within_window(flight);
        self.totals.flight_max = self.totals.flight_max.max(flight);
        self.observers.event(&Event::Flight { now: data.now, flight });
    }

    fn new_data(&mut self, data: &Data, start: u64, end: u64) {
        self.note_place(data, start);
        self.note_silence(start, end);
        self.note_scale(data.now, end);
        if self.space.nxt <= self.space.una {
            self.clocks.head_at = data.now;
        }
        if data.fin {
            self.space.fin = true;
        }
        // A FIN or an alert alone ends no pause: the data before it was the last there was.
        if data.len == 0 || data.is_alert && self.totals.bytes > 0 {
            let alert = (end - u64::from(data.fin)).saturating_sub(start.max(self.space.nxt));
            self.space.alert += alert;
            self.totals.bytes += alert;
            self.clocks.idle_at = Some(data.now);
            self.extend(data, start, end);
            return;
        }
        self.space.alert = 0;
        let Data { now, number, .. } = *data;
        let len = u64::from(data.len);
        let trigger = self.trigger(now);
        let flight_before = self.flight();
        let pause = self.pause(data, trigger, flight_before);
        self.totals.from_below += u64::from(flight_before * 8 < self.totals.flight_max * 7);
        let was_open = self.was_open(now);
        let was_idle = self.totals.drained && self.is_unforced(trigger, flight_before) && was_open.unwrap_or(true);
        self.totals.drained = self.space.ends_short(len);
        // Acknowledgements a tap shows in one batch empty the flight for an instant: that is no pause.
        if self.totals.bytes == 0 || self.space.una >= start && trigger == Trigger::Own {
            self.totals.bursts += 1;
        }
        self.totals.bytes += end - u64::from(data.fin) - start.max(self.space.nxt);
        self.window.open_at = None;
        self.extend(data, start, end);
        self.note_room(now);
        let fills_window = self.note_full_window(now);
        self.observers.event(&Event::Sent(Sent {
            now,
            number,
            start,
            len,
            first: self.space.first,
            una: self.space.una,
            next: self.space.nxt,
            mss: self.space.mss,
            total: self.totals.bytes,
            retransmits: self.losses.total,
            flight_before,
            flight: self.flight(),
            trigger,
            last_send: self.clocks.last_send,
            last_progress: self.clocks.last_progress,
            rtt_min: self.rtt.least().unwrap_or(0),
            // A quarter of a round trip; twice its deviation where it jitters, for acknowledgements come in clumps then.
            patience: (self.rtt.min.unwrap_or(0) / 4).max(2 * self.rtt.variation as u64).max(1_000_000),
            was_idle,
            had_window: was_open.unwrap_or(false),
            was_gathered: pause.is_some_and(|pause| self.is_gathered(&pause)),
            fills_window,
            is_bounded: len < self.space.mss || self.window.known && self.window.edge < self.space.nxt + self.space.mss,
            is_repairing: self.losses.episode.is_some(),
            pause,
        }));
    }

    /// New data begins where the one before ended, beyond a gap, or with old bytes.
    #[inline]
    fn note_place(&mut self, data: &Data, start: u64) {
        if start > self.space.nxt {
            self.note_gap(data, start);
        } else if start < self.space.nxt {
            // Old bytes with new ones behind: the old ones were sent again.
            self.retransmission(data, start, self.space.nxt, None);
        }
    }

    /// What is missing before `start` was lost, or is late.
    fn note_gap(&mut self, data: &Data, start: u64) {
        self.note_timeout(data);
        let is_repairing = self.is_repairing();
        let rtt = self.rtt.smoothed as u64;
        // A flight before a timeout, or what left since the packet before.
        let (after, before) = if self.losses.reveals_flight(start) {
            (self.clocks.before_timeout, self.clocks.before_timeout + rtt)
        } else {
            (self.clocks.last_send, data.now)
        };
        self.scoreboard.gap(self.space.nxt, start, data.now);
        let (from, to, mss) = (self.space.nxt, start, self.space.mss);
        self.observers.event(&Event::Unseen(Unseen { after, before, from, to, mss, rtt, is_repairing }));
        self.note_uncaptured(self.space.arrived.min(start));
    }

    /// The receiver's window, if what was sent fills it.
    #[inline]
    fn note_full_window(&mut self, now: u64) -> Option<u64> {
        let is_full = self.window.known && self.window.edge < self.space.nxt + self.segment();
        let full = self.window.size.filter(|_| is_full)?;
        self.window.filled_at = Some(now);
        Some(full)
    }

    /// What was sent reaches to `end` now, from `start` on.
    fn extend(&mut self, data: &Data, start: u64, end: u64) {
        let parted = start > self.space.nxt;
        self.space.nxt = end;
        self.space.reference = Some((data.seq.add(data.len).add(u32::from(data.fin)), end));
        self.space.newest_tsval = data.tsval.or(self.space.newest_tsval);
        self.space.newest_ip_id = data.ip_id.or(self.space.newest_ip_id);
        if self.scoreboard.segments.len() < MAX_SEGMENTS {
            let burst = self.clocks.burst.bytes().min(u64::from(u32::MAX)) as u32;
            if self.scoreboard.segments.capacity() == 0 {
                // A first flight, at once.
                self.scoreboard.segments.reserve(16);
            }
            self.scoreboard.segments.push_back(SentSegment {
                end,
                sent: data.now,
                burst,
                parted,
                ..SentSegment::default()
            });
        }
    }

    /// The receiver says at the tap that it has all below `ack`, which the sender does not know yet.
    pub(crate) fn arrived(&mut self, ack: SeqNum) {
        let to = self.space.unwrap_seq(ack).filter(|to| *to <= self.space.nxt + MAX_ACKED_UNSEEN);
        self.space.arrived = self.space.arrived.max(to.unwrap_or(0));
        if self.space.arrived > self.space.nxt + 1 {
            self.remote.ip_ids.were_not_captured();
        }
        self.note_uncaptured(self.space.arrived.min(self.space.nxt));
    }

    /// Takes in what reached the sender from its receiver.
    pub(crate) fn ack(&mut self, ack: &Ack) {
        self.space.begin(ack.ack);
        let Some(mut to) = self.space.unwrap_seq(ack.ack) else { return };
        if to > self.space.nxt + MAX_ACKED_UNSEEN || to + (1 << 31) < self.space.una {
            return;
        }
        let limit = self.class();
        // Where all has come, an acknowledgement by itself waits for nothing, nor does the receiver's FIN, however late.
        let is_idle =
            ack.payload == 0 && !ack.is_syn && !ack.asks && to == self.space.una && self.space.una == self.space.nxt;
        if self.totals.first_data.is_some() && !is_idle {
            self.clocks.now = self.clocks.now.max(ack.now);
        }
        let acknowledged = to;
        if to == self.space.first && self.space.nxt > to && ack.is_syn {
            self.take_back(to);
        }
        to = self.beyond_sent(ack, to);
        self.note_overtaken(ack, to);
        self.note_reneged(ack, to);
        let outstanding = self.space.nxt.saturating_sub(self.space.una);
        let repairing = self.losses.episode.is_some();
        let Sacked { sacked_new, reported_above, original } = self.beyond(ack, to, acknowledged);
        let progress = to > self.space.una;
        let reached = to.max(self.scoreboard.sacked.end().unwrap_or(0));
        let delivered = if progress { self.advance(ack, to) } else { self.duplicate(ack, to, sacked_new) };
        let told_at = if progress { None } else { self.clocks.told_at };
        self.clocks.told_at = (self.scoreboard.sacked.total() > 0).then(|| told_at.unwrap_or(ack.now));
        self.clocks.last_heard = ack.now;
        self.losses.heard(&AckNews {
            una: self.space.una,
            next: self.space.nxt,
            progress,
            sacked: sacked_new > 0,
            duplicate: ack.pure && !progress && self.space.nxt > self.space.una,
            original,
            tsecr: ack.tsecr,
            reported_above,
        });
        if self.losses.episode.is_none() {
            self.scoreboard.resent.reset();
        }
        let delivered = self.deliver(ack.now, delivered + sacked_new);
        let is_largest = self.advertise(ack, to);
        self.note_room(ack.now);
        let flight = self.within_window(self.flight());
        self.totals.flight_max = self.totals.flight_max.max(flight);
        self.observers.event(&Event::Acked(Acked {
            now: ack.now,
            number: ack.number,
            ack: to,
            first: self.space.first,
            una: self.space.una,
            next: self.space.nxt,
            mss: self.space.mss,
            is_message: ack.payload > 0,
            advanced: progress,
            limit,
            delivered,
            total: self.totals.delivered,
            reached,
            outstanding,
            flight,
            tsecr: ack.tsecr,
            ecn_echo: ack.ecn_echo,
            has_room: flight + self.space.mss <= self.totals.flight_at_send && self.class() == Limit::Open,
            is_repaired: repairing && self.losses.episode.is_none(),
            window: Advertised {
                bytes: ack.window,
                field: ack.window_field,
                is_known: self.window.known,
                is_syn: ack.is_syn,
                is_largest,
            },
        }));
    }

    /// Takes in an acknowledgement of what was not seen sent; what it is taken for.
    fn beyond_sent(&mut self, ack: &Ack, to: u64) -> u64 {
        if to <= self.space.nxt {
            return to;
        }
        if self.space.probed.take() == Some(to) {
            // The byte that asked for room found some.
            self.totals.bytes += 1;
            self.space.nxt = to;
            self.space.reference = Some((ack.ack, to));
        } else if self.totals.first_data.is_some() && to > self.space.nxt + 1 {
            // Acknowledged but never seen: the capture missed it.
            self.scoreboard.gaps.insert(self.space.nxt, to);
            self.space.nxt = to;
            self.space.reference = Some((ack.ack, to));
            // It left a round trip ago at the latest: the silence before it is the capture's.
            self.clocks.last_send = self.clocks.last_send.max(ack.now.saturating_sub(self.rtt.min.unwrap_or(0)));
            self.clocks.last_data = self.clocks.last_data.max(self.clocks.last_send);
        } else if self.totals.first_data.is_none() {
            (self.space.una, self.space.nxt, self.space.first) = (to, to, to);
            self.scoreboard.acked_end = to;
            self.space.reference = Some((ack.ack, to));
        } else {
            // The number of a FIN that was not seen.
            return self.space.nxt;
        }
        to
    }

    /// Takes in that all up to `to` arrived; how many bytes of it were not reported before.
    #[inline]
    fn advance(&mut self, ack: &Ack, to: u64) -> u64 {
        let mut delivered = to - self.space.una - self.scoreboard.sacked.remove_below(to).min(to - self.space.una);
        delivered -= self.duplicates_told(delivered);
        self.note_uncaptured(to);
        self.scoreboard.resent.remove_below(to);
        self.note_missed_probe(ack.now);
        let from = std::mem::replace(&mut self.space.una, to);
        self.scoreboard.duplicates_in_row = 0;
        self.clocks.last_progress = ack.now;
        self.clocks.head_at = ack.now;
        self.clocks.progress_was_pure = ack.payload == 0;
        let least = self.rtt.min.filter(|_| self.is_exact() && self.rtt.samples >= 8);
        if let Some(at) = self.losses.acknowledged((from, to), ack.now, ack.tsecr, self.rtt.min, least) {
            self.needless(ack, at);
        }
        self.time(ack, to);
        delivered
    }

    /// What is acknowledged and never came to the tap is missing in the capture.
    #[inline]
    fn note_uncaptured(&mut self, to: u64) {
        for (start, end) in self.scoreboard.gaps.below(to) {
            self.remote.ip_ids.were_not_captured();
            self.observers.event(&Event::Uncaptured { start, end, mss: self.space.mss });
        }
        self.totals.missed_bytes += self.scoreboard.gaps.remove_below(to);
    }

    /// Takes in that this many bytes and the FIN's number arrived; gives how much of it is payload of the data phase.
    fn deliver(&mut self, now: u64, mut bytes: u64) -> u64 {
        let all_came = self.space.una == self.space.nxt || self.scoreboard.sacked.end() == Some(self.space.nxt);
        if self.space.fin && !self.space.fin_delivered && all_came {
            // The FIN's number is no payload.
            self.space.fin_delivered = true;
            bytes = bytes.saturating_sub(1);
        }
        if bytes == 0 || self.totals.first_data.is_none() {
            return 0;
        }
        self.totals.delivered += bytes;
        if self.space.una + u64::from(self.space.fin) >= self.space.nxt {
            bytes -= std::mem::take(&mut self.space.alert).min(bytes);
        }
        if bytes > 0 {
            self.clocks.last_delivery = Some(now);
        }
        bytes
    }

    /// A retransmission that began at `start` was not needed, an acknowledgement proves.
    fn needless(&mut self, ack: &Ack, start: u64) {
        let offset = start.saturating_sub(self.space.first);
        self.observers.event(&Event::Needless { now: ack.now, number: ack.number, start, offset });
    }

    /// RTT from an acknowledgement that ends exactly on a segment never sent again.
    ///
    /// Source: Karn's algorithm, RFC 6298 §3.
    fn time(&mut self, ack: &Ack, to: u64) {
        let (mut sample, mut resent) = (None, false);
        while let Some(&front) = self.scoreboard.segments.front()
            && front.end <= to
        {
            resent |= front.resent;
            if !front.parted {
                let payload_end = front.end.min(self.space.payload_end());
                let bytes = payload_end.saturating_sub(self.scoreboard.acked_end);
                self.scoreboard.delivered(bytes, self.space.mss);
            }
            self.scoreboard.acked_end = front.end;
            sample = (front.end == to).then_some(front.sent);
            self.scoreboard.segments.pop_front();
        }
        if let Some(sent) = sample
            && !resent
            && self.is_exact()
            && self.losses.episode.is_none()
        {
            self.rtt_sample(ack.now, sent, ack.now.saturating_sub(sent), ack.tsval, true);
        }
    }

    /// Takes in a round trip that a timestamp's echo tells of, unless the sender was silent meanwhile: it waited, then.
    pub(crate) fn echo_sample(&mut self, now: u64, nanos: u64, tsval: u32) {
        let quiet = self.space.newest_tsval.map_or(0, |newest| tsval.wrapping_sub(newest) as i32);
        let silent = now.saturating_sub(self.clocks.last_send) as f64 > 0.75 * nanos as f64;
        if !(silent && nanos as f64 > 2.0 * self.rtt.smoothed + 100e6) {
            self.rtt_sample(now, now, nanos, Some(tsval), OneWayDelay::is_prompt(quiet, nanos));
        }
    }

    /// Takes an RTT sample in, of data that passed the tap at `passed_at`. The packet that shows it left at `tsval` by its sender's clock,
    /// without a pause before if `prompt`.
    fn rtt_sample(&mut self, now: u64, passed_at: u64, rtt: u64, tsval: Option<u32>, prompt: bool) {
        self.rtt.sample(rtt);
        // What comes before the data phase is no part of it.
        let prompt = prompt && self.totals.first_data.is_some();
        self.observers.event(&Event::Rtt(RttSample {
            now,
            rtt,
            passed_at,
            late: prompt.then(|| self.remote.one_way_delay.late(now, tsval)),
            is_repairing: self.is_repairing(),
        }));
    }

    /// Ends the data phase; the connection ended at `ended`.
    pub(crate) fn finish(&mut self, ended: u64) {
        let all_came = self.space.payload_end() <= self.space.una && self.scoreboard.gaps.total() == 0;
        // Beyond the tap there may have been more, unless the sender closed or its number showed that there was none.
        // Round trips vary by as much again.
        let slack = 2 * self.rtt.min.unwrap_or(0);
        let no_more = self.is_exact() || {
            self.wait_in_vain(ended);
            let told = self.clocks.idle_at.max(self.clocks.last_delivery);
            self.space.fin || told.is_some_and(|at| at.saturating_add(slack) >= self.clocks.now)
        };
        // What waits behind a window that is closed to the very end is not done.
        let is_shut = self.window.size == Some(0) && self.window.is_probed;
        self.observers.event(&Event::Ended(Ended {
            end: self.space.payload_end(),
            mss: self.space.mss,
            retransmits: self.losses.total,
            last_delivery: self.clocks.last_delivery.unwrap_or(0),
            shut_until: is_shut.then_some(ended),
            ends_with_delivery: all_came && !is_shut && no_more,
        }));
    }
}
