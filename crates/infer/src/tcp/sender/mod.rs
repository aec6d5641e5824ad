//! One direction of a connection as its sender lives it: what it sent, what it heard back, what it waited for.
//!
//! All times are those of the sender: the flow hands acknowledgements in when they reach it, not when the tap saw them.
//! Sequence numbers are unwrapped to 64 bits.

mod fresh;
mod ipid_inference;
mod limit_state;
mod notes;
mod retransmission;
mod sack;
mod send_pauses;
mod tail_loss_probe;
mod window_probes;

use crate::observe::example_packets::ExamplePackets;
use crate::observe::gap_spacing::GapSpacing;
use crate::observe::idle_restarts::IdleRestarts;
use crate::observe::nagle_delayed_ack::{NagleDelayedAck, SmallWrite};
use crate::observe::packet_trains::PacketTrains;
use crate::observe::plot_series::PlotRecorder;
use crate::observe::policer_log::PolicerLog;
use crate::observe::rtt_before_loss::RttBeforeLoss;
use crate::observe::slow_start::{NewData, SlowStart};
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use crate::observe::time_by_limit::{Limit, TimeByLimit};
use crate::tcp::packet::{Ack, Data};
use crate::tcp::range_set::RangeSet;
use crate::tcp::receiver_view::ipid_gaps::IpIdGaps;
use crate::tcp::receiver_view::one_way_delay::OneWayDelay;
use crate::tcp::receiver_view::remote_clock::{RemoteClock, SendTiming, SendTriggers};
use crate::tcp::recovery::{AckNews, Losses};
use crate::tcp::rtt_estimator::RttEstimator;
use model::MarkKind;
use notes::Notes;
use sack::Sacked;
use std::collections::VecDeque;
use units::SeqNum;

/// Segments whose departure is remembered for RTT samples; past it no new ones are, so memory stays bounded.
const MOST_CANDIDATES: usize = 1 << 16;
/// Where unwrapped sequence numbers begin, so that what came before the first packet seen stays positive.
const ORIGIN: u64 = 1 << 32;

#[derive(Debug, Clone, Copy, Default)]
struct SentSegment {
    end: u64,
    sent: u64,
    /// Bytes of the millisecond it was sent in, by then.
    burst: u32,
    resent: bool,
    /// Sent again in parts, so what was acknowledged of it need not have come at its length.
    parted: bool,
    /// Timeouts there had been when it was last sent again.
    timeouts: u32,
}

