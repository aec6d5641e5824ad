//! Whether the flight stands at a level, and what holds it there.

use crate::estimate::round_trips::{RoundTrips, behind};
use crate::estimate::view::View;

/// Round trips a flight must stay the same for a send buffer to be what holds it: congestion control grows it by a segment
/// in each of them (RFC 5681 §3.1).
const MIN_CONSTANT_ROUNDS: u64 = 4;
/// Part of the open time a flight must stand at one level for that to be a ceiling. CUBIC's window is within 1 % of its peak for
/// just under half of an epoch (RFC 9438 §4.2: W(t) = C(t − K)³ + W_max), and the peaks of random losses differ.
const MIN_CEILING_SHARE: f64 = 0.6;
/// Part of the time that a flight, as timestamps tell it, must stand at one size for that to be a clamp. It had 39 to 99 % of it in the clamps
/// of our labelled ranges of 400,000 and 600,000 but one, where several acknowledgements of one tick blur it, and 2 to 21 % in their send
/// buffers.
const MIN_CLAMP_SHARE_BY_TIMESTAMPS: f64 = 0.38;
/// Part of the largest flight that a clamp must be at.
const MIN_PART_OF_LARGEST: f64 = 0.8;
/// What Linux hands down at once, headers left out: `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER` (`tcp_xmit_size_goal`).
const LARGEST_BURST: u64 = 65_536 - 320;

/// A flight at a ceiling differs from it by one part in so many: socket buffers count whole packets' memory (Linux `sk_wmem_queued`), so what
/// they hold in bytes varies a little (our long-fat scenario with default buffers: 1,940 to 1,962 segments).
const CEILING_PARTS: u64 = 100;
/// The same elsewhere than at the sender on hosts that do not answer at once: when what came had left is known to a tick there, and a host that is
/// late by some milliseconds has acknowledged that much less. `a_full_buffer_of_a_busy_host_is_no_growth` fails without it.
const LATE_CEILING_PARTS: u64 = 8;
/// CUBIC's window grows by a twentieth in each round trip where it knows of no loss yet (Linux `bictcp_update`): by a fifth in the
/// [`MIN_CONSTANT_ROUNDS`] that two halves of the shortest time are apart.
const MIN_CREEP: f64 = 1.05;

/// How many times as fast as data comes on average BBR paces it at most, once it knows the rate (Linux `bbr_pacing_gain`).
const PACING_GAIN_MAX: f64 = 1.25;

/// Whether a flight differs from a level by no more than one part in so many of that.
fn is_within(flight: u64, level: u64, parts: u64) -> bool {
    flight.abs_diff(level) * parts <= level
}

/// A flight that something which does not grow holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ceiling {
    level: u64,
    parts: u64,
}

impl Ceiling {
    pub(super) fn holds(&self, flight: u64) -> bool {
        is_within(flight, self.level, self.parts)
    }
}

/// The flight in the middle of the time, of flights with the time at each, and the time of those `like` it; `None` where that is not most of it.
fn level(held: &[(u64, u64)], like: impl Fn(u64, u64) -> bool) -> Option<(u64, u64)> {
    let all: u64 = held.iter().map(|h| h.1).sum();
    let level = behind(held, 2)?;
    let time: u64 = held.iter().filter(|h| like(h.0, level)).map(|h| h.1).sum();
    (time as f64 >= MIN_CEILING_SHARE * all as f64).then_some((level, time))
}

