//! A finished direction, summed up: the partition of its data phase, its rates, and what they would be without a limit.

use crate::sender::Sender;
use crate::timeline::{Class, Slice};
use model::{Limits, Vantage};

/// Delivery within this part of the highest rate counts as that rate: delayed acknowledgements alone move a round's sum by
/// one part in ten of a twenty-segment window.
const PLATEAU: f64 = 0.85;
/// Below this part of the rate of trains the path is not full, whatever the RTT does: it jitters, then.
const BURSTS_FASTER: f64 = 0.6;
/// RTT above its minimum by this part means a standing queue; Linux delay-based controls use 1/8 (`tcp_cubic` HyStart,
/// `HYSTART_DELAY_THRESH(delay_min >> 3)`).
const QUEUE_PART: f64 = 1.0 / 8.0;
/// And by at least this long: half the 1 ms grain of TCP timestamps, in nanoseconds.
const QUEUE_FLOOR_NS: f64 = 500_000.0;
/// Round trips a flight must stay the same for a send buffer to be what holds it: congestion control grows it by a segment
/// in each of them (RFC 5681 §3.1).
const CONSTANT_ROUNDS: u64 = 4;
/// Flights of at least this many percent of the largest are at the ceiling: socket buffers count whole packets' memory, so what
/// they hold in bytes varies by a few (our long-fat scenario with default buffers).
const CAP_PERCENT: u64 = 95;
/// Part of the time a flight must be there to be capped. CUBIC's window is within 5 % of its peak for just over half of an
/// epoch (RFC 9438 §4.2: W(t) = C(t − K)³ + W_max), and the peaks of random losses differ.
const CAP_PART: f64 = 0.7;

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
}

/// What rules judge by.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) sender: &'a Sender,
    pub(crate) vantage: Vantage,
    /// Both SYNs were seen, and one lacked the window scale option.
    pub(crate) scaling_missing: bool,
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
    /// The round trip a tenth of the samples stay under: the least that can be hoped for where it jitters.
    pub(crate) rtt_low_s: f64,
    pub(crate) congested_losses: usize,
    pub(crate) random_losses: usize,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(sender: &'a Sender, vantage: Vantage, scaling_missing: bool) -> Self {
        let rtt_min_s = sender.rtt.min.unwrap_or(0) as f64 / 1e9;
        let rtt_mean_s = sender.rtt.mean().unwrap_or(0.0) / 1e9;
        let phase_s = match (sender.timeline.start, sender.last_delivery) {
            (Some(start), Some(end)) => end.saturating_sub(start) as f64 / 1e9,
            _ => 0.0,
        };
        let mut facts = Self {
            sender,
            vantage,
            scaling_missing,
            phase_s,
            bytes: sender.delivered as f64,
            split: Split::default(),
            plateau: None,
            capacity: None,
            rtt_min_s,
            rtt_mean_s,
            rtt_low_s: sender.rtt.quantile(0.1).unwrap_or(0.0).max(sender.rtt.min.unwrap_or(0) as f64) / 1e9,
            congested_losses: 0,
            random_losses: 0,
        };
        if phase_s > 0.0 {
            let rounds = Rounds::new(sender);
            facts.plateau = rounds.plateau();
            let trains = sender.trains.rate();
            facts.capacity = match (facts.plateau, trains) {
                (Some(plateau), Some(trains)) => Some(plateau.max(trains)),
                (plateau, trains) => trains.or(plateau.filter(|_| rounds.queued_at_plateau(plateau))),
            };
            facts.split = rounds.split(facts.plateau, trains);
            facts.judge_losses(&rounds, trains);
        }
        facts
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

    /// Mean rate over the data phase, in bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.phase_s > 0.0 { self.bytes / self.phase_s } else { 0.0 }
    }

    /// How many times faster the phase would be, had what `spent` covers gone at the path's rate with `round_trips` to begin.
    pub(crate) fn gain_without(&self, spent: Spent, round_trips: f64) -> f64 {
        let at_capacity = self.capacity.map_or(0.0, |capacity| spent.bytes / capacity);
        let instead = at_capacity + round_trips * self.rtt_low_s;
        let phase = (self.phase_s - spent.seconds + instead).max(self.rtt_low_s).max(self.phase_s * 1e-3);
        (self.phase_s / phase).max(1.0)
    }

    /// The flight that fills the path, in bytes.
    pub(crate) fn bdp(&self) -> Option<f64> {
        self.capacity.map(|capacity| capacity * self.rtt_min_s)
    }

    /// The part of what followed losses that a timer's firing brought about; the rest followed fast retransmissions.
    pub(crate) fn timer_part(&self) -> f64 {
        let episodes = &self.sender.losses.episodes;
        let fired = episodes.iter().filter(|loss| loss.kind == crate::recovery::Kind::Timer).count();
        if episodes.is_empty() { 0.0 } else { fired as f64 / episodes.len() as f64 }
    }

    /// Splits losses into those with a queue before them and those without.
    fn judge_losses(&mut self, rounds: &Rounds<'_>, trains: Option<f64>) {
        let rtt = &self.sender.rtt;
        let (Some(min), Some(high)) = (rtt.min.map(|min| min as f64), rtt.quantile(0.95)) else {
            self.random_losses =
                self.sender.losses.episodes.iter().filter(|loss| loss.kind == crate::recovery::Kind::Fast).count();
            return;
        };
        for loss in self.sender.losses.episodes.iter().filter(|loss| loss.kind == crate::recovery::Kind::Fast) {
            let over = loss.rtt_before - min;
            // A queue that overflows is at its fullest: at least half of what it ever was. With random delays and no queue,
            // the smoothed RTT stays near the middle of its range.
            let queued = over >= (min * QUEUE_PART / 2.0).max(QUEUE_FLOOR_NS) && over >= 0.5 * (high - min);
            let rate = rounds.rate_at(loss.at);
            let full = self
                .plateau
                .zip(trains)
                .is_none_or(|(plateau, trains)| rate >= 0.5 * plateau.max(trains.min(plateau * 1.5)));
            if queued && full { self.congested_losses += 1 } else { self.random_losses += 1 }
        }
    }
}

