//! The window that the receiver advertises, and how it is used (RFC 9293 §3.8.6).

use super::scale_search::ScaleSearch;

/// A window below this part of the largest is no full one: unread data fills the buffer behind it. Where a program reads at once, 1 % of
/// the windows are that small, while they grow (our labelled set's receive windows).
pub(crate) const FULL_PART: f64 = 0.75;

/// The advertised window of one direction's receiver.
#[derive(Debug, Default)]
pub(crate) struct SendWindow {
    /// What tells the scale, where no SYN does.
    pub(crate) search: Option<Box<ScaleSearch>>,
    /// The window field can be turned into bytes.
    pub(crate) known: bool,
    pub(crate) size: Option<u64>,
    pub(crate) max: u64,
    /// The sequence number after the window's last byte.
    pub(super) edge: u64,
    /// When new data last left less than a segment of the window unused.
    pub(super) filled_at: Option<u64>,
    /// What there was of the window before it was moved on last was used up.
    pub(super) was_used_up: bool,
    /// Since when the window has had room for all that is gathered into one burst, with nothing sent into it.
    pub(super) open_at: Option<u64>,
    /// The sender asked for room since the window closed: it has data that waits.
    pub(super) is_probed: bool,
}

impl SendWindow {
    /// The scale that data tells.
    pub(crate) fn found_scale(&self) -> Option<u8> {
        self.search.as_ref().and_then(|search| search.found())
    }

    /// Whether a window is no full one.
    pub(super) fn is_small(&self, window: u64) -> bool {
        (window as f64) < self.max as f64 * FULL_PART
    }
}