/// One direction's state and what was counted in it.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    reference: Option<(SeqNum, u64)>,
    knows_first: bool,
    /// The last number before `nxt` is its FIN's; that was acknowledged.
    fin: bool,
    fin_delivered: bool,
    /// It came with data when that was sent again.
    fin_joined: bool,
    pub(crate) first: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) sacked: RangeSet,
    pub(crate) resent: RangeSet,
    /// Below `nxt`, but never seen.
    gaps: RangeSet,
    gap_at: u64,
    unseen: IpIdGaps,
    stamps: RemoteClock,
    /// What the current packet's timestamps tell.
    then: Option<SendTiming>,
    pub(crate) prompts: SendTriggers,
    /// TSval of what its receiver's program asked once more, until it is answered.
    asked_again: Option<u32>,
    /// Its receiver sent data since a packet came from it, so the next may be a bare acknowledgement.
    is_asked: bool,
    /// When an answer to what it was asked last can come first: it had sent all before.
    answers_at: u64,
    pub(crate) noted: Notes,
    /// What was sent up to here is not all below `nxt`: some of it no tap saw.
    sent_to: u64,
    /// Segments after `nxt` that were lost, as what no retransmission can have been tells.
    tail: u64,
    /// Since the last timeout everything missing up to here was sent again.
    resent_to: u64,
    /// How long the first data was in coming, where nothing tells that there was none before it; nanoseconds.
    opened_late: Option<u64>,
    candidates: VecDeque<SentSegment>,
    newest_tsval: Option<u32>,
    newest_ip_id: Option<u16>,
    pub(crate) mss: u64,
    pub(crate) mss_known: bool,
    pub(crate) largest_payload: u32,
    /// The window field can be turned into bytes.
    pub(crate) window_known: bool,
    pub(crate) window: Option<u64>,
    pub(crate) window_max: u64,
    edge: u64,
    /// When new data last left less than a segment of the window unused.
    filled_at: Option<u64>,
    /// Since when the window has had room for all that is gathered into one burst, with nothing sent into it.
    open_at: Option<u64>,
    pub(crate) last_send: u64,
    last_progress: u64,
    /// When anything was sent again last.
    last_again: u64,
    last_heard: u64,
    /// When the first unacknowledged byte was sent last, or came to be the first.
    head_at: u64,
    /// When it was told first that something after it came.
    told_at: Option<u64>,
    /// It was an acknowledgement without payload that brought it.
    progress_was_pure: bool,
    flight_at_send: u64,
    /// What was in flight at a far sender when it had sent the packet before, and when it had heard what made it send this one; as far as
    /// timestamps tell.
    pub(crate) told_flights: Option<(u64, u64)>,
    pub(crate) duplicates_in_row: u32,
    /// Bytes that duplicates told of and that are not acknowledged yet, where nothing is acknowledged selectively.
    duplicated: u64,
    pub(crate) flight_max: u64,
    /// New segments that were sent while the flight was an eighth and more below that.
    pub(crate) from_below: u64,
    pub(crate) losses: Losses,
    pub(crate) rtt: RttEstimator,
    pub(crate) legs: OneWayDelay,
    pub(crate) trains: PacketTrains,
    pub(crate) timeline: TimeByLimit,
    pub(crate) start: SlowStart,
    pub(crate) wakes: SndbufWakeups,
    pub(crate) policed: PolicerLog,
    pub(crate) heights: RttBeforeLoss,
    pub(crate) holes: GapSpacing,
    /// Nanoseconds between the last two packets with data.
    last_gap: u64,
    pub(crate) restarts: IdleRestarts,
    pub(crate) held: NagleDelayedAck,
    /// Largest payload of a segment that was acknowledged and sent once.
    pub(crate) largest_delivered: u64,
    acked_end: u64,
    pub(crate) sack_permitted: bool,
    /// RTT samples come from acknowledgements; else the flow hands them in.
    pub(crate) times_acks: bool,
    pub(crate) delivered: u64,
    /// Payload, each byte counted once.
    pub(crate) bytes: u64,
    pub(crate) data_packets: u64,
    pub(crate) out_of_order: u64,
    pub(crate) dup_acks: u64,
    pub(crate) zero_windows: u64,
    /// Where the byte ends that was sent into a closed window to ask for room; it counts when it is acknowledged.
    probed: Option<u64>,
    pub(crate) window_full: u64,
    /// Sum of the windows that were full.
    pub(crate) full_window_sum: f64,
    /// Number, mean and mean deviation of full windows below half of the largest.
    small_windows: (f64, f64, f64),
    /// Acknowledgements of new data under such windows, and those of them that left the window ending about where it did: its receiver
    /// has the data, and its program has not read it.
    small_edges: (u64, u64),
    pub(crate) missed_bytes: u64,
    pub(crate) first_data: Option<(u64, u64)>,
    /// Times data was sent with nothing in flight.
    pub(crate) bursts: u64,
    /// The last new segment was short: the sender had nothing more.
    drained: bool,
    /// When the last new data was acknowledged.
    pub(crate) last_delivery: Option<u64>,
    pub(crate) sights: ExamplePackets,
    pub(crate) drawn: Option<Box<PlotRecorder>>,
}

impl Sender {
    /// Sets the sequence number of the first byte, where a SYN told it.
    pub(crate) fn begin(&mut self, seq: SeqNum) {
        if self.reference.is_none() {
            self.reference = Some((seq, ORIGIN));
        }
    }

