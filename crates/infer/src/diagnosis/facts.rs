//! A finished direction, summed up: the partition of its data phase, its rates, and what they would be without a limit.

use crate::estimate::application_window::AboveTcp;
use crate::estimate::capacity::ShownRates;
use crate::estimate::data_phase::DataPhase;
use crate::estimate::loss_origin::{self, LossOrigin};
use crate::estimate::partition::Partition;
use crate::estimate::round_trips::RoundTrips;
use crate::estimate::token_bucket::PolicerBucket;
use crate::event::RetransmitKind;
use crate::observe::nagle_delayed_ack::NagleDelayedAck;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use crate::tcp::connection::{Connection, Side};
use crate::tcp::sender::Sender;
use thalweg_model::{Ecn, Limits, Vantage};

/// The estimates from a data phase.
#[derive(Debug, Default)]
struct Estimates<'a> {
    split: Partition,
    plateau: Option<f64>,
    capacity: Option<f64>,
    blurred: bool,
    ack_wait: Option<f64>,
    wakes: Option<&'a SndbufWakeups>,
    losses: LossOrigin,
    grows_on: bool,
    clamp: Option<u64>,
    above_tcp: Option<AboveTcp>,
    emptied: Option<u64>,
}

/// The marks of queues that made side `main` cut its window, where any did.
fn marks(connection: &Connection, main: usize) -> Option<Ecn> {
    connection.signals.ecn_of(main, &connection.opening).filter(|ecn| ecn.reductions > 0)
}

impl<'a> Estimates<'a> {
    /// Those of a side's data, of which `mean` bytes per second were delivered and some `marked`, or none; `returned` bytes came from the other side.
    fn of(side: &'a Side, vantage: Vantage, mean: f64, marked: bool, returned: u64) -> Self {
        let rounds = RoundTrips::new(&side.sender, marked);
        let rates = ShownRates::of(&rounds, mean);
        let emptied = rounds.emptied_buffer();
        let clamp = match vantage {
            Vantage::Sender => rounds.clamp(),
            Vantage::Receiver | Vantage::Middle => rounds.clamp_told(),
            Vantage::Unknown => None,
        };
        let wakes = rounds.wakes(rates.trains).filter(|_| clamp.is_none() && emptied.is_none());
        let losses = loss_origin::judge(&rounds, &rates);
        let (capacity, blurred) = rates.capacity(&rounds, losses.bucket);
        // Faster moments used up what the policer's bucket held: nothing of another limit's time could have gone at that rate.
        let lasting = losses.bucket.map_or(f64::INFINITY, |bucket| rates.policed(bucket, side.sender.space.mss));
        let mut split = rounds.split(rates.plateau, rates.trains, wakes);
        let above_tcp = rounds.above_tcp(&split, returned);
        if above_tcp.is_some() {
            // What looks like a buffer's is the program's.
            split.application = split.application.and(std::mem::take(&mut split.send_buffer));
        }
        Self {
            split,
            plateau: rates.plateau.map(|plateau| plateau.min(lasting)),
            capacity,
            blurred,
            ack_wait: rounds.ack_wait,
            wakes: wakes.filter(|_| above_tcp.is_none()),
            losses,
            grows_on: rounds.grow_on(),
            clamp: clamp.filter(|_| above_tcp.is_none() && emptied.is_none()),
            above_tcp,
            emptied,
        }
    }
}

/// Part of the payload that may be missing in the capture. With a tenth of all packets taken away nine of ten captures of five limits, at both ends, keep
/// their verdicts; with a fifth the gaps look like pauses of the sender in five. `where_many_packets_lack_nothing_is_said_of_pauses` holds it.
const MAX_MISSING_PART: f64 = 0.15;

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
    pub(crate) above_tcp: Option<AboveTcp>,
    /// The bytes of each write into a send buffer that is written again once it is empty.
    pub(crate) emptied: Option<u64>,
    /// Waits for delayed acknowledgements, of the side that waited longer.
    pub(crate) held: &'a NagleDelayedAck,
}

