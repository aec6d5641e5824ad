//! What is counted about one direction of a connection while it lasts; nothing here concludes anything.
//!
//! [`Observers::event`] is the only way in. It hands each event to the observers that count it, and what one observer finds to the others
//! that need it; no observer knows another.

pub(crate) mod ack_stream;
pub(crate) mod congestion_control;
pub(crate) mod connection_phases;
pub(crate) mod counted;
pub(crate) mod flight_levels;
pub(crate) mod idle_restarts;
pub(crate) mod log_histogram;
pub(crate) mod loss_episodes;
pub(crate) mod microbursts;
pub(crate) mod nagle_delayed_ack;
pub(crate) mod packet_trains;
pub(crate) mod plot_series;
pub(crate) mod policer_log;
pub(crate) mod pruned_data;
pub(crate) mod reordering;
pub(crate) mod requests;
pub(crate) mod rtt_before_loss;
pub(crate) mod send_spacing;
pub(crate) mod short_trains;
pub(crate) mod slow_start;
pub(crate) mod sndbuf_wakeups;
pub(crate) mod stop_and_wait;
pub(crate) mod tail_losses;
pub(crate) mod ticks;
pub(crate) mod time_by_limit;
pub(crate) mod timestamp_echo;
pub(crate) mod tls_handshake;
pub(crate) mod unscaled_window;
pub(crate) mod window_growth;
pub(crate) mod write_timer;

use crate::event::packet::Packet;
use crate::event::{Accuracy, Acked, DataPacket, Ended, Event, Limit, Resent, RetransmitKind, RttSample, Sent, Unseen};
use crate::reset::{Reset, reset_keeping};
use ack_stream::AckStream;
use congestion_control::CongestionControl;
use connection_phases::ConnectionPhases;
use counted::Counted;
use flight_levels::FlightLevels;
use idle_restarts::IdleRestarts;
use loss_episodes::LossEpisodes;
use microbursts::Microbursts;
use nagle_delayed_ack::NagleDelayedAck;
use packet_trains::PacketTrains;
use plot_series::PlotRecorder;
use policer_log::PolicerLog;
use pruned_data::PrunedData;
use reordering::Reordering;
use requests::{RequestLog, TlsState};
use rtt_before_loss::RttBeforeLoss;
use send_spacing::SendSpacing;
use short_trains::ShortTrains;
use slow_start::SlowStart;
use sndbuf_wakeups::SndbufWakeups;
use stop_and_wait::StopAndWait;
use tail_losses::TailLosses;
use thalweg_model::MarkKind;
use thalweg_wire::Flags;
use time_by_limit::TimeByLimit;
use timestamp_echo::TimestampEcho;
use tls_handshake::TlsHandshake;
use unscaled_window::UnscaledWindow;
use window_growth::WindowGrowth;
use write_timer::WriteTimer;

/// What is recorded of a connection besides its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Recording {
    #[default]
    Nothing,
    /// Every retransmission and zero window, and no series.
    Marks,
    /// The series that plots draw, with the first few thousand marks.
    Plots,
}

/// Observers of one direction.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// How well the events are known.
    pub(crate) accuracy: Accuracy,
    pub(crate) time: TimeByLimit,
    pub(crate) packet_trains: PacketTrains,
    pub(crate) short_trains: ShortTrains,
    pub(crate) slow_start: SlowStart,
    pub(crate) sndbuf_wakeups: SndbufWakeups,
    pub(crate) stop_and_wait: StopAndWait,
    pub(crate) policer_log: PolicerLog,
    pub(crate) rtt_before_loss: RttBeforeLoss,
    pub(crate) idle_restarts: IdleRestarts,
    pub(crate) nagle: NagleDelayedAck,
    /// SACK blocks about data that was never sent.
    pub(crate) foreign_blocks: Counted,
    pub(crate) plots: Option<Box<PlotRecorder>>,
    pub(crate) reordering: Reordering,
    pub(crate) tail_losses: TailLosses,
    pub(crate) loss_episodes: LossEpisodes,
    pub(crate) microbursts: Microbursts,
    pub(crate) congestion_control: CongestionControl,
    pub(crate) window_growth: WindowGrowth,
    pub(crate) write_timer: WriteTimer,
    pub(crate) unscaled_window: UnscaledWindow,
    pub(crate) send_spacing: SendSpacing,
    pub(crate) flight_levels: FlightLevels,
    pub(crate) timestamp_echo: TimestampEcho,
    /// Of few connections.
    pub(crate) pruned: Option<Box<PrunedData>>,
}

