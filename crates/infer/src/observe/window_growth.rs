//! How the receiver's window grew.

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
}

impl WindowGrowth {
    pub(crate) fn advertised(&mut self, now: u64, window: u64) {
        self.first.get_or_insert(window);
        if window > self.largest + self.largest / MIN_GROWTH_DIVISOR {
            (self.largest, self.grown_at, self.full_since) = (window, now, 0);
        }
    }

    /// The window was full.
    pub(crate) const fn full(&mut self) {
        self.full_since += 1;
    }
}