    /// Sets the sequence number of the first byte, as a SYN tells it: what is missing before the first data was lost.
    pub(crate) fn begin_with_syn(&mut self, seq: SeqNum) {
        self.knows_first |= self.reference.is_none();
        self.begin(seq);
    }

    /// The sequence number after the highest byte sent.
    pub(crate) fn next_seq(&self) -> Option<SeqNum> {
        let (reference, at) = self.reference?;
        Some(reference.add(self.nxt.wrapping_sub(at) as u32))
    }

    /// Whether all that it sent was acknowledged.
    pub(crate) const fn is_answered(&self) -> bool {
        self.una >= self.nxt
    }

    fn unwrap_seq(&self, seq: SeqNum) -> Option<u64> {
        let (reference, at) = self.reference?;
        at.checked_add_signed(i64::from(seq.since(reference)))
    }

    /// Where its payload ends so far.
    fn payload_end(&self) -> u64 {
        self.nxt - u64::from(self.fin)
    }

    /// Takes a packet with data, or with the FIN, that the sender sent in.
    pub(crate) fn data(&mut self, data: &Data) {
        self.begin(data.seq);
        let Some(start) = self.unwrap_seq(data.seq) else { return };
        let end = start + u64::from(data.len) + u64::from(data.fin);
        // A jump of a gigabyte is a damaged packet, or another connection's.
        if start > self.nxt + (1 << 30) {
            return;
        }
        // Keep-alives carry one old byte, or none (RFC 9293 §3.8.4): no loss, no data.
        if data.len <= 1 && !data.fin && start + 1 == self.nxt && end <= self.una {
            return;
        }
        if self.is_window_probe(start, data.len) {
            self.probed = Some(end);
            return;
        }
        // The end of a direction that sent nothing.
        if data.len == 0 && self.first_data.is_none() {
            return;
        }
        if !self.times_acks {
            self.then = data.tsval.zip(data.tsecr).and_then(|(tsval, tsecr)| self.stamps.sent(data.now, tsval, tsecr));
            self.answered_again(data.tsecr, start <= self.nxt);
            if end > self.nxt {
                self.prompts.sent(self.then);
            }
        }
        self.data_packets += u64::from(data.len > 0);
        if data.len > 0 {
            self.note_sent(data);
        }
        self.largest_payload = self.largest_payload.max(data.len);
        if !self.mss_known {
            self.mss = u64::from(self.largest_payload.clamp(536, 1460));
        }
        if self.first_data.is_none() {
            self.first_data = Some((data.now, data.number));
            if self.una == ORIGIN && self.nxt == ORIGIN && !self.knows_first {
                (self.first, self.una, self.nxt) = (start, start, start);
                self.acked_end = start;
            }
            self.timeline.begin(data.now);
            self.last_progress = data.now;
        }
        self.timeline.advance(data.now, self.class());
        if end > self.nxt {
            let timer = self.unseen_before(data, start);
            self.charge_timer(timer, data.now);
            self.new_data(data, start, end);
            if timer.is_some() {
                self.unseen.filled();
                self.retransmission(data, start, end, timer);
            }
        } else {
            self.old_data(data, start, end);
        }
        self.last_gap = data.now.saturating_sub(self.last_send);
        self.last_send = data.now;
        self.is_asked = false;
        let flight = self.flight();
        self.flight_at_send = flight;
        self.note_flight(data.now, flight);
    }

