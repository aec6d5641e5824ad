//! A finished direction, summed up: the partition of its data phase, its rates, and what they would be without a limit.

use crate::connection::Connection;
use crate::held::Held;
use crate::holes::Room;
use crate::phase::Phase;
use crate::policer::Fit;
use crate::rounds::{PLATEAU, Rounds};
use crate::sender::Sender;
use crate::wakes::Wakes;
use model::{Ecn, Limits, Vantage};

/// Part of the time at the path's rate, or repairing losses, from which on the rate seen is the path's.
const PATH_WAS_FULL: f64 = 0.05;

/// And from which on that is the rate without a program's pauses too.
const PATH_WAS_MOSTLY_FULL: f64 = 0.5;

/// How many times the mean rate data came at for the path to be known to be faster: trains' rates are 9 % apart, and what one fast train of
/// acknowledgements tells errs by as much again.
pub(crate) const FASTER: f64 = 1.25;

/// Part of a policer's rate, which has headers in it, that a sender is held by it from.
const POLICED: f64 = 0.8;

/// How many times as long as round trips vary by from packet to packet a queue of a policer's size would delay them, at least, for it to be seen
/// that there is none: five times and more behind policers of our lab, three and less behind short queues.
const SEEN: f64 = 4.0;

/// Time and bytes of one limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
}

impl Spent {
    pub(crate) fn part(self, part: f64) -> Self {
        Self { seconds: self.seconds * part, bytes: self.bytes * part }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, bytes: self.bytes + other.bytes }
    }
}

/// Time and bytes by limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Split {
    pub(crate) application: Spent,
    pub(crate) receive_window: Spent,
    pub(crate) send_buffer: Spent,
    pub(crate) slow_start: Spent,
    pub(crate) congestion_window: Spent,
    pub(crate) path_rate: Spent,
    pub(crate) loss_recovery: Spent,
    pub(crate) timeout: Spent,
    pub(crate) reader: Spent,
    /// Mean flight where it stood as a full send buffer has it, in bytes.
    pub(crate) buffered_flight: f64,
}

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
    pub(crate) split: Split,
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
    pub(crate) wakes: Option<&'a Wakes>,
    /// Mean of the largest round trips just before losses, in seconds.
    pub(crate) loss_peak_s: Option<f64>,
    pub(crate) random_losses: usize,
    /// The token bucket that discards what is over its rate.
    pub(crate) bucket: Option<crate::policer::Bucket>,
    /// The flights grow after slow start as well, though more slowly.
    pub(crate) grows_on: bool,
    /// Delays that vary bunch packets up: the capacity is what came through at least.
    pub(crate) blurred: bool,
    /// The flight, in bytes, that the congestion window never passes.
    pub(crate) clamp: Option<u64>,
    /// Waits for delayed acknowledgements, of the side that waited longer.
    pub(crate) held: &'a Held,
}

