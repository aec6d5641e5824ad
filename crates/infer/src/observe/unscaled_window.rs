//! The end of the receiver's window as a middlebox sees it that takes the window field for a number of bytes (RFC 7323 §2.3): what lies
//! beyond it never arrives. Behind the middlebox that is not seen sent either: data ends within a segment of the edge, and a timer sends on from there.

/// The window without its scale.
#[derive(Debug, Default)]
pub(crate) struct UnscaledWindow {
    /// Where it ended at most.
    edge: Option<u64>,
    /// Data beyond it was sent since the last stop.
    is_exceeded: bool,
    /// Where new data ended that left no room for a segment before it.
    full: Option<u64>,
    /// End of data that no such middlebox lets through, while it was sent once only.
    probe: Option<u64>,
    /// Data beyond it arrived: nothing drops it.
    is_passed: bool,
    /// Times that data was sent again after data beyond it had been sent, or from where it was full.
    stops: u64,
    /// Times that data whose first copy was not seen was sent again from elsewhere.
    others: u64,
    /// The largest window field.
    pub(crate) field_max: u64,
}

impl UnscaledWindow {
    /// New data up to `end` is sent, in segments of `mss` bytes.
    pub(crate) fn sent(&mut self, end: u64, mss: u64) {
        let Some(edge) = self.edge else { return };
        self.is_exceeded |= end > edge;
        if end <= edge && end + mss > edge {
            self.full = Some(end);
        }
        // The middlebox may have seen acknowledgements that the sender has not, of what it let through: one window field at most.
        if self.probe.is_none() && end > edge + self.field_max {
            self.probe = Some(end);
        }
    }

    /// Data from `start` on is sent again.
    pub(crate) fn resent(&mut self, start: u64) {
        self.probe = self.probe.filter(|probe| start >= *probe);
        self.stops += u64::from(self.is_exceeded);
        self.is_exceeded = false;
    }

    /// Data from `start` on is sent again whose first copy the tap did not see.
    pub(crate) fn went_on(&mut self, start: u64) {
        if self.full == Some(start) {
            self.stops += 1;
        } else {
            self.others += 1;
        }
    }

    /// Data up to `reached` arrived.
    pub(crate) fn arrived(&mut self, reached: u64) {
        self.is_passed |=
            self.edge.is_some_and(|edge| reached > edge) || self.probe.is_some_and(|probe| reached >= probe);
    }

    /// The window of the SYN-ACK, which no scale changes (RFC 7323 §2.2), ends there: a middlebox that follows it lets so much through.
    pub(crate) fn opened(&mut self, edge: u64) {
        self.edge = self.edge.max(Some(edge));
    }

    /// The receiver acknowledged up to `to` and advertised this window field.
    pub(crate) fn advertised(&mut self, to: u64, field: u64) {
        self.edge = self.edge.max(Some(to + field));
        self.field_max = self.field_max.max(field);
    }

    /// How often data ended there; 0 where any passed it, or ended elsewhere as often.
    pub(crate) const fn stops(&self) -> u64 {
        if self.is_passed || self.others >= self.stops { 0 } else { self.stops }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each round the flight ends this far beyond what was acknowledged, and what the field of 6,000 lets through arrives.
    fn stopped(rounds: u64, flight: u64) -> UnscaledWindow {
        let mut window = UnscaledWindow::default();
        for round in 0..rounds {
            let una = round * 6_000;
            if round > 0 {
                window.resent(una - 1_000);
            }
            window.arrived(una);
            window.advertised(una, 6_000);
            window.sent(una + flight, 1_000);
        }
        window
    }

    #[test]
    fn what_passes_the_edge_once_shows_that_nothing_drops_it() {
        let mut window = stopped(4, 12_000);
        assert_eq!(window.stops(), 3);
        window.arrived(30_000);
        assert_eq!(window.stops(), 0);
    }

    #[test]
    fn the_window_of_the_syn_ack_lets_more_through() {
        let mut window = UnscaledWindow::default();
        window.opened(65_535);
        let mut una: u64 = 0;
        for _ in 0..20 {
            window.resent(una);
            window.arrived(una);
            window.advertised(una, 6_000);
            window.sent(una + 20_000, 1_000);
            una = (una + 20_000).min((una + 6_000).max(65_535));
        }
        assert_eq!(window.stops(), 16, "the first four flights pass, and the last is not sent again");
    }

    #[test]
    fn what_is_acknowledged_in_small_steps_passes_too() {
        let mut window = stopped(4, 9_000);
        assert_eq!(window.stops(), 3);
        // Five fields are in flight, and every second segment is acknowledged.
        let from = 18_000;
        window.sent(from + 30_000, 1_000);
        (1..=10).for_each(|n| {
            window.arrived(from + n * 3_000);
            window.advertised(from + n * 3_000, 6_000);
        });
        assert_eq!(window.stops(), 0);
    }
}
