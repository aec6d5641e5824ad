//! The partition of a data phase's time by what limited the sender.

use crate::estimate::round_trips::{MIN_OPEN_SHARE, PLATEAU, RoundTrips};
use crate::estimate::view::View;
use crate::event::Limit;
use crate::observe::sndbuf_wakeups::SndbufWakeups;
use crate::tcp::sender::Sender;
use thalweg_model::Limits;

/// Rounds without growth after which slow start is over.
pub(crate) const MAX_FLAT_ROUNDS: u32 = 2;
/// Round trips within which a window that is used up in slow start has grown by a quarter: even with acknowledgements of two segments each
/// it takes one.
const MAX_ROUND_TRIPS_TO_GROW: f64 = 3.0;
/// Time and bytes of one limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitShare {
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
}

impl LimitShare {
    pub(crate) fn part(self, part: f64) -> Self {
        Self { seconds: self.seconds * part, bytes: self.bytes * part }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { seconds: self.seconds + other.seconds, bytes: self.bytes + other.bytes }
    }
}

/// Time and bytes by limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Partition {
    pub(crate) application: LimitShare,
    pub(crate) receive_window: LimitShare,
    pub(crate) send_buffer: LimitShare,
    pub(crate) slow_start: LimitShare,
    pub(crate) congestion_window: LimitShare,
    pub(crate) path_rate: LimitShare,
    pub(crate) loss_recovery: LimitShare,
    pub(crate) timeout: LimitShare,
    pub(crate) reader: LimitShare,
    /// Mean flight where it stood as a full send buffer has it, in bytes.
    pub(crate) buffered_flight: f64,
}

impl Partition {
    const fn each(&self) -> [LimitShare; 9] {
        [
            self.application,
            self.receive_window,
            self.send_buffer,
            self.slow_start,
            self.congestion_window,
            self.path_rate,
            self.loss_recovery,
            self.timeout,
            self.reader,
        ]
    }

    /// All the time, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.each().iter().map(|spent| spent.seconds).sum()
    }

    /// All that was delivered, in bytes.
    pub(crate) fn bytes(&self) -> f64 {
        self.each().iter().map(|spent| spent.bytes).sum()
    }

    /// The part of the time that `spent` is.
    pub(crate) fn share(&self, spent: LimitShare) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { spent.seconds / seconds } else { 0.0 }
    }

    /// The partition as shares, which add up to 1, unless there is no time at all.
    pub(crate) fn limits(&self) -> Limits {
        let share = |spent| self.share(spent);
        Limits {
            application: share(self.application),
            receive_window: share(self.receive_window),
            send_buffer: share(self.send_buffer),
            slow_start: share(self.slow_start),
            congestion_window: share(self.congestion_window),
            path_rate: share(self.path_rate),
            loss_recovery: share(self.loss_recovery),
            timeout: share(self.timeout),
            reader: share(self.reader),
        }
    }
}

/// Whether a flight is less than seven tenths of what it could be.
const fn is_well_below(flight: u64, of: u64) -> bool {
    flight.saturating_mul(10) < of.saturating_mul(7)
}

/// The flights up to a moment.
struct FlightSoFar {
    /// The largest since the last loss: what the window was before does not bind it afterwards.
    largest: u64,
    /// The last that was a quarter larger than those before, and when.
    grown: u64,
    grown_at: u64,
}

impl FlightSoFar {
    const fn begins(at: u64) -> Self {
        Self { largest: 0, grown: 0, grown_at: at }
    }

    fn take(&mut self, view: &View) {
        self.largest = if view.lossy { view.flight } else { self.largest.max(view.flight) };
        if view.flight * 4 > self.grown * 5 {
            (self.grown, self.grown_at) = (view.flight, view.at);
        }
    }

    /// Whether it is well below what it was: it is what the program wrote, or what the receiver's window holds now.
    const fn fell(&self, view: &View) -> bool {
        is_well_below(view.flight, self.largest)
    }

    /// Whether it has not grown for several round trips: a window that is used up doubles in one, and is not what holds a program that pauses then.
    fn stopped(&self, view: &View) -> bool {
        (view.at - self.grown_at.min(view.at)) as f64 > MAX_ROUND_TRIPS_TO_GROW * view.rtt
    }
}