    fn new_data(&mut self, data: &Data, start: u64, end: u64) {
        if start > self.nxt {
            if !self.times_acks && !self.is_repairing() {
                self.heights.missed();
            }
            if !self.times_acks && self.losses.episode.is_none() {
                self.holes.seen(data.now.saturating_sub(self.last_send), self.last_gap);
            }
            self.gaps.insert(self.nxt, start);
            self.gap_at = data.now;
            self.unseen.overtook(self.nxt, start);
            self.policed.missed(self.last_send, data.now, self.nxt, start, self.mss.max(1));
            self.note_missing(data.now, start);
        } else if start < self.nxt {
            // Old bytes with new ones behind: the old ones were sent again.
            self.retransmission(data, start, self.nxt, None);
        }
        if self.nxt <= self.una {
            self.head_at = data.now;
        }
        if data.fin {
            self.fin = true;
        }
        // A FIN alone ends no pause: the data before it was the last there was.
        if data.len == 0 {
            self.extend(data, end);
            return;
        }
        let clocked = data.now.saturating_sub(self.last_progress) <= 1_000_000;
        let mut pause = self.pause_seen(data, clocked);
        let told = self.pause_told(data);
        self.from_below += u64::from(pause.ended_at * 8 < self.flight_max * 7);
        let was_open = self.was_open(data.now);
        if self.drained && self.class_is_unforced(data.now) && (was_open || !self.times_acks || !self.window_known) {
            pause.charged = self.timeline.had_nothing_to_send();
        }
        self.drained = u64::from(data.len) < self.mss;
        // Acknowledgements a tap shows in one batch empty the flight for an instant: that is no pause.
        if self.bytes == 0 || self.una >= start && data.now.saturating_sub(self.last_progress) > 1_000_000 {
            self.bursts += 1;
        }
        self.bytes += end - u64::from(data.fin) - start.max(self.nxt);
        self.held.sent(&SmallWrite {
            now: data.now,
            number: data.number,
            len: u64::from(data.len),
            mss: self.mss,
            released: clocked && self.progress_was_pure && self.una >= start,
            waited: self.last_progress.saturating_sub(self.last_send),
            rtt_min: self.rtt.min.unwrap_or(0),
        });
        let quiet = data.now.saturating_sub(self.last_send);
        let flight = self.flight() + end - start;
        let counted = (self.mss, self.losses.total);
        self.restarts.sent((data.number, data.now), start, self.una, flight, quiet, counted);
        self.policed.sent(data.now, start, data.len);
        self.open_at = None;
        self.extend(data, end);
        self.note_room(data.now);
        // A quarter of a round trip; twice its deviation where it jitters, for acknowledgements come in clumps then.
        let patience = (self.rtt.min.unwrap_or(0) / 4).max(2 * self.rtt.variation as u64).max(1_000_000);
        if was_open {
            pause.charged += self.timeline.had_window();
        }
        pause.charged += self.timeline.sent(data.now, patience);
        if let Some(pause) = if self.times_acks { Some(pause) } else { told } {
            self.wakes.ended(pause);
        }
        if !self.times_acks {
            // Beside the receiver the data itself shows how bursts come out of the path.
            self.trains.delivered(data.now, self.bytes, self.mss);
        }
        if self.window_known && self.window.is_some() && self.edge < self.nxt + self.segment() {
            self.filled_at = Some(data.now);
            self.window_full += 1;
            self.noted.growth.full();
            self.note_full_window();
            if self.sights.window_full.len() < 3 {
                self.sights.window_full.push((data.number, data.now));
            }
        }
        self.start.sent(NewData {
            now: data.now,
            una: self.una,
            nxt: self.nxt,
            flight: self.flight(),
            acked: self.una.saturating_sub(self.first),
            clocked,
            idle: self.timeline.time[Limit::Application as usize],
        });
        self.note_window(data, pause.charged > 0);
        let t = data.now as f64 / 1e9;
        let byte = self.nxt.saturating_sub(self.first);
        if let Some(drawn) = &mut self.drawn {
            drawn.sent.push(t, byte as f64);
        }
    }

    /// What was sent reaches to `end` now.
    fn extend(&mut self, data: &Data, end: u64) {
        self.nxt = end;
        self.reference = Some((data.seq.add(data.len).add(u32::from(data.fin)), end));
        self.newest_tsval = data.tsval.or(self.newest_tsval);
        self.newest_ip_id = data.ip_id.or(self.newest_ip_id);
        if self.candidates.len() < MOST_CANDIDATES {
            let burst = self.noted.burst;
            if self.candidates.capacity() == 0 {
                // A first flight, at once.
                self.candidates.reserve(16);
            }
            self.candidates.push_back(SentSegment { end, sent: data.now, burst, ..SentSegment::default() });
        }
    }