impl<'a> Facts<'a> {
    /// What side `main` of a finished connection went through, which sends most of its data.
    pub(crate) fn new(connection: &'a Connection, main: usize, vantage: Vantage, held: &'a Held) -> Self {
        let side = &connection.sides[main];
        let sender = &side.sender;
        let rtt = sender.rtt.min.unwrap_or(0);
        // Where no data could be timed the handshake's is the least there is.
        let least = sender.rtt.min.or(sender.rtt.handshake).unwrap_or(0);
        let rtt_mean_s = sender.rtt.mean().unwrap_or(0.0) / 1e9;
        let Phase { took: phase_s, least: rtt_min_s } = Phase::of(sender);
        let mut facts = Self {
            connection,
            main,
            sender,
            vantage,
            phase_s,
            bytes: sender.delivered as f64,
            split: Split::default(),
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
            let rounds = Rounds::new(sender);
            facts.ack_wait_s = rounds.ack_wait.map(|nanos| nanos / 1e9);
            let trains = sender.trains.rate();
            // Beside the receiver data shows itself how fast it comes; acknowledgements that close a gap tell of much at once.
            let fastest = sender.trains.fastest().filter(|_| !sender.times_acks);
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
            facts.loss_peak_s = crate::queue::mean_peak(sender, &rounds).map(|nanos| nanos / 1e9);
            let peak = facts.loss_peak_s.unwrap_or(0.0) * 1e9;
            facts.split = rounds.split(facts.plateau, trains, facts.wakes);
            let origin = crate::queue::judge(sender, &rounds, facts.plateau, trains);
            (facts.random_losses, facts.congested_losses) = (origin.random, origin.congested);
            let room = sender.holes.room(crate::queue::packet_nanos(sender, facts.plateau, trains), rtt);
            match sender.policed.bucket(rtt, peak, room == Some(Room::None)) {
                // That no queue stood before its losses cannot be told where acknowledgements wait.
                _ if rounds.ack_wait.is_some() => {}
                Some(Fit::Policer(bucket))
                    if (origin.overflow != Some(true) || room == Some(Room::Left))
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
                if !sender.times_acks && sender.prompts.are_the_programs() {
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
            if let Some(blurred) = sender.trains.blurred(sender.mss, || rounds.jitter().max(sender.rtt.variation)) {
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
        let payload = |bucket: crate::policer::Bucket| bucket.payload_rate(self.sender.mss);
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
        let part = |spent: Spent| spent.seconds / total;
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
        let ended = self.sender.start.exit.map(|(at, _)| at as f64 / 1e9)?;
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

    /// How many times faster the phase would be, had what `spent` covers gone at the path's rate with `round_trips` to begin.
    pub(crate) fn gain_without(&self, spent: Spent, round_trips: f64) -> f64 {
        let at_capacity = self.capacity.map_or(0.0, |capacity| spent.bytes / capacity);
        let instead = at_capacity + round_trips * self.rtt_low_s;
        let phase = (self.phase_s - spent.seconds + instead).max(self.rtt_low_s).max(self.phase_s * 1e-3);
        let gain = (self.phase_s / phase).max(1.0);
        // Bytes are charged when they are acknowledged, which may be just after the time that is taken away.
        self.faster_than_mean().map_or(gain, |capacity| gain.min(capacity / self.rate()))
    }

    /// Whether data came clearly faster than it does on average, so that the path's rate is known to be more than the mean. A program that always
    /// sends as slowly shows no more of the path than it uses.
    pub(crate) fn shows_capacity(&self) -> bool {
        !self.blurred && self.faster_than_mean().is_some()
    }

    /// The capacity, where data came at clearly more than the mean rate.
    fn faster_than_mean(&self) -> Option<f64> {
        self.capacity.filter(|&capacity| capacity > FASTER * self.rate())
    }

    /// What it weighs that one of the hosts' bounds is gone, and how many times faster the phase would be, where that can be told: what
    /// stands at a bound with neither queue nor loss shows no more of the path than it uses, as often as not.
    pub(crate) fn weigh_bound(&self, spent: Spent) -> (f64, Option<f64>) {
        let gain = self.gain_without(spent, 0.0);
        if self.knows_capacity() {
            // Bytes are charged when they are acknowledged, in part just after what held them.
            return (gain, self.capacity.map(|capacity| gain.min((capacity / self.rate()).max(1.0))));
        }
        (gain.max(crate::rules::weight_of_time(spent.seconds / self.phase_s)), None)
    }

    /// Whether the rate that was seen is the path's: data came faster than on average, or the path was full at times.
    fn knows_capacity(&self) -> bool {
        let limits = self.limits();
        self.shows_capacity() || limits.path_rate + limits.loss_recovery > PATH_WAS_FULL
    }

    /// The weight of the program's pauses: where the path's rate is not known, only that their time would go.
    pub(crate) fn weight_of_pauses(&self) -> f64 {
        let gain = self.gain_without(self.split.application, 0.0);
        let known = self.shows_capacity() || self.limits().path_rate >= PATH_WAS_MOSTLY_FULL;
        if known { gain } else { gain.max(crate::rules::weight_of_time(self.limits().application)) }
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

    /// The weight of a cause that is judged by bursts, where the program's own pauses would otherwise outweigh everything: a gain in them
    /// is what their user sees.
    pub(crate) fn weight_in_bursts(&self, gain: f64) -> f64 {
        self.weight_of_pauses().max(gain) * 1.02
    }

    /// The part of the segments that was sent again, needless ones included. A packet beside a sender may hold many segments.
    pub(crate) fn lost_part(&self) -> f64 {
        let sender = self.sender;
        let whole = sender.bytes.div_ceil(sender.mss.max(1)) + sender.losses.segments;
        sender.losses.segments as f64 / sender.data_packets.max(whole).max(1) as f64
    }

    /// The part of what followed losses that a timer's firing brought about; the rest followed fast retransmissions.
    pub(crate) fn timer_part(&self) -> f64 {
        let episodes = &self.sender.losses.episodes;
        let fired = episodes.iter().filter(|loss| loss.kind == crate::recovery::Kind::Timer).count();
        if episodes.is_empty() { 0.0 } else { fired as f64 / episodes.len() as f64 }
    }
}
