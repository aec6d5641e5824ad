//! The window that the receiver advertises, and how it is used (RFC 9293 §3.8.6).

/// A window below this part of the largest is no full one: unread data fills the buffer behind it. Where a program reads at once, 1 % of
/// the windows are that small, while they grow (our labelled set's receive windows).
pub(crate) const FULL_PART: f64 = 0.75;

/// One acknowledgement in so many under a small window may leave its end where it is, and the receiver gives room at once nonetheless.
const STAYS: u64 = 8;

/// The advertised window of one direction's receiver.
#[derive(Debug, Default)]
pub(crate) struct SendWindow {
    /// The window field can be turned into bytes.
    pub(crate) known: bool,
    pub(crate) size: Option<u64>,
    pub(crate) max: u64,
    /// The sequence number after the window's last byte.
    pub(super) edge: u64,
    /// When new data last left less than a segment of the window unused.
    pub(super) filled_at: Option<u64>,
    /// Since when the window has had room for all that is gathered into one burst, with nothing sent into it.
    pub(super) open_at: Option<u64>,
    /// Number, mean and mean deviation of full windows below half of the largest.
    pub(super) small: (f64, f64, f64),
    /// Acknowledgements of new data under such windows, and those of them that left the window ending about where it did: its receiver
    /// has the data, and its program has not read it.
    pub(super) small_edges: (u64, u64),
    pub(crate) zero_windows: u64,
    pub(crate) full: u64,
    /// Sum of the windows that were full.
    pub(crate) full_sum: f64,
}

impl SendWindow {
    /// Whether a window is no full one.
    pub(super) fn is_small(&self, window: u64) -> bool {
        (window as f64) < self.max as f64 * FULL_PART
    }

    pub(super) fn note_full_window(&mut self) {
        let window = self.size.unwrap_or(0) as f64;
        self.full_sum += window;
        if self.is_small(self.size.unwrap_or(0)) {
            let count = self.small.0 + 1.0;
            let mean = self.small.1 + (window - self.small.1) / count;
            let spread = self.small.2 + ((window - mean).abs() - self.small.2) / count;
            self.small = (count, mean, spread);
        }
    }

    /// Notes where the window ends by an acknowledgement of so many bytes that were not known to have come.
    pub(super) fn note_edge(&mut self, edge: u64, delivered: u64) {
        if self.size.is_some_and(|window| self.is_small(window)) && delivered > 0 {
            self.small_edges.0 += 1;
            self.small_edges.1 += u64::from(edge.saturating_sub(self.edge) < delivered / 2);
        }
    }

    /// Whether the windows that were small and full stayed about the same: no program reading in fits and starts, but a receiver
    /// that gives no more, as Linux under memory pressure does (`tcp_under_memory_pressure`, `rcv_ssthresh`), and gives it with each
    /// acknowledgement. Where a program reads evenly, the window is as large from one reading to the next, and smaller in between.
    pub(crate) fn small_window_is_steady(&self) -> bool {
        let (count, mean, spread) = self.small;
        let (acknowledged, stayed) = self.small_edges;
        self.zero_windows == 0 && count >= 16.0 && spread < mean / 20.0 && stayed * STAYS <= acknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a window that is small and full whenever data is sent is steady, where it stays as it ends at so many of eight
    /// acknowledgements.
    fn is_steady(stays: u64) -> bool {
        let mut window = SendWindow { size: Some(20_000), max: 100_000, ..SendWindow::default() };
        for n in 0..64 {
            window.note_full_window();
            let edge = window.edge + if n % 8 < stays { 0 } else { 1_000 };
            window.note_edge(edge, 1_000);
            window.edge = edge;
        }
        window.small_window_is_steady()
    }

    #[test]
    fn a_window_that_only_reading_moves_on_is_the_programs() {
        assert!(is_steady(0) && is_steady(1));
        assert!(!is_steady(4));
    }
}
