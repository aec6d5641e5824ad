//! A finished direction, summed up: the partition of its data phase, its rates, and what they would be without a limit.

use crate::estimate::data_phase::DataPhase;
use crate::estimate::partition::{LimitShare, Partition};
use crate::estimate::round_trips::{PLATEAU, RoundTrips};
use crate::estimate::token_bucket::{BucketFit, PolicerBucket};
use crate::estimate::{loss_origin, token_bucket};
use crate::event::RetransmitKind;
use crate::observe::gap_spacing::GapRoom;
use crate::observe::nagle_delayed_ack::NagleDelayedAck;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use crate::tcp::connection::Connection;
use crate::tcp::sender::Sender;
use thalweg_model::{Ecn, Limits, Vantage};

/// Part of a policer's rate, which has headers in it, that a sender is held by it from.
const POLICED: f64 = 0.8;

/// How many times as long as round trips vary by from packet to packet a queue of a policer's size would delay them, at least, for it to be seen
/// that there is none: five times and more behind policers of our lab, three and less behind short queues.
const SEEN: f64 = 4.0;

/// What rules judge by.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) connection: &'a Connection,
    /// The side all this is about: 0 the client, 1 the server.
    pub(crate) main: usize,
    pub(crate) sender: &'a Sender,
    pub(crate) vantage: Vantage,
    /// Length of the data phase, in seconds.
    pub(crate) phase_s: f64,
    pub(crate) bytes: f64,
    pub(crate) split: Partition,
    /// Largest rate over a round trip, in bytes per second.
    pub(crate) plateau: Option<f64>,
    /// The rate the path allows, in bytes per second: the plateau, or that of trains where it is higher.
    pub(crate) capacity: Option<f64>,
    pub(crate) rtt_min_s: f64,
    pub(crate) rtt_mean_s: f64,
    /// The mean time that acknowledgements wait on their way, where that is what makes the round trips long.
    pub(crate) ack_wait_s: Option<f64>,
    /// The round trip a tenth of the samples stay under: the least that can be hoped for where it jitters.
    pub(crate) rtt_low_s: f64,
    pub(crate) congested_losses: usize,
    /// The pauses of the sending program, where a full send buffer made them.
    pub(crate) wakes: Option<&'a SndbufWakeups>,
    /// Mean of the largest round trips just before losses, in seconds.
    pub(crate) loss_peak_s: Option<f64>,
    pub(crate) random_losses: usize,
    /// The token bucket that discards what is over its rate.
    pub(crate) bucket: Option<PolicerBucket>,
    /// The flights grow after slow start as well, though more slowly.
    pub(crate) grows_on: bool,
    /// Delays that vary bunch packets up: the capacity is what came through at least.
    pub(crate) blurred: bool,
    /// The flight, in bytes, that the congestion window never passes.
    pub(crate) clamp: Option<u64>,
    /// Waits for delayed acknowledgements, of the side that waited longer.
    pub(crate) held: &'a NagleDelayedAck,
}