impl RoundTrips<'_> {
    /// The flights of the open time after slow start in which no receive window was full, each with that time.
    fn open_flights(&self, exit: u64, of: impl Fn(&View) -> u64) -> Vec<(u64, u64)> {
        let open = self.views.iter().filter(|v| v.at >= exit && v.windowed <= 0.5 && v.slice.open > 0);
        let mut held: Vec<(u64, u64)> = open.map(|v| (of(v), v.slice.open)).collect();
        held.sort_unstable();
        held
    }

    /// Whether a buffer, or a clamp, may hold so much: a segment at least, as small devices' do; what is less is a program's message.
    fn is_held(&self, flight: u64) -> bool {
        flight >= self.sender.space.mss
    }

    /// Whether a flight stood for long enough to be held by something that does not grow.
    fn lasts(&self, time: u64) -> bool {
        self.sender.rtt.mean().is_some_and(|rtt| time as f64 >= 2.0 * MIN_CONSTANT_ROUNDS as f64 * rtt)
    }

    /// The flight at which a flow without loss or queue stands for most of all its open time after slow start. A window that the path holds
    /// back grows until there is one of the two, so it is not the path that holds it, however evenly it delivers; unless that `fills` the path, as
    /// BBR does without a queue.
    pub(super) fn still(&self, exit: u64, fills: bool) -> Option<Ceiling> {
        if self.sender.losses.any() {
            return None;
        }
        let unqueued = |v: &View| if self.is_queued(v.rtt) { 0 } else { v.flight };
        let flights = self.open_flights(exit, unqueued);
        let stands = |parts: u64| {
            let (level, time) = level(&flights, |flight, level| is_within(flight, level, parts))?;
            (self.lasts(time) && self.is_held(level)).then_some(Ceiling { level, parts })
        };
        let may_be_late = || !self.sender.is_exact() && !fills && !self.creeps(exit);
        stands(CEILING_PARTS).or_else(|| if may_be_late() { stands(LATE_CEILING_PARTS) } else { None })
    }

    /// Whether the flights after slow start grow as CUBIC's window does that left it without a loss.
    fn creeps(&self, exit: u64) -> bool {
        let [[_, earlier], [_, later]] = self.halves(exit);
        later as f64 >= MIN_CREEP * earlier as f64
    }

    /// Whether no burst fits into what a flight leaves of the largest window: paced data waits for room for all of its next burst, which is what its
    /// rate sends in a millisecond, and two segments at least.
    ///
    /// Source: Linux `tcp_tso_autosize`, `tcp_tso_should_defer`.
    pub(super) fn reaches_window(&self, view: &View) -> bool {
        let mss = self.sender.space.mss;
        let burst = (PACING_GAIN_MAX * view.rate / 1e3).max(2.0 * mss as f64) as u64;
        self.sender.is_exact() && self.sender.window.known && view.flight + burst + mss > self.sender.window.max
    }

    /// The flight of a flow without loss, to a tenth, where it is the same most of the time, whatever that is charged to.
    pub(super) fn level(&self) -> Option<u64> {
        if self.sender.losses.any() {
            return None;
        }
        let mut held: Vec<(u64, u64)> = self.views.iter().map(|v| (v.flight, v.span)).collect();
        held.sort_unstable();
        level(&held, |flight, level| is_within(flight, level, 10)).map(|(flight, _)| flight)
    }

    /// The whole number of segments that the flight of each round trip after slow start is at its largest, most of the time: a clamp of the
    /// congestion window. A socket buffer counts memory, and holds a segment more or less.
    pub(crate) fn clamp(&self) -> Option<u64> {
        let exit = self.sender.observers.slow_start.exit.map_or(u64::MAX, |(at, _)| at);
        let (level, time) = level(&self.open_flights(exit, |v| v.flight), |flight, level| flight == level)?;
        // The program behind a full buffer fills it up burst by burst; a clamped window moves on by what is acknowledged.
        let moves_on = self.sender.totals.from_below * 5 <= self.sender.totals.data_packets;
        self.clamp_at(level, time, moves_on).filter(|_| !self.mostly_waits())
    }

    /// The same elsewhere than at the sender, where the flight is as its packets' timestamps tell it.
    pub(crate) fn clamp_told(&self) -> Option<u64> {
        let flights = &self.sender.observers.flight_levels;
        let (level, time) = flights.most();
        // Paced data (BBR) stands as still behind a buffer.
        let may_be_paced = !self.sender.remote.triggers.are_acknowledgements_alone();
        (!may_be_paced && time as f64 >= MIN_CLAMP_SHARE_BY_TIMESTAMPS * flights.all as f64).then_some(())?;
        self.clamp_at(level, time, false).filter(|_| !self.mostly_waits())
    }

    /// The clamp, if a flight at which so much time was spent is one; `no_buffer` where it is known to be none's.
    fn clamp_at(&self, level: u64, time: u64, no_buffer: bool) -> Option<u64> {
        // A full buffer may hold whole bursts of the stack's, and stands as still: that is not distinguished from a clamp at as many segments.
        let mss = self.sender.space.mss.max(1);
        let burst = (LARGEST_BURST / mss).max(1) * mss;
        let bursts = (level % burst).min(burst - level % burst) * 100 <= mss;
        // A segment of the flight may be shorter than the others by an option that it carried.
        let odd = (level % mss).min(mss - level % mss);
        // It never was larger; elsewhere than at the sender what it was by round trips that grow and shrink errs by a tenth.
        let largest = level as f64 >= MIN_PART_OF_LARGEST * self.sender.totals.flight_max as f64;
        let is_one = odd * 100 <= mss && (no_buffer || !bursts) && self.lasts(time) && largest;
        is_one.then_some((level + odd) / mss * mss)
    }

    /// For each slice, whether the flight of each round trip around it is the same to within two segments, and is the largest
    /// the flow had. Congestion control would have made it grow; a buffer counted in bytes does not.
    pub(super) fn constant_flight(&self) -> Vec<bool> {
        let mss = self.sender.space.mss;
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
            let long = span as f64 >= MIN_CONSTANT_ROUNDS as f64 * self.views[from].rtt.max(1.0);
            if long && self.is_held(base) && (base + 2 * mss) * 20 >= largest * 19 {
                constant[from..to].fill(true);
            }
            from = to;
        }
        constant
    }
}