impl Observers {
    /// Records this of the flow that begins.
    pub(crate) fn record(&mut self, recording: Recording) {
        self.plots = PlotRecorder::of(recording);
    }

    /// Takes an event in. Inlined, so that a known event costs no branch.
    #[inline(always)]
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Accuracy(accuracy) => self.accuracy = *accuracy,
            Event::Packet(packet) => self.packet(packet),
            Event::Sent(sent) => self.sent(sent),
            Event::Resent(resent) => self.resent(resent),
            Event::Unseen(unseen) => self.unseen(unseen),
            &Event::Uncaptured { start, end, mss } => {
                self.policer_log.uncaptured(start, end);
                // A tap at the sender itself took none of them for lost.
                if self.accuracy != Accuracy::Exact {
                    self.loss_episodes.uncaptured(end - start, mss);
                    self.rtt_before_loss.uncaptured(start, end);
                }
            }
            &Event::Overtaken { bytes, late } => {
                self.reordering.by(bytes, late.map_or(0, |(_, late)| late));
                if let Some((start, _)) = late {
                    self.loss_episodes.arrived();
                    self.policer_log.arrived(start);
                }
            }
            &Event::Needless { now, number, start, offset } => {
                self.policer_log.arrived(start);
                self.tail_losses.needless(start);
                self.loss_episodes.arrived();
                self.congestion_control.forget();
                self.mark(now, number, offset, MarkKind::Spurious);
            }
            Event::TimerExpired { longest } => self.time.timer_expired(*longest),
            Event::WasTimeout { longest } => self.time.was_timeout(*longest),
            &Event::Flight { now, flight } => {
                self.time.flight(now, flight);
                if let Some(plots) = &mut self.plots {
                    plots.flight.push(now as f64 / 1e9, flight as f64);
                }
            }
            Event::FlightLasted { flight, lasted } => self.flight_levels.spent(*flight, *lasted),
            Event::Acked(acked) => self.acked(acked),
            Event::Rtt(sample) => self.rtt(sample),
            &Event::Reneged { now, number, window, next } => {
                self.pruned.get_or_insert_default().proved(now, number, window, next);
            }
            Event::SackedResent(bytes) => {
                if let Some(pruned) = &mut self.pruned {
                    pruned.again += bytes;
                }
            }
            Event::Refused => self.pruned.get_or_insert_default().refused += 1,
            &Event::ForeignBlock { now, number } => self.foreign_blocks.note(number, now),
            Event::Ended(ended) => self.ended(ended),
        }
    }

    fn packet(&mut self, packet: &DataPacket) {
        if packet.end > packet.next {
            self.unscaled_window.sent(packet.end, packet.mss);
        } else {
            self.unscaled_window.resent(packet.start);
        }
        if packet.len > 0 {
            self.microbursts.packet(packet.now, packet.len, packet.burst);
            self.timestamp_echo.packet(packet);
            self.policer_log.packet(packet);
        }
        self.time.begin(packet.now);
        self.time.advance(packet.now, packet.limit);
    }

    fn sent(&mut self, sent: &Sent) {
        self.nagle.sent(sent, self.accuracy);
        self.idle_restarts.sent(sent);
        self.policer_log.sent(sent.now, sent.start, sent.len as u32);
        self.send_spacing.sent(sent.now, sent.len);
        if let Some(amount) = self.stop_and_wait.sent(sent, self.accuracy) {
            self.write_timer.burst(sent.now, amount);
        }
        let waited = self.time.sent(sent);
        if let Some(pause) = sent.pause {
            self.sndbuf_wakeups.ended(pause, waited, sent.patience);
        }
        if self.accuracy != Accuracy::Exact {
            // The data itself shows how bursts come out of the path.
            self.delivered(sent.now, sent.total, sent.mss);
        }
        if let Some(window) = sent.fills_window {
            self.window_growth.filled(sent.number, sent.now, window);
        }
        self.slow_start.sent(sent, self.time.idle());
        let window = self.congestion_control.sent(sent, waited.charged > 0);
        if let Some(plots) = &mut self.plots {
            plots.sent(sent, window);
        }
    }

    fn resent(&mut self, resent: &Resent<'_>) {
        let &Resent { now, start, end, kind, .. } = resent;
        self.policer_log.resent(resent);
        if resent.is_new_here {
            self.unscaled_window.went_on(start);
        }
        if resent.by_timer {
            self.time.timer_expired(u64::MAX);
            if resent.is_tail {
                self.tail_losses.fired(resent.una, start, resent.next, kind);
            }
        } else {
            self.time.keep();
        }
        self.time.lossy(now);
        self.slow_start.lost(now);
        match kind {
            RetransmitKind::Fast if resent.begins_recovery => self.congestion_control.lost(now, resent.mss, resent.rtt),
            RetransmitKind::Timer if resent.by_timer => self.congestion_control.forget(),
            _ => {}
        }
        if self.accuracy == Accuracy::Exact {
            if kind == RetransmitKind::Fast && resent.begins_recovery {
                self.rtt_before_loss.lost();
            }
            let from = resent.out.partition_point(|segment| segment.end <= start);
            let lost = resent.out.range(from..).take_while(|segment| segment.end <= end);
            for lost in lost.filter(|segment| !segment.resent) {
                self.loss_episodes.lost(lost.sent, resent.rtt);
                self.microbursts.lost(lost.burst);
            }
        }
        let mark = match kind {
            RetransmitKind::Fast => MarkKind::Fast,
            RetransmitKind::Timer => MarkKind::Rto,
            RetransmitKind::Probe => MarkKind::Tlp,
        };
        self.mark(now, resent.number, start.saturating_sub(resent.first), mark);
    }

    fn unseen(&mut self, unseen: &Unseen) {
        self.policer_log.missed(unseen);
        // A tap at the sender itself missed the packets.
        if self.accuracy != Accuracy::Exact {
            self.loss_episodes.missed(unseen);
            if !unseen.is_repairing {
                self.rtt_before_loss.missed(unseen.from);
            }
        }
    }

    fn acked(&mut self, acked: &Acked) {
        let &Acked { now, number, ref window, .. } = acked;
        self.time.acked(acked);
        let from_afar = self.accuracy != Accuracy::Exact && acked.advanced;
        if acked.is_message {
            self.stop_and_wait.message(now);
            self.nagle.message(now);
            if from_afar {
                self.stop_and_wait.acknowledged_by_message(now, number);
            }
        } else if from_afar {
            self.stop_and_wait.acknowledged();
        }
        if let Some(echo) = acked.tsecr {
            self.timestamp_echo.echoed(now, echo);
        }
        self.unscaled_window.arrived(acked.reached);
        if acked.advanced {
            self.sndbuf_wakeups.heard(now, acked.outstanding);
            self.idle_restarts.acked(now);
            if let Some(pruned) = &mut self.pruned {
                pruned.acknowledged(now, acked.una);
            }
        }
        if acked.is_repaired {
            self.congestion_control.repaired(acked.next);
        }
        if acked.delivered > 0 && self.accuracy == Accuracy::Exact {
            self.delivered(now, acked.total, acked.mss);
        }
        self.slow_start.acked(acked);
        if window.is_known && window.is_syn {
            self.unscaled_window.opened(acked.ack + window.bytes);
        } else if window.is_known {
            self.unscaled_window.advertised(acked.ack, u64::from(window.field));
        }
        self.window_growth.advertised(number, now, window);
        if window.bytes == 0 {
            self.mark(now, number, acked.ack.saturating_sub(acked.first), MarkKind::ZeroWindow);
        }
        if let Some(plots) = &mut self.plots {
            plots.acked(acked);
        }
    }

    fn rtt(&mut self, sample: &RttSample) {
        self.rtt_before_loss.sample(sample, self.accuracy);
        self.policer_log.timed(sample.passed_at, sample.rtt);
        if let Some(slice) = self.time.slice(sample.now) {
            slice.timed(sample.rtt, sample.late);
        }
        if let Some(plots) = &mut self.plots {
            plots.rtt.push(sample.now as f64 / 1e9, sample.rtt as f64 / 1e6);
        }
    }

    fn ended(&mut self, ended: &Ended) {
        self.idle_restarts.end(ended.end, ended.mss, ended.retransmits);
        self.loss_episodes.finish();
        if let Some(end) = ended.shut_until {
            self.time.advance(end, Limit::Reader);
        }
        self.time.keep();
        if let Some(pruned) = &mut self.pruned {
            pruned.acknowledged(ended.last_delivery, u64::MAX);
        }
        if ended.ends_with_delivery {
            self.time.end_with_data();
        }
    }

    /// Notes that `delivered` bytes in all have been delivered at `now` (nanoseconds).
    fn delivered(&mut self, now: u64, delivered: u64, mss: u64) {
        self.packet_trains.delivered(now, delivered, mss);
        self.short_trains.delivered(now, delivered, mss);
    }

    fn mark(&mut self, now: u64, packet: u64, byte: u64, kind: MarkKind) {
        if let Some(plots) = &mut self.plots {
            plots.mark(now, packet, byte, kind);
        }
    }

    /// The rate of trains, in bytes per second; of few segments, that of short ones where it is higher.
    pub(crate) fn train_rate(&self) -> Option<f64> {
        let rates = [self.packet_trains.rate(), self.short_trains.of_all()];
        rates.into_iter().flatten().max_by(f64::total_cmp)
    }
}

