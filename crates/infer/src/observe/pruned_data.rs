//! Data out of order that a receiver dropped from its buffer after it had reported that it came.
//!
//! What is selectively acknowledged may be dropped until it is acknowledged (RFC 2018 §8). An acknowledgement that ends in such data proves
//! it: a receiver acknowledges all that it holds without a gap. Linux prunes so where collapsing the segments into fewer buffers frees too
//! little (`tcp_prune_ofo_queue`), and refuses what comes behind all that it holds.

use super::counted::Counted;

/// What a receiver dropped.
#[derive(Debug, Default)]
pub(crate) struct PrunedData {
    /// Acknowledgements that prove it.
    pub(crate) proofs: Counted,
    /// The least window in them.
    pub(crate) window: Option<u64>,
    /// Bytes sent again since that had been selectively acknowledged.
    pub(crate) again: u64,
    /// Segments that came to a tap beside the receiver and had to come again.
    pub(crate) refused: u64,
    /// Nanoseconds in which this was repaired.
    pub(crate) repair: u64,
    /// The repair under way: since when, and what is to be acknowledged.
    open: Option<(u64, u64)>,
}

impl PrunedData {
    /// An acknowledgement at `now` with this number in the file and this window proves that data was dropped, while data up to `next` was out.
    pub(crate) fn proved(&mut self, now: u64, number: u64, window: u64, next: u64) {
        self.proofs.note(number, now);
        self.window = Some(self.window.map_or(window, |least| least.min(window)));
        let since = self.open.map_or(now, |(since, _)| since);
        self.open = Some((since, next));
    }

    /// All up to `una` is acknowledged at `now`.
    pub(crate) fn acknowledged(&mut self, now: u64, una: u64) {
        if let Some((since, _)) = self.open.take_if(|(_, until)| una >= *until) {
            self.repair += now.saturating_sub(since);
        }
    }
}