    /// Takes in what reached the sender from its receiver.
    pub(crate) fn ack(&mut self, ack: &Ack) {
        self.begin(ack.ack);
        let Some(mut to) = self.unwrap_seq(ack.ack) else { return };
        if to > self.nxt + (1 << 30) || to + (1 << 31) < self.una {
            return;
        }
        let class = self.class();
        self.timeline.advance(ack.now, class);
        let acknowledged = to;
        if to == self.first && self.nxt > to && ack.is_syn {
            self.take_back(to);
        }
        if to > self.nxt {
            if self.probed.take() == Some(to) {
                // The byte that asked for room found some.
                self.bytes += 1;
                self.nxt = to;
                self.reference = Some((ack.ack, to));
            } else if self.first_data.is_some() && to > self.nxt + 1 {
                // Acknowledged but never seen: the capture missed it.
                self.gaps.insert(self.nxt, to);
                self.nxt = to;
                self.reference = Some((ack.ack, to));
                // It left a round trip ago at the latest: the silence before it is the capture's.
                self.last_send = self.last_send.max(ack.now.saturating_sub(self.rtt.min.unwrap_or(0)));
            } else if self.first_data.is_none() {
                (self.una, self.nxt, self.first) = (to, to, to);
                self.acked_end = to;
                self.reference = Some((ack.ack, to));
            } else {
                // The number of a FIN that was not seen.
                to = self.nxt;
            }
        }
        self.note_overtaken(ack, to);
        let repairing = self.losses.episode.is_some();
        let mut delivered = 0;
        let Sacked { sacked_new, reported_above, original } = self.beyond(ack, to, acknowledged);
        let progress = to > self.una;
        if progress {
            delivered += to - self.una - self.sacked.remove_below(to).min(to - self.una);
            delivered -= self.duplicates_told(delivered);
            self.missed_bytes += self.gaps.remove_below(to);
            self.resent.remove_below(to);
            self.wakes.heard(ack.now, self.nxt - self.una);
            self.note_missed_probe(ack.now);
            let from = std::mem::replace(&mut self.una, to);
            self.duplicates_in_row = 0;
            self.last_progress = ack.now;
            self.head_at = ack.now;
            self.unseen.acknowledged(to);
            self.restarts.acked(ack.now);
            self.progress_was_pure = ack.pure;
            let least = self.rtt.min.filter(|_| self.times_acks && self.rtt.samples >= 8);
            if let Some(at) = self.losses.acknowledged((from, to), ack.now, ack.tsecr, self.rtt.min, least) {
                self.mark(ack.now, at, MarkKind::Spurious);
            }
            self.time(ack, to);
        } else {
            delivered += self.duplicate(ack, to, sacked_new);
        }
        let told_at = if progress { None } else { self.told_at };
        self.told_at = (self.sacked.total() > 0).then(|| told_at.unwrap_or(ack.now));
        self.last_heard = ack.now;
        self.losses.heard(&AckNews {
            una: self.una,
            next: (self.nxt + self.tail * self.mss).max(self.sent_to),
            progress,
            sacked: sacked_new > 0,
            duplicate: ack.pure && !progress && self.nxt > self.una,
            original,
            tsecr: ack.tsecr,
            reported_above,
        });
        if self.losses.episode.is_none() {
            self.resent.clear();
            if repairing {
                self.noted.windows.repaired(self.nxt);
            }
        }
        let mut new = delivered + sacked_new;
        if self.fin && !self.fin_delivered && (self.una == self.nxt || self.sacked.end() == Some(self.nxt)) {
            // The FIN's number is no payload.
            self.fin_delivered = true;
            new = new.saturating_sub(1);
        }
        self.deliver(ack.now, class, new);
        if progress {
            self.timeline.progress();
        }
        if ack.ecn_echo {
            self.start.echoed(ack.now);
            // The window is cut as after a loss (RFC 3168 §6.1.2).
            self.timeline.lossy(ack.now);
        }
        if progress {
            self.note_edge(to + ack.window, delivered);
        }
        self.advertise(ack, to);
        self.note_room(ack.now);
        let flight = self.flight();
        if flight + self.mss <= self.flight_at_send && self.class() == Limit::Open {
            self.timeline.room(ack.now);
        }
        if matches!(class, Limit::ReceiveWindow | Limit::Reader) {
            self.start.limited();
        }
        self.note_flight(ack.now, flight);
        let acked = self.una.saturating_sub(self.first);
        if progress && let Some(drawn) = &mut self.drawn {
            drawn.acked.push(ack.now as f64 / 1e9, acked as f64);
        }
    }

