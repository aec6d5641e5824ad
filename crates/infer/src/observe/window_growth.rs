//! How the receiver's window grew.

use super::counted::Counted;
use crate::event::Advertised;

/// WindowGrowth that counts, as a part of what the window was: less is what unread segments take of it.
pub(crate) const MIN_GROWTH_DIVISOR: u64 = 16;
/// How a window grew.
#[derive(Debug, Default)]
pub(crate) struct WindowGrowth {
    /// The first window, SYNs apart.
    pub(crate) first: Option<u64>,
    pub(crate) largest: u64,
    /// When it last grew.
    pub(crate) grown_at: u64,
    /// Times the window was full since.
    pub(crate) full_since: u64,
    /// Packets that filled it, and the sum of the windows that were full.
    pub(crate) filled: Counted,
    pub(crate) filled_sum: f64,
    /// Acknowledgements that closed it, and the first with the largest.
    pub(crate) closed: Counted,
    pub(crate) largest_in: Option<(u64, u64)>,
}

impl WindowGrowth {
    pub(crate) fn advertised(&mut self, number: u64, now: u64, window: &Advertised) {
        if window.is_largest {
            self.largest_in = Some((number, now));
        }
        if window.bytes == 0 {
            self.closed.note(number, now);
        }
        if !window.is_known || window.is_syn {
            return;
        }
        self.first.get_or_insert(window.bytes);
        if window.bytes > self.largest + self.largest / MIN_GROWTH_DIVISOR {
            (self.largest, self.grown_at, self.full_since) = (window.bytes, now, 0);
        }
    }

    /// A packet filled the window.
    pub(crate) fn filled(&mut self, number: u64, now: u64, window: u64) {
        self.full_since += 1;
        self.filled.note(number, now);
        self.filled_sum += window as f64;
    }
}
