//! The slices of a data phase, each with the round trip before it: the rates they show.

use crate::estimate::standing_queue::StandingQueue;
use crate::estimate::view::{QUEUE_FLOOR_NS, QUEUE_PART, View};
use crate::estimate::{busy_bottleneck, queue_direction, sliding_min, standing_queue};
use crate::event::Limit;
use crate::observe::packet_trains::TRAIN_SEGMENTS;
use crate::observe::time_by_limit::Slice;
use crate::tcp::sender::Sender;

/// Delivery within this part of the highest rate counts as that rate: delayed acknowledgements alone move a round's sum by
/// one part in ten of a twenty-segment window.
pub(crate) const PLATEAU: f64 = 0.85;
/// Below this part of the rate of trains the path is not full, whatever the RTT does: it jitters, then.
const MIN_PART_OF_TRAIN_RATE: f64 = 0.6;
/// A rate that hardly ever is larger than its mean, which is at least this part of it. BBR's were 0.95 of it and more behind full paths of
/// ours, and of programs that write every some milliseconds most are at 0.9 and less. `causes_that_are_known_are_named_at_both_ends` fails without
/// it (`receive-window-jitters`).
const MIN_EVEN_PART: f64 = 0.95;
/// One part in this many of the bytes may have come faster than the path lets them.
const BYTES_PER_CAUGHT_UP_BYTE: u64 = 100;
/// And so much of its time is open: neither the program nor repair nor a timer paused it.
pub(super) const MIN_OPEN_SHARE: f64 = 0.9;
/// How many times the rate over a round trip trains of acknowledgements come at, at least, that were held and let go: 40 times where two
/// transfers against each other keep step (`acknowledgements_that_wait_behind_data_show_no_rate`).
const MIN_BUNCHED_RATIO: f64 = 4.0;
/// Round trips after which a path that is full has shown it. `an_even_rate_without_a_queue_is_no_paths` fails without it.
const MIN_ROUND_TRIPS_TO_FILL: u64 = 16;

/// Slices of a round trip that are looked at, of however many. Bounds work.
const MAX_SLICES_EXAMINED: usize = 64;

/// Behind one part in `parts` of the weight, in this order: what lies there, of values with the weight of each.
pub(super) fn behind<T: Copy>(weighed: &[(T, u64)], parts: u64) -> Option<T> {
    let mut before = weighed.iter().map(|one| one.1).sum::<u64>() / parts;
    let found = weighed.iter().find(|one| {
        let found = one.1 > before;
        before = before.saturating_sub(one.1);
        found
    });
    found.map(|one| one.0)
}

/// The slices of a phase with what lay in the round trip before each.
pub(crate) struct RoundTrips<'a> {
    pub(super) sender: &'a Sender,
    pub(super) views: Vec<View>,
    /// Nothing waited in a queue, was lost or marked, as acknowledgements tell at the sender's tap. A path that is full shows one of them before long, and
    /// what comes evenly all the same is a host's.
    never_full: bool,
    /// The mean time that acknowledgements wait, in nanoseconds, where that makes the round trips long: those tell nothing of the data's queue then.
    pub(crate) ack_wait: Option<f64>,
    /// Something on the path is never idle.
    pub(crate) busy: bool,
    /// What passed a queue that was never empty, where more in flight brought no more through.
    pub(crate) standing: Option<StandingQueue>,
}