/// The slices of a phase with what lay in the round trip before each.
struct Rounds<'a> {
    sender: &'a Sender,
    views: Vec<View>,
}

#[derive(Debug, Clone, Copy)]
struct View {
    slice: Slice,
    /// Nanoseconds since the flow's first packet, at the slice's start.
    at: u64,
    /// Bytes per second over the round trip that ends with this slice.
    rate: f64,
    /// Largest flight in that round trip.
    flight: u64,
    /// RTT, carried forward where the slice has no sample; nanoseconds.
    rtt: f64,
    lossy: bool,
    /// Part of that round trip's undecided time in which the receiver's window was full.
    windowed: f64,
}

impl<'a> Rounds<'a> {
    fn new(sender: &'a Sender) -> Self {
        let line = &sender.timeline;
        let width = line.width.max(1);
        let start = line.start.unwrap_or(0);
        let mut rtt = sender.rtt.min.unwrap_or(0) as f64;
        let mut views: Vec<View> = Vec::with_capacity(line.slices.len());
        let (mut from, mut delivered) = (0usize, 0u64);
        for (n, slice) in line.slices.iter().enumerate() {
            if slice.rtt_count > 0 {
                rtt = slice.rtt_sum as f64 / f64::from(slice.rtt_count);
            }
            let span = ((rtt / width as f64).ceil() as u64).max(1);
            delivered += slice.delivered;
            while line.slices[from].index + span <= slice.index {
                delivered -= line.slices[from].delivered;
                from += 1;
            }
            // A round trip that grows again reaches further back.
            while from > 0 && line.slices[from - 1].index + span > slice.index {
                from -= 1;
                delivered += line.slices[from].delivered;
            }
            let window = &line.slices[from..=n];
            // Long windows of narrow slices are sampled: extremes of flight move slowly.
            let step = (window.len() / 64).max(1);
            let flight = window.iter().rev().step_by(step).map(|s| s.flight_max).max().unwrap_or(0);
            let open: u64 = window.iter().rev().step_by(step).map(|s| s.open).sum();
            let full: u64 = window.iter().rev().step_by(step).map(|s| s.window).sum();
            views.push(View {
                windowed: if full > 0 { full as f64 / (open + full) as f64 } else { 0.0 },
                slice: *slice,
                at: start + slice.index * width,
                rate: delivered as f64 / (span * width) as f64 * 1e9,
                flight,
                rtt,
                lossy: window.iter().rev().step_by(step).any(|s| s.lossy),
            });
        }
        Self { sender, views }
    }

    /// Largest rate over a round trip, away from losses where there is such a place: what fills a hole arrives all at once.
    fn plateau(&self) -> Option<f64> {
        let best = |lossy: bool| self.views.iter().filter(|v| lossy || !v.lossy).map(|v| v.rate).fold(0.0f64, f64::max);
        let plateau = best(false);
        let plateau = if plateau > 0.0 { plateau } else { best(true) };
        (plateau > 0.0).then_some(plateau)
    }

    fn is_queued(&self, rtt: f64) -> bool {
        let min = self.sender.rtt.min.unwrap_or(0) as f64;
        rtt - min >= (min * QUEUE_PART).max(QUEUE_FLOOR_NS)
    }

    fn queued_at_plateau(&self, plateau: Option<f64>) -> bool {
        plateau.is_some_and(|plateau| self.views.iter().any(|v| v.rate >= PLATEAU * plateau && self.is_queued(v.rtt)))
    }

    fn rate_at(&self, at: u64) -> f64 {
        let n = self.views.partition_point(|v| v.at <= at);
        self.views.get(n.saturating_sub(1)).map_or(0.0, |v| v.rate)
    }

