//! Packets that evidence points at.

/// Moments worth pointing at.
#[derive(Debug, Default)]
pub(crate) struct ExamplePackets {
    /// First packets that filled the window: number and time.
    pub(crate) window_full: Vec<(u64, u64)>,
    pub(crate) zero_window: Vec<(u64, u64)>,
    pub(crate) largest_window: Option<(u64, u64)>,
    /// Acknowledgements with blocks about data that was never sent.
    pub(crate) foreign_blocks: Vec<(u64, u64)>,
}