impl<'a> Facts<'a> {
    /// What side `main` of a finished connection went through, which sends most of its data.
    pub(crate) fn new(connection: &'a Connection, main: usize, vantage: Vantage, held: &'a NagleDelayedAck) -> Self {
        let side = &connection.sides[main];
        let sender = &side.sender;
        let rtt = sender.rtt.min.unwrap_or(0);
        // Where no data could be timed the handshake's is the least there is.
        let least = sender.rtt.min.or(sender.rtt.handshake).unwrap_or(0);
        let rtt_mean_s = sender.rtt.mean().unwrap_or(0.0) / 1e9;
        let DataPhase { took: phase_s, least: rtt_min_s } = DataPhase::of(sender);
        let mut facts = Self {
            connection,
            main,
            sender,
            vantage,
            phase_s,
            bytes: sender.totals.delivered as f64,
            split: Partition::default(),
            plateau: None,
            capacity: None,
            rtt_min_s,
            rtt_mean_s,
            ack_wait_s: None,
            rtt_low_s: sender.rtt.percentiles([0.1])[0].max(least as f64) / 1e9,
            congested_losses: 0,
            wakes: None,
            loss_peak_s: None,
            random_losses: 0,
            bucket: None,
            grows_on: false,
            blurred: false,
            clamp: None,
            held,
        };
        if phase_s > 0.0 {
            let rounds = RoundTrips::new(sender);
            facts.ack_wait_s = rounds.ack_wait.map(|nanos| nanos / 1e9);
            let trains = sender.observers.packet_trains.rate();
            // Beside the receiver data shows itself how fast it comes; acknowledgements that close a gap tell of much at once.
            let fastest = sender.observers.packet_trains.fastest().filter(|_| !sender.times_acks);
            let arrives = fastest.map_or(f64::INFINITY, |fastest| fastest.max(facts.rate()));
            facts.plateau = rounds.plateau(facts.rate(), trains).map(|plateau| plateau.min(arrives));
            facts.capacity = match (facts.plateau, trains.filter(|&trains| !rounds.bunched(trains, facts.plateau))) {
                (Some(plateau), Some(trains)) => Some(plateau.max(trains)),
                (plateau, trains) => {
                    trains.or(plateau.filter(|_| rounds.ack_wait.is_some() || rounds.queued_at_plateau(plateau)))
                }
            };
            if rounds.busy && facts.plateau.is_some_and(|plateau| facts.rate() < PLATEAU * plateau) {
                // Faster moments are its own; on average it delivers no more.
                facts.plateau = Some(facts.rate());
                facts.capacity = facts.plateau;
            }
            let standing = rounds.standing.filter(|standing| standing.always);
            let trains = standing.map_or(trains, |standing| trains.map(|trains| trains.min(standing.rate)));
            if let Some(standing) = standing {
                let most = standing.rate.max(facts.rate());
                facts.plateau = facts.plateau.map(|plateau| plateau.min(most));
                facts.capacity = facts.capacity.map(|capacity| capacity.min(most));
            }
            facts.clamp = match vantage {
                Vantage::Sender => rounds.clamp().or_else(|| rounds.clamp_told(&side.echo.flights)),
                Vantage::Receiver | Vantage::Middle => rounds.clamp_told(&side.echo.flights),
                Vantage::Unknown => None,
            };
            facts.grows_on = rounds.grow_on();
            facts.wakes = rounds.wakes(trains).filter(|_| facts.clamp.is_none());
            facts.loss_peak_s = loss_origin::mean_peak(sender, &rounds).map(|nanos| nanos / 1e9);
            let peak = facts.loss_peak_s.unwrap_or(0.0) * 1e9;
            facts.split = rounds.split(facts.plateau, trains, facts.wakes);
            let origin = loss_origin::judge(sender, &rounds, facts.plateau, trains);
            (facts.random_losses, facts.congested_losses) = (origin.random, origin.congested);
            let room = sender.observers.gap_spacing.room(loss_origin::packet_nanos(sender, facts.plateau, trains), rtt);
            match token_bucket::fit(&sender.observers.policer_log, rtt, peak, room == Some(GapRoom::None)) {
                // That no queue stood before its losses cannot be told where acknowledgements wait.
                _ if rounds.ack_wait.is_some() => {}
                Some(BucketFit::Policer(bucket))
                    if (origin.overflow != Some(true) || room == Some(GapRoom::Left))
                        && bucket.burst / bucket.rate * 1e9 >= SEEN * rounds.jitter() =>
                {
                    facts.bucket = Some(bucket);
                }
                Some(_) if origin.overflow != Some(false) => {
                    facts.congested_losses += std::mem::take(&mut facts.random_losses);
                }
                _ => {}
            }
            if facts.wakes.is_none() && facts.bucket.is_some_and(|bucket| facts.rate() >= POLICED * bucket.rate) {
                // What stands while it uses up what a policer lets through is a sender that paces itself by that (`tcp_bbr.c`, lt_bw); beside
                // the receiver it seems to send when it pleases.
                let mut paced = std::mem::take(&mut facts.split.send_buffer);
                if !sender.times_acks && sender.remote.triggers.are_the_programs() {
                    paced = paced.and(std::mem::take(&mut facts.split.application));
                }
                facts.split.congestion_window = facts.split.congestion_window.and(paced);
            }
            // What a full buffer lets go comes in bursts; whoever always sends as slowly, with room on the path, has no more.
            if !sender.times_acks && facts.clamp.is_none() && facts.wakes.is_none() && !facts.knows_capacity() {
                let evenly = std::mem::take(&mut facts.split.send_buffer);
                facts.split.application = facts.split.application.and(evenly);
            }
            // What is promised is what was seen to come through at least.
            if let Some(blurred) =
                sender.observers.packet_trains.blurred(sender.space.mss, || rounds.jitter().max(sender.rtt.variation))
            {
                let least = facts.plateau.map_or(blurred, |plateau| plateau.max(blurred));
                facts.blurred = true;
                facts.capacity = facts.capacity.map(|capacity| capacity.min(least));
            }
            // Faster moments used up what the bucket held: nothing of another limit's time could have gone at that rate.
            if let Some(lasting) = facts.policed_rate() {
                facts.plateau = facts.plateau.map(|plateau| plateau.min(lasting));
                facts.capacity = Some(facts.capacity.map_or(lasting, |capacity| capacity.min(lasting)));
            }
        }
        facts
    }

