//! How many ranges: a hill climber that adds ranges while the receive window is what limits, and keeps them only if they pay.
//!
//! It has no clock and no socket. [`Controller::tick`] takes what was measured about once a round trip and gives the number of ranges.

use std::collections::VecDeque;
use std::time::Duration;

/// The first step, from one range, when its window limits. A new connection's slow start takes as long however many begin together,
/// so one large step is soon over; ranges that the path turns out not to need are removed by arithmetic.
const FIRST_STEP: usize = 8;
/// Later ranges are multiplied by this, while every one of them is limited by its window.
const STEP: usize = 2;
/// Ranges that do not add this share of goodput are removed, even where the measured noise is smaller.
const LEAST_GAIN: f64 = 0.05;
/// The window is given this much beyond the bandwidth-delay product, for the bottleneck's queue: `MARGIN` of crates/tune/src/buffers.rs.
const MARGIN: f64 = 1.25;
/// Ranges are removed down to this share of them. A removed range loses what it has in flight, and the others need a request for the rest
/// of its bytes, so that removing a few of many costs more than it saves.
const TRIM_SHARE: f64 = 0.5;
/// Round trips until a new connection is at its window: three for TCP and TLS, then slow start from ten segments (RFC 6928)
/// to 32 MiB, the largest default of Linux's `tcp_rmem`, in twelve doublings.
const SETTLE_ROUND_TRIPS: u32 = 16;
/// Round trips over which goodput is measured.
const MEASURE_ROUND_TRIPS: u32 = 8;
/// The shortest time over which goodput is measured: kernels and cards deliver in bursts of milliseconds.
const MEASURE_LEAST: Duration = Duration::from_millis(100);
/// Round trips for which every window must be full before ranges are added: a window that auto-tuning still raises is full for one
/// (Linux `tcp_rcv_space_adjust` acts once a round trip), and slow start ends meanwhile.
const FULL_ROUND_TRIPS: u32 = 1;
/// How long a step that did not pay is not repeated at first; then twice as long each time.
const HOLD: Duration = Duration::from_secs(10);
/// The longest hold.
const HOLD_MOST: Duration = Duration::from_secs(300);

/// What was measured at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Since the download began.
    pub now: Duration,
    /// Bytes stored by all ranges until now, resent ones not counted.
    pub bytes: u64,
    /// Ranges that receive data.
    pub ranges: usize,
    /// Those of them whose window is full and has stopped growing, without a queue on the path.
    pub window_limited: usize,
    /// The least round-trip time of the connections.
    pub min_rtt: Duration,
    /// The largest receive window of one connection, in bytes; 0 if not known.
    pub window_bytes: u64,
}

/// Chooses the number of ranges.
#[derive(Debug, Clone)]
pub struct Controller {
    target: usize,
    most: usize,
    state: State,
    hold: Duration,
    /// Goodput samples since the last change: time and bytes.
    history: VecDeque<(Duration, u64)>,
    /// Since when every window is full.
    full: Option<Duration>,
    /// When the number of ranges was changed last.
    changed: Duration,
    /// What the window was computed to need, at the last complete measurement.
    needed: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Looks for a reason to change something.
    Watching,
    /// Ranges were added or removed at `changed`: is it worth it?
    Trial { from: usize, before_bps: f64, noise: f64 },
    /// The last trial is not repeated before this.
    Holding { until: Duration },
}

impl Controller {
    /// Begins with one range; there are never more than `most`.
    pub fn new(most: usize) -> Self {
        Self {
            target: 1,
            most: most.max(1),
            state: State::Watching,
            hold: HOLD,
            history: VecDeque::new(),
            full: None,
            changed: Duration::ZERO,
            needed: None,
        }
    }

    /// The number of ranges there should be.
    pub const fn target(&self) -> usize {
        self.target
    }

    /// Ranges that the bandwidth-delay product needs, by the last measurement in which the windows did not limit.
    pub const fn needed(&self) -> Option<usize> {
        self.needed
    }

    /// The server takes no more than `ranges` at a time.
    pub fn refused(&mut self, ranges: usize) {
        self.most = ranges.max(1);
        if self.target > self.most {
            self.target = self.most;
            self.state = State::Watching;
            self.history.clear();
        }
    }

