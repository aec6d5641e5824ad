//! The slices of a data phase, each with the round trip before it: the path's rate, and what the open time was spent on.

mod busy;
mod lately;
mod standing;
mod steps;
mod ways;

use crate::facts::{Spent, Split};
use crate::flights::Flights;
use crate::sender::Sender;
use crate::timeline::{Class, Slice};
use crate::wakes::Wakes;
pub(crate) use standing::Standing;

/// Delivery within this part of the highest rate counts as that rate: delayed acknowledgements alone move a round's sum by
/// one part in ten of a twenty-segment window.
pub(crate) const PLATEAU: f64 = 0.85;
/// Below this part of the rate of trains the path is not full, whatever the RTT does: it jitters, then.
const BURSTS_FASTER: f64 = 0.6;
/// A rate that hardly ever is larger than its mean, which is at least this part of it. BBR's were 0.95 of it and more behind full paths of
/// ours, and of programs that write every some milliseconds most are at 0.9 and less.
const EVEN: f64 = 0.95;
/// One part in so many of the bytes may have come faster than the path lets them.
const CAUGHT_UP: u64 = 100;
/// A flow whose mean is this part of its trains' rate hardly ever paused; trains' rates are known to within 9 %, and a window cut
/// to 0.7 over a short queue costs as much again.
const STEADY_PART: f64 = 0.8;
/// And so much of its time is open: neither the program nor repair nor a timer paused it.
const OPEN_PART: f64 = 0.9;
/// RTT above its minimum by this part means a standing queue; Linux delay-based controls use 1/8 (`tcp_cubic` HyStart,
/// `HYSTART_DELAY_THRESH(delay_min >> 3)`).
pub(crate) const QUEUE_PART: f64 = 1.0 / 8.0;
/// And by at least this long: half the 1 ms grain of TCP timestamps, in nanoseconds.
pub(crate) const QUEUE_FLOOR_NS: f64 = 500_000.0;
/// Round trips a flight must stay the same for a send buffer to be what holds it: congestion control grows it by a segment
/// in each of them (RFC 5681 §3.1).
const CONSTANT_ROUNDS: u64 = 4;
/// Rounds without growth after which slow start is over.
pub(crate) const FLAT: u32 = 2;
/// Round trips within which a window that is used up in slow start has grown by a quarter: even with acknowledgements of two segments each
/// it takes one.
const GROWS_WITHIN: f64 = 3.0;
/// Part of the flight that a full buffer's pauses begin at, from which the buffer is as good as full: its mean deviation, twice.
const BUFFERED_PART: f64 = 0.9;
/// Part of the open time a flight must stand at one level for that to be a ceiling. CUBIC's window is within 1 % of its peak for
/// just under half of an epoch (RFC 9438 §4.2: W(t) = C(t − K)³ + W_max), and the peaks of random losses differ.
const CEILING_PART: f64 = 0.6;

/// How many times the rate over a round trip trains of acknowledgements come at, at least, that were held and let go.
const BUNCHED: f64 = 4.0;

/// Slices of a round trip that are looked at, of however many.
const LOOKED_AT: usize = 64;

/// Part of the time that a flight, as timestamps tell it, must stand at one size for that to be a clamp. It had 39 to 99 % of it in the clamps
/// of our labelled ranges of 400,000 and 600,000 but one, where several acknowledgements of one tick blur it, and 2 to 21 % in their send
/// buffers.
const TOLD_PART: f64 = 0.38;

/// Part of the largest flight that a clamp must be at.
const LARGEST_PART: f64 = 0.8;

/// What Linux hands down at once, headers left out: `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER` (`tcp_xmit_size_goal`).
const LARGEST_BURST: u64 = 65_536 - 320;

/// Behind one part in `parts` of the weight, in this order: what lies there, of values with the weight of each.
fn behind<T: Copy>(weighed: &[(T, u64)], parts: u64) -> Option<T> {
    let mut before = weighed.iter().map(|one| one.1).sum::<u64>() / parts;
    let found = weighed.iter().find(|one| {
        let found = one.1 > before;
        before = before.saturating_sub(one.1);
        found
    });
    found.map(|one| one.0)
}