    /// The rate that a policer lets payload through at for as long as one likes, or what came through where that is more, in bytes per second.
    pub(crate) fn policed_rate(&self) -> Option<f64> {
        let payload = |bucket: PolicerBucket| bucket.payload_rate(self.sender.space.mss);
        self.bucket.map(|bucket| payload(bucket).max(self.rate()))
    }

    /// The partition as shares; all zero without a data phase.
    pub(crate) fn limits(&self) -> Limits {
        let s = &self.split;
        let all = [
            s.application,
            s.receive_window,
            s.send_buffer,
            s.slow_start,
            s.congestion_window,
            s.path_rate,
            s.loss_recovery,
            s.timeout,
            s.reader,
        ];
        let total: f64 = all.iter().map(|spent| spent.seconds).sum();
        if total <= 0.0 {
            // A phase too short to have events in it: all was sent at once.
            return if self.phase_s > 0.0 {
                Limits { application: 1.0, ..Limits::default() }
            } else {
                Limits::default()
            };
        }
        let part = |spent: LimitShare| spent.seconds / total;
        Limits {
            application: part(s.application),
            receive_window: part(s.receive_window),
            send_buffer: part(s.send_buffer),
            slow_start: part(s.slow_start),
            congestion_window: part(s.congestion_window),
            path_rate: part(s.path_rate),
            loss_recovery: part(s.loss_recovery),
            timeout: part(s.timeout),
            reader: part(s.reader),
        }
    }

    /// When slow start ended, in seconds, where neither a loss nor an echo ended it and the window crept up from there for longer than it had
    /// taken.
    pub(crate) fn crept_from(&self) -> Option<f64> {
        let ended = self.sender.observers.slow_start.exit.map(|(at, _)| at as f64 / 1e9)?;
        let longer = self.split.congestion_window.seconds > self.split.slow_start.seconds;
        (self.grows_without_loss() && longer).then_some(ended)
    }

    /// Whether the window grows after slow start as well, with nothing that made it smaller.
    pub(crate) fn grows_without_loss(&self) -> bool {
        self.grows_on && !self.sender.losses.any() && self.marks().is_none()
    }

    /// Mean rate over the data phase, in bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.phase_s > 0.0 { self.bytes / self.phase_s } else { 0.0 }
    }

    /// The marks of queues that made the sender cut its window, where any did.
    pub(crate) fn marks(&self) -> Option<Ecn> {
        let connection = self.connection;
        connection.signals.ecn_of(self.main, &connection.opening).filter(|ecn| ecn.reductions > 0)
    }

    /// The flight that fills the path, in bytes.
    pub(crate) fn bdp(&self) -> Option<f64> {
        self.capacity.map(|capacity| capacity * self.rtt_min_s)
    }

    /// The part of the segments that was sent again, needless ones included. A packet beside a sender may hold many segments.
    pub(crate) fn lost_part(&self) -> f64 {
        let sender = self.sender;
        let whole = sender.totals.bytes.div_ceil(sender.space.mss.max(1)) + sender.losses.segments;
        sender.losses.segments as f64 / sender.totals.data_packets.max(whole).max(1) as f64
    }

    /// The part of what followed losses that a timer's firing brought about; the rest followed fast retransmissions.
    pub(crate) fn timer_part(&self) -> f64 {
        let episodes = &self.sender.losses.episodes;
        let fired = episodes.iter().filter(|loss| loss.kind == RetransmitKind::Timer).count();
        if episodes.is_empty() { 0.0 } else { fired as f64 / episodes.len() as f64 }
    }
}