impl<'a> Facts<'a> {
    /// Whether so much of the payload is missing in the capture that silence says nothing of the sender.
    pub(crate) fn lacks_packets(&self) -> bool {
        self.sender.totals.missed_bytes as f64 > MAX_MISSING_PART * self.bytes
    }

    /// What side `main` of a finished connection went through, which sends most of its data.
    pub(crate) fn new(connection: &'a Connection, main: usize, vantage: Vantage, held: &'a NagleDelayedAck) -> Self {
        let side = &connection.sides[main];
        let sender = &side.sender;
        // Where no data could be timed the handshake's is the least there is.
        let least = sender.rtt.min.or(sender.rtt.handshake).unwrap_or(0);
        let rtt_mean_s = sender.rtt.mean().unwrap_or(0.0) / 1e9;
        let DataPhase { took: phase_s, least: rtt_min_s } = DataPhase::of(sender);
        let bytes = sender.totals.delivered as f64;
        let returned = connection.sides[1 - main].sender.totals.bytes;
        let marked = marks(connection, main).is_some();
        let found = if phase_s > 0.0 {
            Estimates::of(side, vantage, bytes / phase_s, marked, returned)
        } else {
            Estimates::default()
        };
        // What was too long for a link was no loss: the router said so, and the sender heeded it (RFC 1191 §3).
        let was_too_long = connection.too_big.as_ref().is_some_and(|errors| {
            errors.explains(main, &sender.losses.episodes, connection.started, sender.rtt.usual() as u64)
        });
        let losses = if was_too_long { LossOrigin::default() } else { found.losses };
        Self {
            connection,
            main,
            sender,
            vantage,
            phase_s,
            bytes,
            split: found.split,
            plateau: found.plateau,
            capacity: found.capacity,
            rtt_min_s,
            rtt_mean_s,
            ack_wait_s: found.ack_wait.map(|nanos| nanos / 1e9),
            rtt_low_s: sender.rtt.percentiles([0.1])[0].max(least as f64) / 1e9,
            congested_losses: losses.congested,
            wakes: found.wakes,
            loss_peak_s: losses.rtt_peak.map(|nanos| nanos / 1e9),
            random_losses: losses.random,
            bucket: losses.bucket,
            grows_on: found.grows_on,
            blurred: found.blurred,
            clamp: found.clamp,
            above_tcp: found.above_tcp,
            emptied: found.emptied,
            held,
        }
    }

    /// Whether what held the flight for this share of the time was the window before its scale was known: until then nothing tells the two apart.
    pub(crate) fn was_the_windows(&self, share: f64) -> bool {
        self.sender.window.found_scale().is_some() && self.limits().receive_window > share
    }

    /// The partition as shares; all zero without a data phase.
    pub(crate) fn limits(&self) -> Limits {
        if self.split.seconds() <= 0.0 && self.phase_s > 0.0 {
            // A phase too short to have events in it: all was sent at once.
            return Limits { application: 1.0, ..Limits::default() };
        }
        self.split.limits()
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

    /// Whether the capture has the beginning of the data: the sender's SYN or the answer to it, or, as far as that shows, nothing on its way at first.
    /// Elsewhere than at the sender the first data comes a round trip after the other side's first packet then.
    pub(crate) fn has_beginning(&self) -> bool {
        let sender = self.sender;
        let first_at = sender.totals.first_data.map_or(0, |(at, _)| at);
        let is_at_rest = if sender.is_exact() {
            sender.totals.missed_bytes == 0
        } else {
            first_at * 2 >= sender.rtt.min.unwrap_or(0)
        };
        self.connection.opening.syn[self.main].isn.is_some() || is_at_rest
    }

    /// Mean rate over the data phase, in bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.phase_s > 0.0 { self.bytes / self.phase_s } else { 0.0 }
    }

    /// The marks of queues that made the sender cut its window, where any did.
    pub(crate) fn marks(&self) -> Option<Ecn> {
        marks(self.connection, self.main)
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