/// Moves this part of the application's time, which a full send buffer made, to the buffer, or to the path where that was full all the
/// while; with the bytes that moved meanwhile.
fn charge_buffer(split: &mut Partition, part: f64, path_is_full: bool) {
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
    *into = into.and(LimitShare { seconds, bytes });
}

/// Moves the time of repair to a path that is full elsewhere, where that came at the path's rate: the queue was never empty, and no time was lost.
fn charge_full_repair(split: &mut Partition, plateau: f64) {
    let LimitShare { seconds, bytes } = split.loss_recovery;
    if split.path_rate.seconds > 0.0 && bytes >= seconds * PLATEAU * plateau {
        split.path_rate = split.path_rate.and(std::mem::take(&mut split.loss_recovery));
    }
}

/// Whether data comes at even intervals: a timer's, or those of a link at its rate.
pub(crate) fn is_paced(sender: &Sender) -> bool {
    sender.observers.send_spacing.paced(sender.space.mss, sender.rtt.least().unwrap_or(u64::MAX)).is_some()
}

/// Whether what comes evenly may be paced or come out of a queue: no round trip of data tells which.
pub(crate) fn hides_queues(sender: &Sender) -> bool {
    !sender.times_data() && is_paced(sender)
}

impl<'a> RoundTrips<'a> {
    /// What was spent where the sender could not send, or did not want to.
    fn closed(&self) -> Partition {
        let line = &self.sender.observers.time;
        let spent = |class: Limit| LimitShare {
            seconds: line.time[class as usize] as f64 / 1e9,
            bytes: line.delivered[class as usize] as f64,
        };
        Partition {
            application: spent(Limit::Application),
            reader: spent(Limit::Reader),
            loss_recovery: spent(Limit::Recovery),
            timeout: spent(Limit::Timeout),
            ..Partition::default()
        }
    }