/// Whether two flights differ by no more than one percent: socket buffers count whole packets' memory, so what they hold in bytes
/// varies a little (our long-fat scenario with default buffers: 1,940 to 1,962 segments).
fn is_near(flight: u64, level: u64) -> bool {
    flight.abs_diff(level) * 100 <= level
}

/// Moves this part of the application's time, which a full send buffer made, to the buffer, or to the path where that was full all the
/// while; with the bytes that moved meanwhile.
fn charge_buffer(split: &mut Split, part: f64, path_is_full: bool) {
    let seconds = part * split.application.seconds;
    split.application.seconds -= seconds;
    // Bytes are charged when they are acknowledged, which was partly just after these pauses.
    let others = [&mut split.application, &mut split.slow_start, &mut split.congestion_window];
    let part = seconds / (seconds + others.iter().map(|spent| spent.seconds).sum::<f64>()).max(1e-9);
    let mut bytes = 0.0;
    for spent in others {
        bytes += spent.bytes * part;
        spent.bytes -= spent.bytes * part;
    }
    let into = if path_is_full { &mut split.path_rate } else { &mut split.send_buffer };
    *into = into.and(Spent { seconds, bytes });
}

/// The slices of a phase with what lay in the round trip before each.
pub(crate) struct Rounds<'a> {
    sender: &'a Sender,
    views: Vec<View>,
    /// The mean time that acknowledgements wait, in nanoseconds, where that makes the round trips long: those tell nothing of the data's queue then.
    pub(crate) ack_wait: Option<f64>,
    /// Something on the path is never idle.
    pub(crate) busy: bool,
    /// What passed a queue that was never empty, where more in flight brought no more through.
    pub(crate) standing: Option<Standing>,
}

#[derive(Debug, Clone, Copy)]
struct View {
    slice: Slice,
    /// Nanoseconds since the flow's first packet, at the slice's start.
    at: u64,
    /// The slices of the round trip that ends with this one.
    span: u64,
    /// Bytes per second over the round trip that ends with this slice.
    rate: f64,
    /// The same, and no more than what comes evenly tells: a round trip of few acknowledgements may hold one more than its part of them.
    evenly: f64,
    /// Largest flight in that round trip.
    flight: u64,
    /// RTT, carried forward where the slice has no sample; nanoseconds.
    rtt: f64,
    lossy: bool,
    /// Part of that round trip's undecided time in which the receiver's window was full.
    windowed: f64,
    /// Part of it in which that was closed or shrinking.
    unread: f64,
    /// A queue stood all through it, and was never empty.
    queued: bool,
}

