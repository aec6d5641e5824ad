//! Slow start: how large the initial window was, and when and why the growth ended.

/// Why slow start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A loss, or an ECN echo.
    Loss,
    /// A round's flight grew by less than a quarter over the one before, and so did the next.
    Plateau,
}

/// Rounds of the slow start of one direction. A round is one window: it ends when what was sent at its start is acknowledged.
#[derive(Debug, Default)]
pub(crate) struct SlowStart {
    pub(crate) exit: Option<(u64, Exit)>,
    pub(crate) rounds: u32,
    /// Flight less what was acknowledged, at its largest, in bytes: the initial window, or a lower bound of it.
    pub(crate) initial_bytes: u64,
    round_end: u64,
    round_start: u64,
    round_flight: u64,
    round_limited: bool,
    idle_before: u64,
    previous_flight: u64,
    suspect: Option<u64>,
    sent_in_round: bool,
}

impl SlowStart {
    /// New data was sent.
    pub(crate) fn sent(&mut self, flight: u64, acked: u64, any_loss: bool) {
        self.sent_in_round = true;
        self.round_flight = self.round_flight.max(flight);
        if self.exit.is_none() && !any_loss {
            self.initial_bytes = self.initial_bytes.max(flight.saturating_sub(acked));
        }
    }

    /// Data was lost.
    pub(crate) fn lost(&mut self, now: u64) {
        if self.exit.is_none() {
            self.exit = Some((now, Exit::Loss));
        }
    }

    /// Acknowledgements reached `una`. `limited`: by the receiver's window; `idle`: the application's idle time so far.
    pub(crate) fn acknowledged(&mut self, now: u64, una: u64, nxt: u64, flight: u64, limited: bool, idle: u64) {
        if self.exit.is_some() {
            return;
        }
        self.round_limited |= limited;
        if una < self.round_end || nxt == una && self.round_flight == 0 {
            return;
        }
        let fair = !self.round_limited && idle == self.idle_before && self.sent_in_round && nxt > una;
        if self.previous_flight > 0 {
            let grew = self.round_flight as f64 >= 1.25 * self.previous_flight as f64;
            match (fair, grew, self.suspect) {
                // Two rounds in turn: a single one may have run out of data.
                (true, false, Some(since)) => self.exit = Some((since, Exit::Plateau)),
                (true, false, None) => self.suspect = Some(self.round_start),
                _ => self.suspect = None,
            }
        }
        if self.suspect.is_none() {
            self.previous_flight = self.round_flight;
        }
        self.rounds += 1;
        self.round_end = nxt.max(una + 1);
        self.round_start = now;
        self.round_flight = flight;
        self.round_limited = false;
        self.idle_before = idle;
        self.sent_in_round = false;
    }

    /// The flow ended.
    pub(crate) fn finish(&mut self) {
        self.suspect = None;
    }
}
