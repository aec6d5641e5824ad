//! Slow start: how large the initial window was, and when and why the growth ended.

use crate::event::{Acked, Limit, Sent, Trigger};

/// A program did not hold a round in which it had nothing to send for at most so many nanoseconds: it writes within that time when the acknowledgement
/// of all before wakes it. `a_flight_of_few_segments_that_never_grows_is_a_buffers` fails without it.
const WOKEN_WITHIN: u64 = 100_000;

/// Why slow start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A loss.
    Loss,
    /// An ECN echo.
    Echo,
    /// A round's flight grew by less than a quarter over the one before, and so did the next.
    Plateau,
}

/// How long slow start's flight grew, and what the rounds since were held by.
#[derive(Debug, Default)]
pub(crate) struct RoundGrowth {
    /// The last round that grew by a quarter, and when it ended.
    pub(crate) rounds: u32,
    pub(crate) until: u64,
    /// Rounds since; those of them in which the receiver's window was full; those in which the program had nothing to send for a while.
    pub(crate) since: u32,
    pub(crate) limited: u32,
    pub(crate) idle: u32,
}

#[derive(Debug, Clone, Copy)]
struct Round {
    number: u32,
    end: u64,
    grew: bool,
    limited: bool,
    idle: bool,
}

impl RoundGrowth {
    fn round(&mut self, round: Round) {
        if round.grew {
            *self = Self { rounds: round.number, until: round.end, ..Self::default() };
            return;
        }
        self.since += 1;
        self.limited += u32::from(round.limited);
        self.idle += u32::from(round.idle);
    }
}

/// Rounds of the slow start of one direction. A round is one window: it ends when what was sent at its start is acknowledged.
#[derive(Debug, Default)]
pub(crate) struct SlowStart {
    pub(crate) exit: Option<(u64, Exit)>,
    pub(crate) rounds: u32,
    /// Flight less what was acknowledged, at its largest, in bytes: the initial window, or a lower bound of it.
    pub(crate) initial_bytes: u64,
    /// It was sent before anything was acknowledged, and what came after it waited for an acknowledgement: no pacing, no pause of
    /// the program, so the window ended it.
    pub(crate) initial_known: bool,
    initial_newest: bool,
    initial_unacked: bool,
    round_end: u64,
    round_start: u64,
    round_flight: u64,
    round_limited: bool,
    pub(crate) growth: RoundGrowth,
    idle_before: u64,
    previous_flight: u64,
    suspect: Option<u64>,
}

impl SlowStart {
    /// New data was sent; `idle` is the application's idle time so far.
    pub(crate) fn sent(&mut self, send: &Sent, idle: u64) {
        if self.exit.is_some() {
            return;
        }
        let acked = send.una.saturating_sub(send.first);
        let initial = send.flight.saturating_sub(acked);
        if initial > self.initial_bytes {
            self.initial_bytes = initial;
            self.initial_known = false;
            self.initial_newest = true;
            self.initial_unacked = acked == 0;
        } else if std::mem::take(&mut self.initial_newest) {
            self.initial_known = self.initial_unacked && send.trigger != Trigger::Own;
        }
        if send.una >= self.round_end {
            self.end_round(send, idle);
        }
        self.round_flight = self.round_flight.max(send.flight);
    }

    /// A send after the round's data was acknowledged ends it, and proves that data was pending if an acknowledgement set it off.
    fn end_round(&mut self, send: &Sent, idle: u64) {
        let is_idle = idle - self.idle_before > WOKEN_WITHIN;
        let fair = !self.round_limited && send.trigger != Trigger::Own && !is_idle;
        if self.previous_flight > 0 {
            let grew = self.round_flight as f64 >= 1.25 * self.previous_flight as f64;
            match (fair, grew, self.suspect) {
                // Two rounds in turn: a single one may have run out of data.
                (true, false, Some(since)) => self.exit = Some((since, Exit::Plateau)),
                (true, false, None) => self.suspect = Some(self.round_start),
                _ => self.suspect = None,
            }
        }
        self.rounds += 1;
        self.growth.round(Round {
            number: self.rounds,
            end: send.now,
            grew: self.previous_flight == 0 || self.round_flight as f64 >= 1.25 * self.previous_flight as f64,
            limited: self.round_limited,
            idle: self.rounds > 1 && is_idle,
        });
        if self.suspect.is_none() {
            self.previous_flight = self.round_flight;
        }
        self.round_end = send.next;
        self.round_start = send.now;
        self.round_flight = 0;
        self.round_limited = false;
        self.idle_before = idle;
    }

    /// An acknowledgement came.
    pub(crate) fn acked(&mut self, acked: &Acked) {
        if acked.ecn_echo {
            self.exit.get_or_insert((acked.now, Exit::Echo));
        }
        // The receiver's window was full.
        self.round_limited |= matches!(acked.limit, Limit::ReceiveWindow | Limit::Reader);
    }

    /// Data was lost.
    pub(crate) fn lost(&mut self, now: u64) {
        self.exit.get_or_insert((now, Exit::Loss));
    }
}
