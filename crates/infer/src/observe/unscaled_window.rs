//! The end of the receiver's window as a middlebox sees it that takes the window field for a number of bytes (RFC 7323 §2.3): what lies
//! beyond it never arrives.

/// The window without its scale.
#[derive(Debug, Default)]
pub(crate) struct UnscaledWindow {
    /// Where it ended at most.
    edge: Option<u64>,
    /// Data beyond it was sent since the last stop.
    is_exceeded: bool,
    /// Data beyond it arrived: nothing drops it.
    is_passed: bool,
    /// Times that the acknowledgements advanced within it although data beyond it had been sent.
    stops: u64,
    /// The largest window field.
    pub(crate) field_max: u64,
}

impl UnscaledWindow {
    /// Data up to `end` is sent.
    pub(crate) fn sent(&mut self, end: u64) {
        self.is_exceeded |= self.edge.is_some_and(|edge| end > edge);
    }

    /// Data up to `reached` arrived, and if `progress` all before it up to a new number.
    pub(crate) fn arrived(&mut self, reached: u64, progress: bool) {
        let Some(edge) = self.edge.filter(|_| !self.is_passed) else { return };
        if reached > edge {
            self.is_passed = true;
        } else if progress && self.is_exceeded {
            self.is_exceeded = false;
            self.stops += 1;
        }
    }

    /// The receiver acknowledged up to `to` and advertised this window field.
    pub(crate) fn advertised(&mut self, to: u64, field: u64) {
        self.edge = self.edge.max(Some(to + field));
        self.field_max = self.field_max.max(field);
    }

    /// How often data ended there; 0 where any passed it.
    pub(crate) const fn stops(&self) -> u64 {
        if self.is_passed { 0 } else { self.stops }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_the_edge_once_shows_that_nothing_drops_it() {
        let mut window = UnscaledWindow::default();
        for round in 0..4u64 {
            let una = round * 6_000;
            window.arrived(una, round > 0);
            window.advertised(una, 6_000);
            window.sent(una + 12_000);
        }
        assert_eq!(window.stops(), 3);
        window.arrived(30_000, true);
        assert_eq!(window.stops(), 0);
    }
}