/// Observers of both directions of a connection, by its packets.
#[derive(Debug, Default)]
pub(crate) struct ConnectionObservers {
    pub(crate) phases: ConnectionPhases,
    pub(crate) tls: TlsHandshake,
    pub(crate) requests: RequestLog,
    /// Acknowledgements of the only side that is captured.
    pub(crate) ack_stream: AckStream,
}

impl ConnectionObservers {
    /// Takes a packet of either side in.
    #[inline]
    pub(crate) fn packet(&mut self, now: u64, packet: &Packet) {
        let was_handshake = self.tls.is_going_on();
        self.phases.packet(now, packet, was_handshake);
        if packet.payload_len > 0 {
            if !packet.records.is_empty() || packet.message().is_some() {
                self.tls.packet(now, packet);
            }
            let is_handshake = self.tls.is_going_on();
            let ends_handshake = was_handshake && !is_handshake;
            self.requests.packet(now, packet, TlsState { is_handshake, ends_handshake, is_1_3: self.tls.is_1_3() });
        }
    }

    /// Takes in what a packet acknowledges while nothing came from the other side; `syn_at` is when the client sent its only SYN.
    pub(crate) fn lone_ack(&mut self, now: u64, packet: &Packet, syn_at: Option<u64>) {
        // The client's SYN and the packet that answers the SYN-ACK are a round trip apart, wherever the tap is.
        if let Some(syn_at) = syn_at.filter(|_| packet.side() == 0 && !packet.flags.has(Flags::SYN)) {
            self.ack_stream.round_trip.get_or_insert(now.saturating_sub(syn_at));
        }
        self.ack_stream.packet(now, packet);
    }

    /// The connection is over.
    pub(crate) fn finish(&mut self) {
        self.requests.finish();
    }
}

impl Reset for ConnectionObservers {
    fn reset(&mut self) {
        self.phases = ConnectionPhases::default();
        self.tls = TlsHandshake::default();
        self.requests.reset();
        self.ack_stream = AckStream::default();
    }
}

impl Reset for Observers {
    fn reset(&mut self) {
        reset_keeping!(self, time, packet_trains, rtt_before_loss);
    }
}