    /// The largest number of ranges that is tried.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// Takes a sample and returns the number of ranges there should be.
    pub fn tick(&mut self, sample: &Sample) -> usize {
        let measure = (sample.min_rtt * MEASURE_ROUND_TRIPS).max(MEASURE_LEAST);
        self.history.push_back((sample.now, sample.bytes));
        while self.history.get(1).is_some_and(|&(at, _)| at + measure <= sample.now) {
            self.history.pop_front();
        }
        let full = sample.ranges >= self.target && sample.window_limited >= sample.ranges.max(1);
        self.full = full.then(|| self.full.unwrap_or(sample.now));
        let all_limited = self.full.is_some_and(|since| sample.now >= since + sample.min_rtt * FULL_ROUND_TRIPS);
        match self.state {
            State::Trial { from, before_bps, noise } => {
                self.judge(sample, measure, all_limited, from, before_bps, noise)
            }
            State::Holding { until } if sample.now < until => {}
            State::Holding { .. } | State::Watching if all_limited && self.target < self.most => {
                let target = if self.target == 1 { FIRST_STEP } else { self.target * STEP };
                self.change(sample, target.min(self.most));
            }
            State::Holding { .. } | State::Watching if all_limited => self.needed = None,
            State::Holding { .. } | State::Watching => self.trim(sample, measure),
        }
        self.target
    }

    /// Decides about the latest change.
    fn judge(
        &mut self,
        sample: &Sample,
        measure: Duration,
        all_limited: bool,
        from: usize,
        before_bps: f64,
        noise: f64,
    ) {
        let Some((goodput, _)) = self.goodput() else { return };
        let added = self.target > from;
        // Windows that are all full again show that the path holds them all: no need to wait for a longer measurement.
        if added && all_limited && goodput > before_bps * (1.0 + LEAST_GAIN) {
            self.state = State::Watching;
            return;
        }
        let settle = if added { sample.min_rtt * SETTLE_ROUND_TRIPS } else { sample.min_rtt * 4 };
        if sample.now < self.changed + settle + measure {
            return;
        }
        let margin = noise.max(LEAST_GAIN);
        let pays = if added { goodput >= before_bps * (1.0 + margin) } else { goodput >= before_bps * (1.0 - margin) };
        if pays {
            self.hold = HOLD;
            // What was removed without a loss was not needed; after an addition the arithmetic is due.
            self.state = if added { State::Watching } else { State::Holding { until: sample.now + self.hold } };
        } else {
            self.target = from.min(self.most);
            self.state = State::Holding { until: sample.now + self.hold };
            self.hold = (self.hold * 2).min(HOLD_MOST);
            self.changed = sample.now;
            self.history.clear();
        }
    }

    /// Removes ranges that the bandwidth-delay product does not need.
    fn trim(&mut self, sample: &Sample, measure: Duration) {
        let Some((goodput, _)) = self.goodput() else { return };
        // With fewer ranges than there should be, the object ends, and the rate is not the path's.
        if sample.now < self.changed + measure || sample.window_bytes == 0 || sample.ranges < self.target {
            return;
        }
        let bdp_bytes = goodput / 8.0 * sample.min_rtt.as_secs_f64();
        let needed = ((bdp_bytes * MARGIN / sample.window_bytes as f64).ceil() as usize).max(1);
        self.needed = Some(needed);
        if needed as f64 <= self.target as f64 * TRIM_SHARE {
            self.change(sample, needed);
        }
    }

    fn change(&mut self, sample: &Sample, target: usize) {
        // What was measured before the windows were full belongs to slow start.
        if let Some(since) = self.full.take() {
            self.history.retain(|&(at, _)| at >= since);
        }
        let (before_bps, noise) = self.goodput().unwrap_or((0.0, 0.0));
        self.state = State::Trial { from: self.target, before_bps, noise };
        self.target = target;
        self.needed = None;
        self.changed = sample.now;
        self.history.clear();
        self.history.push_back((sample.now, sample.bytes));
    }

    /// Goodput over the history in bits per second, and how far its two halves are from each other, as a share of it.
    fn goodput(&self) -> Option<(f64, f64)> {
        let (&(begin, first), &(end, last)) = (self.history.front()?, self.history.back()?);
        let rate = |from: (Duration, u64), to: (Duration, u64)| {
            let seconds = to.0.saturating_sub(from.0).as_secs_f64();
            (seconds > 0.0).then(|| to.1.saturating_sub(from.1) as f64 * 8.0 / seconds)
        };
        let whole = rate((begin, first), (end, last))?;
        let middle = self.history[self.history.len() / 2];
        let noise = match (rate((begin, first), middle), rate(middle, (end, last))) {
            (Some(one), Some(other)) if whole > 0.0 => (one - other).abs() / whole / 2.0,
            _ => 0.0,
        };
        Some((whole, noise))
    }
}

#[cfg(test)]
mod tests;
