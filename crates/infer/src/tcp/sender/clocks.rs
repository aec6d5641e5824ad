//! When the sender last sent, heard and progressed.

/// Moments of one direction, in nanoseconds since the flow's first packet.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    pub(crate) last_send: u64,
    /// Nanoseconds between the last two packets with data.
    pub(super) last_gap: u64,
    pub(super) last_progress: u64,
    /// It was an acknowledgement without payload that brought it.
    pub(super) progress_was_pure: bool,
    /// When anything was sent again last.
    pub(super) last_again: u64,
    pub(super) last_heard: u64,
    /// When the first unacknowledged byte was sent last, or came to be the first.
    pub(super) head_at: u64,
    /// When it was told first that something after it came.
    pub(super) told_at: Option<u64>,
    /// When a packet without new data told, by its number, that none was on its way.
    pub(super) idle_at: Option<u64>,
    /// When the last new data was acknowledged.
    pub(crate) last_delivery: Option<u64>,
}
