//! Where the time of a data phase goes: each moment is charged to one class, some of them when the next event explains them.

use crate::event::{Acked, Limit, Sent, Waited};
use crate::reset::{Reset, reset_keeping};

/// Most slices of time a flow keeps; on overflow neighbours are merged, so long flows are seen more coarsely. Bounds memory.
const MAX_SLICES: usize = 4_096;
/// First width of a slice: the kernel's own pacing and timer granularity at HZ 1000.
const MIN_SLICE_NS: u64 = 1_000_000;

/// What happened in a slice of time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slice {
    /// Number of the slice since the first data, in units of its width.
    pub(crate) index: u64,
    /// Time charged to [`Limit::Open`], to [`Limit::ReceiveWindow`] and to [`Limit::Reader`], in nanoseconds.
    pub(crate) open: u64,
    pub(crate) window: u64,
    pub(crate) reader: u64,
    /// Bytes newly delivered.
    pub(crate) delivered: u64,
    /// Of these, those delivered while the class was [`Limit::Open`] or [`Limit::ReceiveWindow`].
    pub(crate) open_delivered: u64,
    pub(crate) window_delivered: u64,
    /// Most bytes in flight.
    pub(crate) flight_max: u64,
    /// The receiver's window that was heard of last, in bytes; 0 where none was, or it is closed.
    pub(crate) window_size: u64,
    /// Sum and number of RTT samples, in nanoseconds.
    pub(crate) rtt_sum: u64,
    pub(crate) rtt_count: u32,
    /// Least and largest of them.
    pub(crate) rtt_min: u64,
    pub(crate) rtt_max: u64,
    /// Of packets whose sender had not paused before, the least of the round trips they show, and the least that they came late by its clock,
    /// from an arbitrary moment on.
    pub(crate) prompt: Option<(u64, i64)>,
    /// Bytes were lost or being repaired in it, or a mark cut the window.
    pub(crate) lossy: bool,
}

impl Slice {
    /// Takes a round trip in, and how late the packet that shows it came, unless its sender had paused; in nanoseconds.
    pub(crate) fn timed(&mut self, nanos: u64, late: Option<i64>) {
        let prompt = late.map(|late| (nanos, late));
        self.join_times(&Self {
            rtt_sum: nanos,
            rtt_count: 1,
            rtt_min: nanos,
            rtt_max: nanos,
            prompt,
            ..Self::default()
        });
    }

    /// Takes in what another timed.
    fn join_times(&mut self, other: &Self) {
        self.rtt_min = match (self.rtt_count, other.rtt_count) {
            (_, 0) => self.rtt_min,
            (0, _) => other.rtt_min,
            _ => self.rtt_min.min(other.rtt_min),
        };
        self.rtt_sum = self.rtt_sum.saturating_add(other.rtt_sum);
        self.rtt_count += other.rtt_count;
        self.rtt_max = self.rtt_max.max(other.rtt_max);
        self.prompt = match (self.prompt, other.prompt) {
            (Some((rtt, late)), Some(other)) => Some((rtt.min(other.0), late.min(other.1))),
            (own, other) => own.or(other),
        };
    }
}

/// Time charged so far.
#[derive(Debug, Default)]
pub(crate) struct TimeByLimit {
    /// Nanoseconds by class; those of `Open` are also in the slices.
    pub(crate) time: [u64; Limit::COUNT],
    /// Bytes delivered by class.
    pub(crate) delivered: [u64; Limit::COUNT],
    pub(crate) slices: Vec<Slice>,
    pub(crate) width: u64,
    /// First data, and the moment up to which time was charged.
    pub(crate) start: Option<u64>,
    now: u64,
    /// Charged since the sender last sent, before its latest progress; not yet final.
    before_progress: [u64; Limit::COUNT],
    /// Charged since the latest progress.
    since_progress: [u64; Limit::COUNT],
    /// Open time since there was room to send.
    open_since_room: u64,
    /// Charged since data was delivered last: it is part of the phase once more is.
    after: [u64; Limit::COUNT],
    room_at: Option<u64>,
    /// What was charged to the application last, at once.
    last_pause: u64,
}

impl Reset for TimeByLimit {
    fn reset(&mut self) {
        reset_keeping!(self, slices);
    }
}