    fn deliver(&mut self, now: u64, class: Limit, bytes: u64) {
        if bytes == 0 || self.timeline.start.is_none() {
            return;
        }
        self.delivered += bytes;
        self.last_delivery = Some(now);
        self.timeline.delivered(class, bytes);
        if let Some(slice) = self.timeline.slice(now) {
            slice.delivered += bytes;
            match class {
                Limit::Open => slice.open_delivered += bytes,
                Limit::ReceiveWindow => slice.window_delivered += bytes,
                _ => {}
            }
        }
        if self.times_acks {
            self.trains.delivered(now, self.delivered, self.mss);
        }
    }

    /// RTT from an acknowledgement that ends exactly on a segment never sent again.
    ///
    /// Source: Karn's algorithm, RFC 6298 §3.
    fn time(&mut self, ack: &Ack, to: u64) {
        let (mut sample, mut resent) = (None, false);
        while let Some(&front) = self.candidates.front()
            && front.end <= to
        {
            resent |= front.resent;
            if !front.parted {
                let payload_end = front.end.min(self.payload_end());
                self.largest_delivered = self.largest_delivered.max(payload_end.saturating_sub(self.acked_end));
            }
            self.acked_end = front.end;
            sample = (front.end == to).then_some(front.sent);
            self.candidates.pop_front();
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
        let quiet = self.newest_tsval.map_or(0, |newest| tsval.wrapping_sub(newest) as i32);
        let silent = now.saturating_sub(self.last_send) as f64 > 0.75 * nanos as f64;
        if !(silent && nanos as f64 > 2.0 * self.rtt.smoothed + 100e6) {
            self.rtt_sample(now, nanos, Some(tsval), OneWayDelay::is_prompt(quiet, nanos));
        }
    }

    /// Takes an RTT sample in, which a packet told that left at `tsval` by its sender's clock, without a pause before if `prompt`.
    fn rtt_sample(&mut self, now: u64, nanos: u64, tsval: Option<u32>, prompt: bool) {
        self.rtt.sample(nanos);
        self.heights.at_sender = self.times_acks;
        self.heights.sample(nanos, !self.is_repairing());
        self.policed.timed(if self.times_acks { now.saturating_sub(nanos) } else { now }, nanos);
        if let Some(slice) = self.timeline.slice(now) {
            slice.timed(nanos, prompt.then(|| self.legs.late(now, tsval)));
        }
        if let Some(drawn) = &mut self.drawn {
            drawn.rtt.push(now as f64 / 1e9, nanos as f64 / 1e6);
        }
    }

    /// Ends the data phase.
    pub(crate) fn finish(&mut self) {
        self.restarts.end(self.payload_end(), self.mss, self.losses.total);
        if !self.times_acks {
            if self.fin && self.gaps.total() == 0 {
                self.unseen.add_up(self.fin_joined);
            }
            self.losses.lost_unseen(self.unseen.lost());
            self.wait_in_vain();
        }
        self.noted.spans.finish();
        // A finished flow is to be small.
        self.unseen = IpIdGaps::default();
        self.timeline.finish();
        let all_came = self.payload_end() <= self.una && self.gaps.total() == 0;
        // Beyond the tap there may have been more, unless the sender closed.
        if all_came && (self.times_acks || self.fin) {
            self.timeline.end_with_data();
        }
    }
}
