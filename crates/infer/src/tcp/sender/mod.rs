//! One direction of a connection as its sender lives it: what it sent, what it heard back, what it waited for.
//!
//! All times are those of the sender: the flow hands acknowledgements in when they reach it, not when the tap saw them.
//! Sequence numbers are unwrapped to 64 bits.

mod clocks;
mod limit_state;
mod notes;
mod retransmission;
mod sack;
mod scoreboard;
mod send_pauses;
mod send_space;
mod send_window;
mod tail_loss_probe;
mod totals;
mod window_probes;

pub(crate) use send_window::FULL_PART;

use crate::observe::Observers;
use crate::observe::nagle_delayed_ack::SmallWrite;
use crate::observe::plot_series::{PlotRecorder, Recording};
use crate::observe::slow_start::NewData;
use crate::observe::stop_and_wait::SentData;
use crate::observe::time_by_limit::Limit;
use crate::reset::Reset;
use crate::tcp::packet::{Ack, Data};
use crate::tcp::receiver_view::RemoteSender;
use crate::tcp::receiver_view::one_way_delay::OneWayDelay;
use crate::tcp::recovery::{AckNews, Losses};
use crate::tcp::rtt_estimator::RttEstimator;
use clocks::Clocks;
use sack::Sacked;
use scoreboard::{MAX_SEGMENTS, Scoreboard, SentSegment};
use send_space::{ORIGIN, SendSpace};
use send_window::SendWindow;
use thalweg_model::MarkKind;
use totals::Totals;

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
    /// RTT samples come from acknowledgements; else the flow hands them in.
    pub(crate) times_acks: bool,
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
        self.times_acks = true;
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
        self.observers.plots = PlotRecorder::of(recording);
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
        if !self.times_acks {
            self.remote.timing =
                data.tsval.zip(data.tsecr).and_then(|(tsval, tsecr)| self.remote.clock.sent(data.now, tsval, tsecr));
            if end > self.space.nxt {
                self.remote.triggers.sent(self.remote.timing);
            }
        }
        self.totals.data_packets += u64::from(data.len > 0);
        if end > self.space.nxt {
            self.observers.unscaled_window.sent(end);
        } else {
            self.observers.unscaled_window.resent(start);
        }
        if data.len > 0 {
            self.note_sent(data);
        }
        self.space.largest_payload = self.space.largest_payload.max(data.len);
        if !self.space.mss_known {
            self.space.mss = u64::from(self.space.largest_payload.clamp(536, 1460));
        }
        if self.totals.first_data.is_none() {
            self.totals.first_data = Some((data.now, data.number));
            if self.space.una == ORIGIN && self.space.nxt == ORIGIN && !self.space.knows_first {
                (self.space.first, self.space.una, self.space.nxt) = (start, start, start);
                self.scoreboard.acked_end = start;
            }
            self.observers.time.begin(data.now);
            self.clocks.last_progress = data.now;
        }
        self.observers.time.advance(data.now, self.class());
        if end > self.space.nxt {
            let lost = self.first_copy_lost(data, start);
            if let Some(lost) = lost {
                self.observers.time.timer_fired(lost.longest);
            }
            self.new_data(data, start, end);
            if let Some(lost) = lost {
                self.retransmission(data, start, end, Some(lost.kind));
                self.losses.flight_lost(lost.timeouts - 1, lost.flight_end);
            }
        } else {
            self.old_data(data, start, end);
        }
        self.clocks.last_gap = data.now.saturating_sub(self.clocks.last_send);
        self.clocks.last_send = data.now;
        let flight = self.flight();
        self.totals.flight_at_send = flight;
        self.note_flight(data.now, flight);
    }

    fn new_data(&mut self, data: &Data, start: u64, end: u64) {
        self.note_place(data, start);
        if self.space.nxt <= self.space.una {
            self.clocks.head_at = data.now;
        }
        if data.fin {
            self.space.fin = true;
        }
        // A FIN alone ends no pause: the data before it was the last there was.
        if data.len == 0 {
            self.extend(data, end);
            return;
        }
        let clocked = data.now.saturating_sub(self.clocks.last_progress) <= 1_000_000;
        let mut pause = self.pause_seen(data, clocked);
        let told = self.pause_told(data);
        self.totals.from_below += u64::from(pause.ended_at * 8 < self.totals.flight_max * 7);
        let was_open = self.was_open(data.now);
        if self.totals.drained
            && self.class_is_unforced(data.now)
            && (was_open || !self.times_acks || !self.window.known)
        {
            pause.charged = self.observers.time.had_nothing_to_send();
        }
        self.totals.drained = u64::from(data.len) < self.space.mss;
        // Acknowledgements a tap shows in one batch empty the flight for an instant: that is no pause.
        if self.totals.bytes == 0
            || self.space.una >= start && data.now.saturating_sub(self.clocks.last_progress) > 1_000_000
        {
            self.totals.bursts += 1;
        }
        self.totals.bytes += end - u64::from(data.fin) - start.max(self.space.nxt);
        self.observers.nagle.sent(&SmallWrite {
            now: data.now,
            number: data.number,
            len: u64::from(data.len),
            mss: self.space.mss,
            released: clocked && self.clocks.progress_was_pure && self.space.una >= start,
            waited: self.clocks.last_progress.saturating_sub(self.clocks.last_send),
            rtt_min: self.rtt.min.unwrap_or(0),
        });
        let quiet = data.now.saturating_sub(self.clocks.last_send);
        let flight = self.flight() + end - start;
        let counted = (self.space.mss, self.losses.total);
        self.observers.idle_restarts.sent((data.number, data.now), start, self.space.una, flight, quiet, counted);
        self.observers.policer_log.sent(data.now, start, data.len);
        self.observers.send_spacing.sent(data.now, u64::from(data.len));
        self.note_stop(data, start, flight);
        self.window.open_at = None;
        self.extend(data, end);
        self.note_room(data.now);
        // A quarter of a round trip; twice its deviation where it jitters, for acknowledgements come in clumps then.
        let patience = (self.rtt.min.unwrap_or(0) / 4).max(2 * self.rtt.variation as u64).max(1_000_000);
        if was_open {
            pause.charged += self.observers.time.had_window();
        }
        pause.charged += self.observers.time.sent(data.now, patience);
        if let Some(pause) = if self.times_acks { Some(pause) } else { told } {
            self.observers.sndbuf_wakeups.ended(pause);
        }
        if !self.times_acks {
            // Beside the receiver the data itself shows how bursts come out of the path.
            self.observers.delivered(data.now, self.totals.bytes, self.space.mss);
        }
        self.note_full_window(data);
        self.observers.slow_start.sent(NewData {
            now: data.now,
            una: self.space.una,
            nxt: self.space.nxt,
            flight: self.flight(),
            acked: self.space.una.saturating_sub(self.space.first),
            clocked,
            idle: self.observers.time.time[Limit::Application as usize],
        });
        self.note_window(data, pause.charged > 0);
        let t = data.now as f64 / 1e9;
        let byte = self.space.nxt.saturating_sub(self.space.first);
        if let Some(drawn) = &mut self.observers.plots {
            drawn.sent.push(t, byte as f64);
        }
    }

    /// New data begins where the one before ended, beyond a gap, or with old bytes.
    #[inline]
    fn note_place(&mut self, data: &Data, start: u64) {
        if start > self.space.nxt {
            if !self.times_acks && !self.is_repairing() {
                self.observers.rtt_before_loss.missed();
            }
            self.losses.reveals_flight(start);
            self.scoreboard.gaps.insert(self.space.nxt, start);
            self.scoreboard.gap_at = data.now;
            self.observers.policer_log.missed(
                self.clocks.last_send,
                data.now,
                self.space.nxt,
                start,
                self.space.mss.max(1),
            );
            self.note_missing(data.now, start);
        } else if start < self.space.nxt {
            // Old bytes with new ones behind: the old ones were sent again.
            self.retransmission(data, start, self.space.nxt, None);
        }
    }

    /// Asks whether the sender had stopped before this data, and by what it goes on.
    #[inline]
    fn note_stop(&mut self, data: &Data, start: u64, flight: u64) {
        let stopped = self.observers.stop_and_wait.sent(&SentData {
            number: data.number,
            now: data.now,
            start,
            una: self.space.una,
            flight,
            last_send: self.clocks.last_send,
            last_progress: self.clocks.last_progress,
        });
        if let Some(amount) = stopped {
            self.observers.write_timer.burst(data.now, amount);
        }
    }

    /// Notes that what was sent fills the receiver's window, if it does.
    #[inline]
    fn note_full_window(&mut self, data: &Data) {
        if self.window.known && self.window.size.is_some() && self.window.edge < self.space.nxt + self.segment() {
            self.window.filled_at = Some(data.now);
            self.window.full += 1;
            self.observers.window_growth.full();
            self.window.full_sum += self.window.size.unwrap_or(0) as f64;
            if self.observers.examples.window_full.len() < 3 {
                self.observers.examples.window_full.push((data.number, data.now));
            }
        }
    }

    /// What was sent reaches to `end` now.
    fn extend(&mut self, data: &Data, end: u64) {
        self.space.nxt = end;
        self.space.reference = Some((data.seq.add(data.len).add(u32::from(data.fin)), end));
        self.space.newest_tsval = data.tsval.or(self.space.newest_tsval);
        self.space.newest_ip_id = data.ip_id.or(self.space.newest_ip_id);
        if self.scoreboard.segments.len() < MAX_SEGMENTS {
            let burst = self.observers.burst;
            if self.scoreboard.segments.capacity() == 0 {
                // A first flight, at once.
                self.scoreboard.segments.reserve(16);
            }
            self.scoreboard.segments.push_back(SentSegment { end, sent: data.now, burst, ..SentSegment::default() });
        }
    }

    /// Takes in what reached the sender from its receiver.
    pub(crate) fn ack(&mut self, ack: &Ack) {
        self.space.begin(ack.ack);
        let Some(mut to) = self.space.unwrap_seq(ack.ack) else { return };
        if to > self.space.nxt + (1 << 30) || to + (1 << 31) < self.space.una {
            return;
        }
        let class = self.class();
        self.observers.time.advance(ack.now, class);
        let acknowledged = to;
        if to == self.space.first && self.space.nxt > to && ack.is_syn {
            self.take_back(to);
        }
        to = self.beyond_sent(ack, to);
        if !ack.pure {
            self.observers.stop_and_wait.message(ack.now);
        }
        self.note_overtaken(ack, to);
        self.note_pruned(ack, to);
        let repairing = self.losses.episode.is_some();
        let Sacked { sacked_new, reported_above, original } = self.beyond(ack, to, acknowledged);
        let progress = to > self.space.una;
        self.observers.unscaled_window.arrived(to.max(self.scoreboard.sacked.end().unwrap_or(0)));
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
            self.scoreboard.resent.clear();
            if repairing {
                self.observers.congestion_control.repaired(self.space.nxt);
            }
        }
        let mut new = delivered + sacked_new;
        if self.space.fin
            && !self.space.fin_delivered
            && (self.space.una == self.space.nxt || self.scoreboard.sacked.end() == Some(self.space.nxt))
        {
            // The FIN's number is no payload.
            self.space.fin_delivered = true;
            new = new.saturating_sub(1);
        }
        self.deliver(ack.now, class, new);
        if progress {
            self.observers.time.progress();
        }
        if ack.ecn_echo {
            self.observers.slow_start.echoed(ack.now);
            // The window is cut as after a loss (RFC 3168 §6.1.2).
            self.observers.time.lossy(ack.now);
        }
        self.advertise(ack, to);
        self.note_room(ack.now);
        let flight = self.flight();
        if flight + self.space.mss <= self.totals.flight_at_send && self.class() == Limit::Open {
            self.observers.time.room(ack.now);
        }
        if matches!(class, Limit::ReceiveWindow | Limit::Reader) {
            self.observers.slow_start.limited();
        }
        self.note_flight(ack.now, flight);
        let acked = self.space.una.saturating_sub(self.space.first);
        if progress && let Some(drawn) = &mut self.observers.plots {
            drawn.acked.push(ack.now as f64 / 1e9, acked as f64);
        }
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
        self.totals.missed_bytes += self.scoreboard.gaps.remove_below(to);
        self.scoreboard.resent.remove_below(to);
        self.observers.sndbuf_wakeups.heard(ack.now, self.space.nxt - self.space.una);
        self.note_missed_probe(ack.now);
        let from = std::mem::replace(&mut self.space.una, to);
        self.scoreboard.duplicates_in_row = 0;
        self.clocks.last_progress = ack.now;
        self.clocks.head_at = ack.now;
        self.observers.idle_restarts.acked(ack.now);
        self.clocks.progress_was_pure = ack.pure;
        let least = self.rtt.min.filter(|_| self.times_acks && self.rtt.samples >= 8);
        if let Some(at) = self.losses.acknowledged((from, to), ack.now, ack.tsecr, self.rtt.min, least) {
            self.mark((ack.now, ack.number), at, MarkKind::Spurious);
        }
        self.time(ack, to);
        delivered
    }

    fn deliver(&mut self, now: u64, class: Limit, bytes: u64) {
        if bytes == 0 || self.observers.time.start.is_none() {
            return;
        }
        self.totals.delivered += bytes;
        self.clocks.last_delivery = Some(now);
        self.observers.time.delivered(class, bytes);
        if let Some(slice) = self.observers.time.slice(now) {
            slice.delivered += bytes;
            match class {
                Limit::Open => slice.open_delivered += bytes,
                Limit::ReceiveWindow => slice.window_delivered += bytes,
                _ => {}
            }
        }
        if self.times_acks {
            self.observers.delivered(now, self.totals.delivered, self.space.mss);
        }
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
                self.scoreboard.largest_delivered =
                    self.scoreboard.largest_delivered.max(payload_end.saturating_sub(self.scoreboard.acked_end));
            }
            self.scoreboard.acked_end = front.end;
            sample = (front.end == to).then_some(front.sent);
            self.scoreboard.segments.pop_front();
        }
        if let Some(sent) = sample
            && !resent
            && self.times_acks
            && self.losses.episode.is_none()
        {
            self.rtt_sample(ack.now, ack.now.saturating_sub(sent), ack.tsval, true);
        }
    }

    /// Takes in a round trip that a timestamp's echo tells of, unless the sender was silent meanwhile: it waited, then.
    pub(crate) fn echo_sample(&mut self, now: u64, nanos: u64, tsval: u32) {
        let quiet = self.space.newest_tsval.map_or(0, |newest| tsval.wrapping_sub(newest) as i32);
        let silent = now.saturating_sub(self.clocks.last_send) as f64 > 0.75 * nanos as f64;
        if !(silent && nanos as f64 > 2.0 * self.rtt.smoothed + 100e6) {
            self.rtt_sample(now, nanos, Some(tsval), OneWayDelay::is_prompt(quiet, nanos));
        }
    }

    /// Takes an RTT sample in, which a packet told that left at `tsval` by its sender's clock, without a pause before if `prompt`.
    fn rtt_sample(&mut self, now: u64, nanos: u64, tsval: Option<u32>, prompt: bool) {
        self.rtt.sample(nanos);
        self.observers.rtt_before_loss.at_sender = self.times_acks;
        self.observers.rtt_before_loss.sample(nanos, !self.is_repairing());
        self.observers.policer_log.timed(if self.times_acks { now.saturating_sub(nanos) } else { now }, nanos);
        if let Some(slice) = self.observers.time.slice(now) {
            slice.timed(nanos, prompt.then(|| self.remote.one_way_delay.late(now, tsval)));
        }
        if let Some(drawn) = &mut self.observers.plots {
            drawn.rtt.push(now as f64 / 1e9, nanos as f64 / 1e6);
        }
    }

    /// Ends the data phase.
    pub(crate) fn finish(&mut self) {
        self.observers.idle_restarts.end(self.space.payload_end(), self.space.mss, self.losses.total);
        if !self.times_acks {
            self.wait_in_vain();
        }
        self.observers.loss_episodes.finish();
        self.observers.time.finish();
        if let Some(pruned) = &mut self.observers.pruned {
            pruned.finish(self.clocks.last_delivery.unwrap_or(0));
        }
        let all_came = self.space.payload_end() <= self.space.una && self.scoreboard.gaps.total() == 0;
        // Beyond the tap there may have been more, unless the sender closed or its number told that there was none.
        let slack = self.rtt.min.unwrap_or(0);
        let no_more = self.space.fin
            || self.clocks.idle_at.is_some_and(|at| at.saturating_add(slack) >= self.observers.time.now());
        // What waits behind a window that is closed to the very end is not done.
        let is_shut = self.window.size == Some(0) && self.window.is_probed;
        if all_came && !is_shut && (self.times_acks || no_more) {
            self.observers.time.end_with_data();
        }
    }
}