impl TimeByLimit {
    /// All that was charged so far, in nanoseconds.
    pub(crate) fn total(&self) -> u64 {
        self.time.iter().sum()
    }

    /// What was charged to the application so far, in nanoseconds.
    pub(crate) const fn idle(&self) -> u64 {
        self.time[Limit::Application as usize]
    }

    /// Begins the data phase with the first packet of it.
    pub(crate) fn begin(&mut self, now: u64) {
        if self.start.is_none() {
            self.start = Some(now);
            self.now = now;
            self.width = MIN_SLICE_NS;
        }
    }

    /// Charges the time since the last event to `class`.
    pub(crate) fn advance(&mut self, now: u64, class: Limit) {
        if self.start.is_none() || now <= self.now {
            return;
        }
        let elapsed = now - self.now;
        self.now = now;
        self.since_progress[class as usize] += elapsed;
        self.after[class as usize] += elapsed;
        if self.room_at.is_some() && class == Limit::Open {
            self.open_since_room += elapsed;
        }
    }

    /// An acknowledgement came.
    pub(crate) fn acked(&mut self, acked: &Acked) {
        let Acked { now, limit, delivered, .. } = *acked;
        self.advance(now, limit);
        if delivered > 0 {
            self.delivered[limit as usize] += delivered;
            self.after = [0; Limit::COUNT];
        }
        if acked.advanced {
            self.progress();
        }
        // There is room to send from now on.
        if acked.has_room && self.room_at.is_none() {
            self.room_at = Some(now);
            self.open_since_room = 0;
        }
        let Some(slice) = self.slice(now) else { return };
        slice.delivered += delivered;
        match limit {
            Limit::Open => slice.open_delivered += delivered,
            Limit::ReceiveWindow => slice.window_delivered += delivered,
            _ => {}
        }
        // The window is cut as after a loss (RFC 3168 §6.1.2).
        slice.lossy |= acked.ecn_echo;
        slice.flight_max = slice.flight_max.max(acked.flight);
        if acked.window.is_known {
            slice.window_size = acked.window.bytes;
        }
    }

    /// Acknowledgements made progress: what waited before is no part of a timer's silence any more.
    fn progress(&mut self) {
        for (before, since) in self.before_progress.iter_mut().zip(&mut self.since_progress) {
            *before += std::mem::take(since);
        }
    }

    /// New data was sent.
    pub(crate) fn sent(&mut self, sent: &Sent) -> Waited {
        self.progress();
        let (mut charged, mut room) = (0, 0);
        if sent.was_idle {
            charged += self.had_nothing_to_send();
        }
        if sent.had_window {
            charged += self.had_window();
        }
        if let Some(since) = self.room_at.take() {
            room = self.open_since_room;
            if sent.now.saturating_sub(since) > sent.patience && !sent.was_gathered {
                charged += self.charge_application(Limit::Open, room);
            }
        }
        self.last_pause = self.before_progress[Limit::Application as usize];
        self.settle();
        Waited { charged, room }
    }

    /// Charges what was charged to this limit since the last send to the application instead, `most` of it at most.
    fn charge_application(&mut self, limit: Limit, most: u64) -> u64 {
        let charged = most.min(self.before_progress[limit as usize]);
        self.before_progress[limit as usize] -= charged;
        self.before_progress[Limit::Application as usize] += charged;
        charged
    }

    /// The open time since the last send was the application's: it had nothing to send.
    fn had_nothing_to_send(&mut self) -> u64 {
        self.room_at = None;
        self.charge_application(Limit::Open, u64::MAX)
    }

    /// The time since the last send in which the receiver's window was full was the application's as well: there was room then, and
    /// nothing to be sent.
    fn had_window(&mut self) -> u64 {
        let full = self.charge_application(Limit::ReceiveWindow, u64::MAX);
        // What fits the window fits the congestion window, which let as much out before.
        if full == 0 { 0 } else { full + self.had_nothing_to_send() }
    }