impl<'a> Rounds<'a> {
    pub(crate) fn new(sender: &'a Sender) -> Self {
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
            let rate = delivered as f64 / (span * width) as f64 * 1e9;
            // From one slice to another, what came with the first is of the time before it.
            let between = |first: &Slice, bytes: u64| match slice.index - first.index {
                0 => f64::INFINITY,
                slices => bytes as f64 / (slices * width) as f64 * 1e9,
            };
            let earlier = line.slices[..from].iter().rev().take(LOOKED_AT).find(|s| s.delivered > 0);
            let before = earlier.map_or(0.0, |first| between(first, delivered));
            let first = window.iter().take(LOOKED_AT).find(|s| s.delivered > 0);
            let within = first.map_or(f64::INFINITY, |first| between(first, delivered - first.delivered));
            // Long windows of narrow slices are sampled: extremes of flight move slowly.
            let step = (window.len() / LOOKED_AT).max(1);
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
                rtt,
                lossy: window.iter().rev().step_by(step).any(|s| s.lossy),
            });
        }
        let ways = ways::tell(&views, sender);
        let ack_wait = ways.and_then(|ways| ways.wait);
        let busy = ack_wait.is_none() && busy::is_busy(&views, sender);
        let standing = standing::standing(&mut views, sender, ways);
        Self { sender, views, ack_wait, busy, standing }
    }

    /// Largest rate over a round trip, away from losses where there is such a place: what fills a hole arrives all at once.
    ///
    /// `mean` is the rate of the whole, which no plateau is below. Elsewhere than at the sender acknowledgements are placed by
    /// round-trip times that grow and shrink, which squeezes them together at times; `trains` were seen as they came, and are the
    /// path's where the flow hardly ever paused between them.
    pub(crate) fn plateau(&self, mean: f64, trains: Option<f64>) -> Option<f64> {
        let plateau = self.largest(false);
        let plateau = if plateau > 0.0 && plateau >= mean { plateau } else { self.largest(true) };
        let line = &self.sender.timeline;
        let open = line.time[Class::Open as usize] as f64 >= OPEN_PART * line.total() as f64;
        let elsewhere = trains.filter(|trains| !self.sender.times_acks && open && mean >= STEADY_PART * trains);
        let seen = elsewhere.map_or(plateau, |trains| plateau.min(trains.max(mean)));
        // A phase of less than a round trip has no rate over one.
        (seen > 0.0).then_some(seen.max(mean))
    }

    /// The rate that a hundredth of the bytes came at or above: what is larger was stopped on its way, and caught up.
    fn largest(&self, lossy: bool) -> f64 {
        let mut rates: Vec<(f64, u64)> =
            self.views.iter().filter(|v| lossy || !v.lossy).map(|v| (v.evenly, v.slice.delivered)).collect();
        rates.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        behind(&rates, CAUGHT_UP).unwrap_or(0.0)
    }

    fn is_queued(&self, rtt: f64) -> bool {
        let min = self.sender.rtt.min.unwrap_or(0) as f64;
        self.ack_wait.is_none() && rtt - min >= (min * QUEUE_PART).max(QUEUE_FLOOR_NS)
    }

    /// What round trips are above the least of those lately, in the middle: how much they vary from packet to packet; nanoseconds.
    pub(crate) fn jitter(&self) -> f64 {
        let least = lately::least(&self.views, |slice| (slice.rtt_count > 0).then_some(slice.rtt_min as f64));
        lately::varies(&self.views, &least)
    }

    pub(crate) fn queued_at_plateau(&self, plateau: Option<f64>) -> bool {
        plateau.is_some_and(|plateau| self.views.iter().any(|v| v.rate >= PLATEAU * plateau && self.is_queued(v.rtt)))
    }

    /// Whether trains of acknowledgements come at a rate that is not the path's: those that wait behind data of the other way come at its rate,
    /// each for as much as it tells of. With nothing before it, a path that fast has no queue.
    pub(crate) fn bunched(&self, trains: f64, plateau: Option<f64>) -> bool {
        let waits = || {
            plateau.is_some_and(|plateau| trains > BUNCHED * plateau)
                && busy::waits(self.sender.rtt.mean().unwrap_or(0.0), self.sender)
                && self.queued_at_plateau(plateau)
        };
        self.sender.times_acks && (self.ack_wait.is_some() || waits())
    }

    /// The largest RTT sample of the two round trips up to `at`, in nanoseconds.
    ///
    /// What overflows a queue is found missing one round trip later, by acknowledgements of what stood in the queue before it.
    pub(crate) fn rtt_peak(&self, at: u64) -> f64 {
        let to = self.views.partition_point(|v| v.at <= at);
        let Some(last) = self.views[..to].last() else { return 0.0 };
        let from = at.saturating_sub(2 * last.rtt as u64 + self.sender.timeline.width);
        let recent = self.views[..to].iter().rev().take_while(|v| v.at >= from);
        recent.map(|v| v.slice.rtt_max).max().unwrap_or(0) as f64
    }

    pub(crate) fn rate_at(&self, at: u64) -> f64 {
        let n = self.views.partition_point(|v| v.at <= at);
        self.views.get(n.saturating_sub(1)).map_or(0.0, |v| v.rate)
    }

    /// Charges every class, and tells the open time apart; `wakes` are the program's pauses, where a full send buffer made them.
    pub(crate) fn split(&self, plateau: Option<f64>, trains: Option<f64>, wakes: Option<&Wakes>) -> Split {
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
        let steady = self.sender.small_window_is_steady();
        if steady {
            split.receive_window = std::mem::take(&mut split.reader);
        }
        let plateau = plateau.unwrap_or(f64::INFINITY);
        let prompts = &self.sender.prompts;
        let prompted = prompts.are_acknowledgements();
        let start = &self.sender.start;
        let grows_until = start.exit.map_or(u64::MAX, |(at, _)| at);
        // Elsewhere than at the sender its pauses may have hidden that the growth stopped; there were none.
        let stopped = (prompted && start.growth.since >= FLAT).then_some(start.growth.until);
        let exit = grows_until.min(stopped.unwrap_or(u64::MAX));
        let first_loss = self.sender.losses.episodes.first().map_or(u64::MAX, |loss| loss.at);
        let constant = self.constant_flight();
        let ceiling = self.ceiling(exit, plateau, trains);
        let still = self.still(exit);
        // A flight that stands at one level, and never paused for the program, is a buffer's, though once it was larger: packets that fill up
        // later take more memory each.
        let line = &self.sender.timeline;
        let unpaused = (self.sender.times_acks || prompted)
            && line.time[Class::Application as usize] as f64 <= (1.0 - OPEN_PART) * line.total() as f64;
        let stood = ceiling.filter(|_| unpaused && first_loss == u64::MAX).map(|level| level as f64);
        // The buffer may hold what the path does, and a queue besides: more of it would wait there.
        let fills = self.fills(trains);
        // Between such pauses as well it is the buffer that holds the flight, where they take a good part of the time.
        let waits = wakes.is_some_and(|wakes| wakes.time * 4 >= self.delivering());
        let (mut flight_so_far, mut after_loss) = (0u64, u64::MAX);
        // Behind the last of the data the flight falls by itself.
        let last_send = self.sender.last_send;
        // A window that is used up doubles in a round trip. One that has not grown for several is not what holds a program that pauses.
        let pauses = line.time[Class::Application as usize] > line.total() / 20;
        let (mut grown, mut grown_at) = (0u64, line.start.unwrap_or(0));
        for (n, view) in self.views.iter().enumerate() {
            if view.lossy && after_loss != view.at {
                // What the window was before a loss does not bind it afterwards.
                flight_so_far = 0;
                after_loss = view.at;
            }
            flight_so_far = flight_so_far.max(view.flight);
            if view.flight * 4 > grown * 5 {
                (grown, grown_at) = (view.flight, view.at);
            }
            let here = Spent { seconds: view.slice.open as f64 / 1e9, bytes: view.slice.open_delivered as f64 };
            // While the window doubles, the last round trip's rate is the largest by its nature.
            let growing = view.at < grows_until && !self.is_queued(view.rtt);
            let stands = still.is_some_and(|level| is_near(view.flight, level)) && !self.is_queued(view.rtt);
            let path_is_full =
                !growing && if waits { fills } else { !stands && self.path_is_full(view, plateau, trains) };
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
            } else if view.unread > 0.5 {
                // What fits into a window that the program has made small is soon used up, though it seems to be sent for longer elsewhere.
                if steady { &mut split.receive_window } else { &mut split.reader }
            } else if waits && view.at >= exit {
                &mut split.send_buffer
            } else if stood.is_some_and(|peak| view.flight as f64 >= BUFFERED_PART * peak) && view.at >= exit {
                split.buffered_flight += here.seconds * view.flight as f64;
                &mut split.send_buffer
            } else if !(prompted && unpaused)
                && view.at < last_send
                && view.flight * 10 < flight_so_far * 7
                && view.rate < 0.7 * plateau
                || view.at < exit && pauses && (view.at - grown_at.min(view.at)) as f64 > GROWS_WITHIN * view.rtt
            {
                &mut split.application
            } else if view.at < exit {
                &mut split.slow_start
            } else if stands
                || constant[n] && view.at < first_loss
                || ceiling.is_some_and(|level| is_near(view.flight, level))
            {
                if prompts.are_the_programs() {
                    // However even the flight is, nothing set off what it is made of.
                    &mut split.application
                } else {
                    split.buffered_flight += here.seconds * view.flight as f64;
                    &mut split.send_buffer
                }
            } else {
                &mut split.congestion_window
            };
            *into = into.and(here);
        }
        split.buffered_flight /= split.send_buffer.seconds.max(1e-9);
        if let Some(wakes) = wakes {
            charge_buffer(&mut split, wakes.part(), fills);
        }
        split
    }

    /// The pauses of the sending program, where a full send buffer made them.
    ///
    /// What a full buffer lets go comes in bursts. Elsewhere than at the sender, where a program that writes every ten milliseconds over a round
    /// trip of twenty cannot be told otherwise, data must have come faster than on average.
    pub(crate) fn wakes(&self, trains: Option<f64>) -> Option<&'a Wakes> {
        let shows_itself = self.sender.times_acks || !self.fills(trains);
        (shows_itself && self.waits_for_a_buffer()).then_some(&self.sender.wakes)
    }

    fn waits_for_a_buffer(&self) -> bool {
        let told = !self.sender.times_acks;
        self.sender.rtt.mean().is_some_and(|rtt| self.sender.wakes.are_a_buffers(rtt, self.sender.window_max, told))
    }

    /// Whether data came at about the rate of trains on average.
    fn fills(&self, trains: Option<f64>) -> bool {
        trains.is_some_and(|trains| self.averages(PLATEAU * trains))
    }

    /// Whether the mean, from the first data to the last that was delivered, is at least this rate.
    fn averages(&self, rate: f64) -> bool {
        self.sender.delivered as f64 >= rate * (self.delivering() as f64 / 1e9)
    }

    /// From the first data to the last that was delivered, in nanoseconds.
    fn delivering(&self) -> u64 {
        self.sender.last_delivery.unwrap_or(0).saturating_sub(self.sender.timeline.start.unwrap_or(0))
    }

    fn path_is_full(&self, view: &View, plateau: f64, trains: Option<f64>) -> bool {
        // What a sender sends by its own clock, and none of it is lost, is a program's pieces, or paced at the path's rate: then it comes evenly.
        let by_its_clock = self.sender.prompts.are_the_programs() && !self.sender.losses.any();
        if by_its_clock && !self.averages(EVEN * plateau) {
            return false;
        }
        if self.busy && busy::waits(view.rtt, self.sender) || self.standing.is_some() && view.queued {
            return true;
        }
        // A single flight is as much in a round trip as it is, whatever the path's rate.
        let lasted = self.delivering() >= 2 * self.sender.rtt.min.unwrap_or(0);
        let on_plateau = view.rate >= PLATEAU * plateau;
        let burst_rate = trains.is_some_and(|trains| view.rate >= PLATEAU * trains);
        let bursts_faster = trains.is_some_and(|trains| view.rate < BURSTS_FASTER * trains);
        on_plateau && (burst_rate || lasted && self.is_queued(view.rtt) && !bursts_faster)
    }

    /// Whether the flights of the later half of what follows slow start are larger than those of the half before. A window that is held by
    /// nothing but its own growth makes them so.
    pub(crate) fn grow_on(&self) -> bool {
        let exit = self.sender.start.exit.map_or(u64::MAX, |(at, _)| at);
        let after = &self.views[self.views.partition_point(|view| view.at < exit)..];
        let (earlier, later) = after.split_at(after.len() / 2);
        // The largest, and those in the middle: where delays vary one of the two is larger by chance.
        let flights = |views: &[View]| {
            let mut flights: Vec<u64> = views.iter().map(|view| view.flight).collect();
            flights.sort_unstable();
            [flights.last(), flights.get(flights.len() / 2)].map(|flight| flight.copied().unwrap_or(0))
        };
        flights(later).into_iter().zip(flights(earlier)).all(|(later, earlier)| later * 10 >= earlier * 11)
    }

    /// The flight at which a flow stands for most of its open time after slow start, over many round trips, though losses may come
    /// between; `None` where there is no such level. A congestion window that losses cut is elsewhere most of the time.
    fn ceiling(&self, exit: u64, plateau: f64, trains: Option<f64>) -> Option<u64> {
        let held: Vec<(u64, u64)> = self
            .views
            .iter()
            .filter(|v| v.at >= exit && v.windowed <= 0.5 && v.slice.open > 0 && !self.path_is_full(v, plateau, trains))
            .map(|v| (v.flight, v.slice.open))
            .collect();
        self.level(held)
    }

    /// Whether a buffer, or a clamp, may hold so much: two segments at least, as the least that a program may set does (`SOCK_MIN_SNDBUF`).
    fn is_held(&self, flight: u64) -> bool {
        flight > self.sender.mss
    }

    /// The level that most of this time was spent at, of flights with the time at each; over many round trips.
    fn level(&self, mut held: Vec<(u64, u64)>) -> Option<u64> {
        held.sort_unstable();
        let all: u64 = held.iter().map(|h| h.1).sum();
        let median = behind(&held, 2)?;
        let near: u64 = held.iter().filter(|h| is_near(h.0, median)).map(|h| h.1).sum();
        let round_trips = near as f64 / self.sender.rtt.mean()?;
        let stands = near as f64 >= CEILING_PART * all as f64 && round_trips >= 2.0 * CONSTANT_ROUNDS as f64;
        (stands && self.is_held(median)).then_some(median)
    }

    /// The flight at which a flow without loss or queue stands for most of all its open time after slow start. A window that the path holds
    /// back grows until there is one of the two, so it is not the path that holds it, however evenly it delivers.
    fn still(&self, exit: u64) -> Option<u64> {
        if self.sender.losses.any() {
            return None;
        }
        let held: Vec<(u64, u64)> = self
            .views
            .iter()
            .filter(|v| v.at >= exit && v.windowed <= 0.5 && v.slice.open > 0)
            .map(|v| (if self.is_queued(v.rtt) { 0 } else { v.flight }, v.slice.open))
            .collect();
        self.level(held)
    }

    /// The whole number of segments that the flight of each round trip after slow start is at its largest, most of the time: a clamp of the
    /// congestion window. A socket buffer counts memory, and holds a segment more or less.
    pub(crate) fn clamp(&self) -> Option<u64> {
        let exit = self.sender.start.exit.map_or(u64::MAX, |(at, _)| at);
        let mut held: Vec<(u64, u64)> = self
            .views
            .iter()
            .filter(|v| v.at >= exit && v.windowed <= 0.5 && v.slice.open > 0)
            .map(|v| (v.flight, v.slice.open))
            .collect();
        held.sort_unstable();
        let all: u64 = held.iter().map(|h| h.1).sum();
        let runs = held.chunk_by(|a, b| a.0 == b.0).map(|run| (run.iter().map(|h| h.1).sum::<u64>(), run[0].0));
        let (time, level) = runs.max()?;
        // The program behind a full buffer fills it up burst by burst; a clamped window moves on by what is acknowledged.
        let moves_on = self.sender.times_acks && self.sender.from_below * 5 <= self.sender.data_packets;
        (time as f64 >= CEILING_PART * all as f64).then_some(())?;
        self.clamp_at(level, time, moves_on)
    }

    /// The same elsewhere than at the sender, where the flight is as its packets' timestamps tell it.
    pub(crate) fn clamp_told(&self, flights: &Flights) -> Option<u64> {
        let (level, time) = flights.most();
        (time as f64 >= TOLD_PART * flights.all as f64).then_some(())?;
        self.clamp_at(level, time, false)
    }

    /// The clamp, if a flight at which so much time was spent is one; `no_buffer` where it is known to be none's.
    fn clamp_at(&self, level: u64, time: u64, no_buffer: bool) -> Option<u64> {
        // A full buffer may hold whole bursts of the stack's, and stands as still: that is not told from a clamp at as many segments.
        let mss = self.sender.mss.max(1);
        let burst = (LARGEST_BURST / mss).max(1) * mss;
        let bursts = (level % burst).min(burst - level % burst) * 100 <= mss;
        // A segment of the flight may be shorter than the others by an option that it carried.
        let odd = (level % mss).min(mss - level % mss);
        let long = time as f64 >= 2.0 * CONSTANT_ROUNDS as f64 * self.sender.rtt.mean()?;
        // It never was larger; elsewhere than at the sender what it was by round trips that grow and shrink errs by a tenth.
        let largest = level as f64 >= LARGEST_PART * self.sender.flight_max as f64;
        // At the sender a program that waits for its buffer is seen to; elsewhere a clamp of few bursts makes pauses like it.
        let waits = self.sender.times_acks && self.waits_for_a_buffer();
        let is_one = odd * 100 <= mss && (no_buffer || !bursts) && long && largest && !waits;
        is_one.then_some((level + odd) / mss * mss)
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
            if long && self.is_held(base) && (base + 2 * mss) * 20 >= largest * 19 {
                constant[from..to].fill(true);
            }
            from = to;
        }
        constant
    }
}