    /// Charges every class, and tells the open time apart; `wakes` are the program's pauses, where a full send buffer made them.
    pub(crate) fn split(&self, plateau: Option<f64>, trains: Option<f64>, wakes: Option<&SndbufWakeups>) -> Partition {
        let mut split = self.closed();
        let plateau = plateau.unwrap_or(f64::INFINITY);
        let by_program = self.sender.is_set_off_by_the_program();
        let prompted = !by_program && self.sender.remote.triggers.are_acknowledgements();
        let grows_until = self.sender.observers.slow_start.exit.map_or(u64::MAX, |(at, _)| at);
        let exit = grows_until.min(self.stopped_growing(prompted).unwrap_or(u64::MAX));
        let first_loss = self.sender.losses.episodes.first().map_or(u64::MAX, |loss| loss.at);
        let constant = self.constant_flight();
        // The buffer may hold what the path does, and a queue besides: more of it would wait there.
        let fills = self.fills(trains);
        // Where no round trip of data is known, what comes evenly out of a queue stands as what a sender paces does.
        let still = self.still(exit, fills).filter(|_| !hides_queues(self.sender));
        let line = &self.sender.observers.time;
        let unpaused =
            prompted && line.time[Limit::Application as usize] as f64 <= (1.0 - MIN_OPEN_SHARE) * line.total() as f64;
        // Between such pauses as well it is the buffer that holds the flight, where they take a good part of the time.
        let waits = wakes.is_some_and(|wakes| self.are_long(wakes));
        // Acknowledgements that the receiver delays are no queue.
        let emptied =
            self.emptied_buffer().map(|_| self.sender.observers.stop_and_wait.ack_delay().unwrap_or(0.0) * 1e9);
        let mut so_far = FlightSoFar::begins(line.start.unwrap_or(0));
        // Behind the last of the data the flight falls by itself.
        let last_send = self.sender.clocks.last_send;
        let pauses = line.time[Limit::Application as usize] > line.total() / 20;
        for (n, view) in self.views.iter().enumerate() {
            so_far.take(view);
            let here = LimitShare { seconds: view.slice.open as f64 / 1e9, bytes: view.slice.open_delivered as f64 };
            // While the window doubles, the last round trip's rate is the largest by its nature.
            let growing = view.at < grows_until && !self.is_queued(view.rtt);
            let stands = still.is_some_and(|ceiling| ceiling.holds(view.flight)) && !self.is_queued(view.rtt);
            let held = stands || constant[n] && view.at < first_loss;
            let path_is_full =
                !growing && if waits { fills } else { !stands && self.path_is_full(view, plateau, trains) };
            // A window full behind a queue of the path costs nothing: the path delivers all it can.
            let windowed =
                LimitShare { seconds: view.slice.window as f64 / 1e9, bytes: view.slice.window_delivered as f64 };
            let into = if path_is_full { &mut split.path_rate } else { &mut split.receive_window };
            *into = into.and(windowed);
            if here.seconds == 0.0 && here.bytes == 0.0 {
                continue;
            }
            let fell = !unpaused && view.at < last_send && so_far.fell(view) && view.rate < 0.7 * plateau;
            let into = if emptied.is_some_and(|delay| !self.is_queued(view.rtt - delay)) {
                // Whatever the flight looks like, nothing of it was left when the next one left.
                &mut split.application
            } else if path_is_full {
                &mut split.path_rate
            } else if view.windowed > 0.5 {
                // Between two segments that fill the window there is room for an instant.
                &mut split.receive_window
            } else if view.unread > 0.5 {
                // What fits into a window that the program has made small is soon used up, though it seems to be sent for longer elsewhere.
                &mut split.reader
            } else if waits && view.at >= exit {
                &mut split.send_buffer
            } else if fell && !is_well_below(view.flight, view.window) {
                // It is as large as the window lets it be, which unread data makes smaller than it was.
                &mut split.reader
            } else if fell || view.at < exit && pauses && so_far.stopped(view) {
                &mut split.application
            } else if view.at < exit {
                &mut split.slow_start
            } else if held && by_program {
                // However even the flight is, nothing set off what it is made of.
                &mut split.application
            } else if held && self.reaches_window(view) {
                &mut split.receive_window
            } else if held {
                split.buffered_flight += here.seconds * view.flight as f64;
                &mut split.send_buffer
            } else {
                &mut split.congestion_window
            };
            *into = into.and(here);
        }
        split.buffered_flight /= split.send_buffer.seconds.max(1e-9);
        if let Some(wakes) = wakes {
            charge_buffer(&mut split, wakes.part(), fills);
        }
        charge_full_repair(&mut split, plateau);
        split
    }

    /// When the flight stopped growing, where acknowledgements set nearly all data off (`prompted`), or a timer paces it: elsewhere than at the sender
    /// its pauses would have hidden that, and there were none.
    fn stopped_growing(&self, prompted: bool) -> Option<u64> {
        let growth = &self.sender.observers.slow_start.growth;
        ((prompted || is_paced(self.sender)) && growth.since >= MAX_FLAT_ROUNDS).then_some(growth.until)
    }

    /// The pauses of the sending program, where a full send buffer made them.
    ///
    /// What a full buffer lets go comes in bursts. Elsewhere than at the sender, where a program that writes every ten milliseconds over a round
    /// trip of twenty cannot be distinguished otherwise, data must have come faster than on average.
    pub(crate) fn wakes(&self, trains: Option<f64>) -> Option<&'a SndbufWakeups> {
        let shows_itself = self.sender.is_exact() || !self.fills(trains);
        (shows_itself && self.waits_for_a_buffer()).then_some(&self.sender.observers.sndbuf_wakeups)
    }

    /// Whether the program waits for its buffer in a good part of the time.
    pub(super) fn mostly_waits(&self) -> bool {
        self.waits_for_a_buffer() && self.are_long(&self.sender.observers.sndbuf_wakeups)
    }

    /// Whether such pauses take a good part of the time.
    fn are_long(&self, wakes: &SndbufWakeups) -> bool {
        wakes.time * 4 >= self.delivering()
    }

    fn waits_for_a_buffer(&self) -> bool {
        let wakeups = &self.sender.observers.sndbuf_wakeups;
        self.sender.rtt.mean().is_some_and(|rtt| wakeups.are_a_buffers(rtt, self.sender.window.max))
    }
}