impl<'a> RoundTrips<'a> {
    /// Those of a sender, which heard of `marked` packets or did not.
    pub(crate) fn new(sender: &'a Sender, marked: bool) -> Self {
        let line = &sender.observers.time;
        let width = line.width.max(1);
        let start = line.start.unwrap_or(0);
        let mut rtt = sender.rtt.min.unwrap_or(0) as f64;
        let mut views: Vec<View> = Vec::with_capacity(line.slices.len());
        let (mut from, mut delivered, mut advertised) = (0usize, 0u64, u64::MAX);
        for (n, slice) in line.slices.iter().enumerate() {
            if slice.rtt_count > 0 {
                rtt = slice.rtt_sum as f64 / f64::from(slice.rtt_count);
            }
            if slice.window_size > 0 {
                advertised = slice.window_size;
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
            let rate = delivered as f64 / (span * width) as f64 * 1e9;
            // From one slice to another, what came with the first is of the time before it.
            let between = |first: &Slice, bytes: u64| match slice.index - first.index {
                0 => f64::INFINITY,
                slices => bytes as f64 / (slices * width) as f64 * 1e9,
            };
            let earlier = line.slices[..from].iter().rev().take(MAX_SLICES_EXAMINED).find(|s| s.delivered > 0);
            let before = earlier.map_or(0.0, |first| between(first, delivered));
            let first = window.iter().take(MAX_SLICES_EXAMINED).find(|s| s.delivered > 0);
            let within = first.map_or(f64::INFINITY, |first| between(first, delivered - first.delivered));
            // Long windows of narrow slices are sampled: extremes of flight move slowly.
            let step = (window.len() / MAX_SLICES_EXAMINED).max(1);
            let (mut flight, mut open, mut full, mut unread) = (0, 0, 0, 0);
            for slice in window.iter().rev().step_by(step) {
                flight = flight.max(slice.flight_max);
                open += slice.open;
                full += slice.window;
                unread += slice.reader;
            }
            let part = |held: u64| if held > 0 { held as f64 / (open + held) as f64 } else { 0.0 };
            views.push(View {
                windowed: part(full),
                unread: part(unread),
                queued: false,
                slice: *slice,
                at: start + slice.index * width,
                span,
                rate,
                evenly: rate.min(before.max(within)),
                flight,
                window: advertised,
                rtt,
                lossy: window.iter().rev().step_by(step).any(|s| s.lossy),
            });
        }
        let ways = queue_direction::tell(&views, sender);
        let ack_wait = ways.and_then(|ways| ways.wait);
        let busy = ack_wait.is_none() && busy_bottleneck::is_busy(&views, sender);
        let standing = standing_queue::standing(&mut views, sender, ways);
        let mut rounds = Self { sender, views, never_full: false, ack_wait, busy, standing };
        let lasts = sender.rtt.min.is_some_and(|least| rounds.delivering() / MIN_ROUND_TRIPS_TO_FILL >= least);
        rounds.never_full = sender.is_exact()
            && lasts
            && !marked
            && !sender.losses.any()
            && !rounds.views.iter().any(|view| rounds.is_queued(view.rtt));
        rounds
    }

    /// Largest rate over a round trip, away from losses where there is such a place: what fills a hole arrives all at once.
    ///
    /// `mean` is the rate of the whole, which no plateau is below.
    pub(crate) fn plateau(&self, mean: f64) -> Option<f64> {
        let plateau = self.largest(false);
        let plateau = if plateau > 0.0 && plateau >= mean { plateau } else { self.largest(true) };
        // A phase of less than a round trip has no rate over one.
        (plateau > 0.0).then_some(plateau.max(mean))
    }

    /// The rate that a hundredth of the bytes came at or above: what is larger was stopped on its way, and caught up.
    fn largest(&self, lossy: bool) -> f64 {
        let mut rates: Vec<(f64, u64)> =
            self.views.iter().filter(|v| lossy || !v.lossy).map(|v| (v.evenly, v.slice.delivered)).collect();
        rates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        behind(&rates, BYTES_PER_CAUGHT_UP_BYTE).unwrap_or(0.0)
    }

    pub(super) fn is_queued(&self, rtt: f64) -> bool {
        let min = self.sender.rtt.min.unwrap_or(0) as f64;
        self.ack_wait.is_none() && rtt - min >= (min * QUEUE_PART).max(QUEUE_FLOOR_NS)
    }

    /// What round trips are above the least of those lately, in the middle: how much they vary from packet to packet; nanoseconds.
    pub(crate) fn jitter(&self) -> f64 {
        let least = sliding_min::least(&self.views, |slice| (slice.rtt_count > 0).then_some(slice.rtt_min as f64));
        sliding_min::varies(&self.views, &least)
    }

    pub(crate) fn queued_at_plateau(&self, plateau: Option<f64>) -> bool {
        plateau.is_some_and(|plateau| self.views.iter().any(|v| v.rate >= PLATEAU * plateau && self.is_queued(v.rtt)))
    }

    /// Whether trains of acknowledgements come at a rate that is not the path's: those that wait behind data of the other way come at its rate,
    /// each for as much as it tells of. With nothing before it, a path that fast has no queue.
    ///
    /// Source: Zhang, Shenker and Clark, "Observations on the dynamics of a congestion control algorithm: the effects of two-way traffic",
    /// SIGCOMM 1991: ACK-compression.
    pub(crate) fn bunched(&self, trains: f64, plateau: Option<f64>) -> bool {
        let waits = || {
            plateau.is_some_and(|plateau| trains > MIN_BUNCHED_RATIO * plateau)
                && busy_bottleneck::waits(self.sender.rtt.mean().unwrap_or(0.0), self.sender)
                && self.queued_at_plateau(plateau)
        };
        self.sender.is_exact() && (self.ack_wait.is_some() || waits())
    }

    /// Whether delays that vary let go at once of what came one after the other: trains come many times as fast as data ever did over a round trip
    /// and, at that rate, would take less time than the delays vary by.
    pub(crate) fn are_compressed(&self, trains: f64, plateau: f64) -> bool {
        if trains <= MIN_BUNCHED_RATIO * plateau {
            return false;
        }
        let train = (TRAIN_SEGMENTS * self.sender.space.mss) as f64 / plateau * 1e9;
        let [low, high] = self.sender.rtt.percentiles([0.25, 0.75]);
        high - low >= train || self.jitter() >= train
    }

    /// The largest RTT sample of the two round trips up to `at`, in nanoseconds.
    ///
    /// What overflows a queue is found missing one round trip later, by acknowledgements of what stood in the queue before it.
    pub(crate) fn rtt_peak(&self, at: u64) -> f64 {
        let to = self.views.partition_point(|v| v.at <= at);
        let Some(last) = self.views[..to].last() else { return 0.0 };
        let from = at.saturating_sub(2 * last.rtt as u64 + self.sender.observers.time.width);
        let recent = self.views[..to].iter().rev().take_while(|v| v.at >= from);
        recent.map(|v| v.slice.rtt_max).max().unwrap_or(0) as f64
    }

    pub(crate) fn rate_at(&self, at: u64) -> f64 {
        let n = self.views.partition_point(|v| v.at <= at);
        self.views.get(n.saturating_sub(1)).map_or(0.0, |v| v.rate)
    }

    /// Whether data came at about the rate of trains on average.
    ///
    /// Trains longer than two thirds of the largest flight span the gap behind it: those come at the mean rate whatever the path's is. A path that such
    /// flights fill has a queue.
    pub(super) fn fills(&self, trains: Option<f64>) -> bool {
        let spans_gaps = self.sender.totals.flight_max * 2 < 3 * TRAIN_SEGMENTS * self.sender.space.mss;
        let has_queue = || self.sender.rtt.mean().is_some_and(|rtt| self.is_queued(rtt));
        trains.is_some_and(|trains| self.averages(PLATEAU * trains)) && (!spans_gaps || has_queue()) && !self.never_full
    }

    /// Whether the mean, from the first data to the last that was delivered, is at least this rate.
    fn averages(&self, rate: f64) -> bool {
        self.sender.totals.delivered as f64 >= rate * (self.delivering() as f64 / 1e9)
    }

    /// From the first data to the last that was delivered, in nanoseconds.
    pub(super) fn delivering(&self) -> u64 {
        self.sender.clocks.last_delivery.unwrap_or(0).saturating_sub(self.sender.observers.time.start.unwrap_or(0))
    }

    pub(super) fn path_is_full(&self, view: &View, plateau: f64, trains: Option<f64>) -> bool {
        // What a sender sends by its own clock, and none of it is lost, is a program's pieces, or paced at the path's rate: then it comes evenly.
        let by_its_clock = self.sender.is_set_off_by_the_program() && !self.sender.losses.any();
        if by_its_clock && !self.averages(MIN_EVEN_PART * plateau) {
            return false;
        }
        if self.busy && busy_bottleneck::waits(view.rtt, self.sender) || self.standing.is_some() && view.queued {
            return true;
        }
        // A single flight is as much in a round trip as it is, whatever the path's rate.
        let lasted = self.delivering() >= 2 * self.sender.rtt.min.unwrap_or(0);
        let on_plateau = view.rate >= PLATEAU * plateau;
        let burst_rate = trains.is_some_and(|trains| view.rate >= PLATEAU * trains) && !self.never_full;
        let bursts_faster = trains.is_some_and(|trains| view.rate < MIN_PART_OF_TRAIN_RATE * trains);
        // What a window holds that is full most of the time comes at no rate of the path's without a queue: BBR spreads it over the round trip.
        let line = &self.sender.observers.time.time;
        let window_holds = line[Limit::ReceiveWindow as usize] > line[Limit::Open as usize];
        let queued = lasted && self.is_queued(view.rtt) && !bursts_faster;
        on_plateau && (burst_rate && !window_holds || queued)
    }

    /// Whether the flights of the later half of what follows slow start are larger than those of the half before. A window that is held by
    /// nothing but its own growth makes them so.
    pub(crate) fn grow_on(&self) -> bool {
        let exit = self.sender.observers.slow_start.exit.map_or(u64::MAX, |(at, _)| at);
        let [earlier, later] = self.halves(exit);
        // The largest, and those in the middle: where delays vary one of the two is larger by chance.
        later.into_iter().zip(earlier).all(|(later, earlier)| later * 10 >= earlier * 11)
    }

    /// Of the earlier and of the later half of what follows `exit` the largest flight, and the one in the middle.
    pub(super) fn halves(&self, exit: u64) -> [[u64; 2]; 2] {
        let after = &self.views[self.views.partition_point(|view| view.at < exit)..];
        let (earlier, later) = after.split_at(after.len() / 2);
        [earlier, later].map(|views| {
            let mut flights: Vec<u64> = views.iter().map(|view| view.flight).collect();
            flights.sort_unstable();
            [flights.last(), flights.get(flights.len() / 2)].map(|flight| flight.copied().unwrap_or(0))
        })
    }
}