    /// A timer expired and the sender sent again: the silence since the last progress was a timeout, `longest` of it at most.
    pub(crate) fn timer_expired(&mut self, longest: u64) {
        let mut left = longest;
        // A closed window is probed by a timer too, but what was waited for is the window.
        for class in [Limit::Application, Limit::Recovery, Limit::Open] {
            let since = &mut self.since_progress[class as usize];
            let silence = (*since).min(left);
            (*since, left) = (*since - silence, left - silence);
            let after = self.after[class as usize].min(silence);
            self.after[class as usize] -= after;
            self.after[Limit::Timeout as usize] += after;
            self.before_progress[Limit::Timeout as usize] += silence;
        }
        self.progress();
        self.room_at = None;
        self.settle();
    }

    /// What was charged to the application last was a timeout, `longest` of it at most.
    pub(crate) fn was_timeout(&mut self, longest: u64) {
        let pause = std::mem::take(&mut self.last_pause).min(longest);
        let [application, timeout] = [Limit::Application, Limit::Timeout].map(|limit| limit as usize);
        self.time[application] = self.time[application].saturating_sub(pause);
        self.time[timeout] += pause;
    }

    /// Data was sent again for another reason, or the flow ended: what is open stays where it was charged.
    pub(crate) fn keep(&mut self) {
        self.progress();
        self.settle();
    }

    /// The data phase ended with the last byte delivered: what the program waited then until it closed the connection is no part of it, nor
    /// is how long closing took.
    pub(crate) fn end_with_data(&mut self) {
        for (charged, after) in self.time.iter_mut().zip(std::mem::take(&mut self.after)) {
            *charged = charged.saturating_sub(after);
        }
    }

    fn settle(&mut self) {
        for (total, pending) in self.time.iter_mut().zip(&self.before_progress) {
            *total += pending;
        }
        let open = self.before_progress[Limit::Open as usize];
        let window = self.before_progress[Limit::ReceiveWindow as usize];
        let reader = self.before_progress[Limit::Reader as usize];
        self.before_progress = [0; Limit::COUNT];
        if open + window + reader > 0 {
            let now = self.now;
            if let Some(slice) = self.slice(now) {
                slice.open += open;
                slice.window += window;
                slice.reader += reader;
            }
        }
    }

    /// The slice that `now` lies in; `None` before the data phase.
    pub(crate) fn slice(&mut self, now: u64) -> Option<&mut Slice> {
        let start = self.start?;
        // Nearly always it is the last, and a division takes long.
        let in_last = self.slices.last().is_some_and(|last| now < start + (last.index + 1) * self.width);
        if in_last {
            return self.slices.last_mut();
        }
        let mut index = now.saturating_sub(start) / self.width;
        if self.slices.last().is_none_or(|last| last.index < index) {
            if self.slices.len() >= MAX_SLICES {
                self.merge();
                index = now.saturating_sub(start) / self.width;
            }
            if self.slices.last().is_none_or(|last| last.index < index) {
                if self.slices.capacity() == 0 {
                    self.slices.reserve(16);
                }
                self.slices.push(Slice { index, ..Slice::default() });
            }
        }
        self.slices.last_mut()
    }

    /// So much is in flight.
    pub(crate) fn flight(&mut self, now: u64, flight: u64) {
        if let Some(slice) = self.slice(now) {
            slice.flight_max = slice.flight_max.max(flight);
        }
    }

    /// What was lost is sent again.
    pub(crate) fn lossy(&mut self, now: u64) {
        if let Some(slice) = self.slice(now) {
            slice.lossy = true;
        }
    }

    fn merge(&mut self) {
        while self.slices.len() > MAX_SLICES / 2 {
            self.width *= 2;
            let slices = std::mem::take(&mut self.slices);
            for mut slice in slices {
                slice.index /= 2;
                match self.slices.last_mut() {
                    Some(last) if last.index == slice.index => {
                        last.open += slice.open;
                        last.window += slice.window;
                        last.reader += slice.reader;
                        last.window_delivered += slice.window_delivered;
                        last.delivered += slice.delivered;
                        last.open_delivered += slice.open_delivered;
                        last.flight_max = last.flight_max.max(slice.flight_max);
                        if slice.window_size > 0 {
                            last.window_size = slice.window_size;
                        }
                        last.join_times(&slice);
                        last.lossy |= slice.lossy;
                    }
                    _ => self.slices.push(slice),
                }
            }
        }
    }
}