    /// Charges every class, and tells the open time apart.
    fn split(&self, plateau: Option<f64>, trains: Option<f64>) -> Split {
        let line = &self.sender.timeline;
        let spent = |class: Class| Spent {
            seconds: line.time[class as usize] as f64 / 1e9,
            bytes: line.delivered[class as usize] as f64,
        };
        let mut split = Split {
            application: spent(Class::Application),
            reader: spent(Class::Reader),
            loss_recovery: spent(Class::Recovery),
            timeout: spent(Class::Timeout),
            ..Split::default()
        };
        if self.sender.small_window_is_steady() {
            split.receive_window = std::mem::take(&mut split.reader);
        }
        let plateau = plateau.unwrap_or(f64::INFINITY);
        let exit = self.sender.start.exit.map_or(u64::MAX, |(at, _)| at);
        let first_loss = self.sender.losses.episodes.first().map_or(u64::MAX, |loss| loss.at);
        let constant = self.constant_flight();
        let largest = self.views.iter().map(|v| v.flight).max().unwrap_or(0);
        let capped = self.flight_is_capped(exit, largest, plateau, trains);
        let (mut flight_so_far, mut after_loss) = (0u64, u64::MAX);
        for (n, view) in self.views.iter().enumerate() {
            if view.lossy && after_loss != view.at {
                // What the window was before a loss does not bind it afterwards.
                flight_so_far = 0;
                after_loss = view.at;
            }
            flight_so_far = flight_so_far.max(view.flight);
            let here = Spent { seconds: view.slice.open as f64 / 1e9, bytes: view.slice.open_delivered as f64 };
            let path_is_full = self.path_is_full(view, plateau, trains);
            // A window full behind a queue of the path costs nothing: the path delivers all it can.
            let windowed = Spent { seconds: view.slice.window as f64 / 1e9, bytes: view.slice.window_delivered as f64 };
            let into = if path_is_full { &mut split.path_rate } else { &mut split.receive_window };
            *into = into.and(windowed);
            if here.seconds == 0.0 && here.bytes == 0.0 {
                continue;
            }
            let into = if path_is_full {
                &mut split.path_rate
            } else if view.windowed > 0.5 {
                // Between two segments that fill the window there is room for an instant.
                &mut split.receive_window
            } else if view.flight * 10 < flight_so_far * 7 && view.rate < 0.7 * plateau {
                &mut split.application
            } else if view.at < exit {
                &mut split.slow_start
            } else if constant[n] && view.at < first_loss || capped && view.flight * 100 >= largest * CAP_PERCENT {
                &mut split.send_buffer
            } else {
                &mut split.congestion_window
            };
            *into = into.and(here);
        }
        split
    }

    fn path_is_full(&self, view: &View, plateau: f64, trains: Option<f64>) -> bool {
        let on_plateau = view.rate >= PLATEAU * plateau;
        let burst_rate = trains.is_some_and(|trains| view.rate >= PLATEAU * trains);
        let bursts_faster = trains.is_some_and(|trains| view.rate < BURSTS_FASTER * trains);
        on_plateau && (burst_rate || self.is_queued(view.rtt) && !bursts_faster)
    }

    /// Whether the flight stands at its ceiling for most of the open time after slow start, over many round trips, though losses
    /// may come between. A congestion window that losses cut is elsewhere most of the time, and its peaks differ.
    fn flight_is_capped(&self, exit: u64, largest: u64, plateau: f64, trains: Option<f64>) -> bool {
        let (mut at_ceiling, mut all) = (0u64, 0u64);
        for view in
            self.views.iter().filter(|v| v.at >= exit && v.windowed <= 0.5 && !self.path_is_full(v, plateau, trains))
        {
            all += view.slice.open;
            if view.flight * 100 >= largest * CAP_PERCENT {
                at_ceiling += view.slice.open;
            }
        }
        let round_trips = at_ceiling as f64 / self.sender.rtt.mean().unwrap_or(f64::INFINITY);
        at_ceiling as f64 >= CAP_PART * all as f64 && round_trips >= 2.0 * CONSTANT_ROUNDS as f64
    }

    /// For each slice, whether the flight of each round trip around it is the same to within two segments, and is the largest
    /// the flow had. Congestion control would have made it grow; a buffer counted in bytes does not.
    fn constant_flight(&self) -> Vec<bool> {
        let mss = self.sender.mss;
        let largest = self.views.iter().map(|v| v.flight).max().unwrap_or(0);
        let mut constant = vec![false; self.views.len()];
        let mut from = 0;
        while from < self.views.len() {
            let base = self.views[from].flight;
            let mut to = from;
            while to < self.views.len() && self.views[to].flight.abs_diff(base) <= 2 * mss {
                to += 1;
            }
            let span = self.views[to - 1].at.saturating_sub(self.views[from].at);
            let long = span as f64 >= CONSTANT_ROUNDS as f64 * self.views[from].rtt.max(1.0);
            if long && (base + 2 * mss) * 20 >= largest * 19 {
                constant[from..to].fill(true);
            }
            from = to;
        }
        constant
    }
}
