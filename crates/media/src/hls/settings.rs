//! How long and large segments are.

/// How long and large segments are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// A segment ends at the first keyframe after this, in milliseconds.
    pub target_ms: u64,
    /// The longest segment, in milliseconds. A segment without a further keyframe ends here, and what follows until the next keyframe is in no segment.
    pub longest_ms: u64,
    /// The largest segment, in bytes, with the same effect. From half of it on, a segment ends at the next keyframe.
    pub bytes_max: usize,
    /// How long the first segment waits for video that nothing announces, in milliseconds.
    pub video_wait_ms: u64,
    /// How long it waits for the first keyframe of video that metadata or a configuration announce, in milliseconds.
    pub announced_wait_ms: u64,
}

/// Encoders' timestamps are rounded to milliseconds: a keyframe that is this early is in time.
pub(super) const EARLY_MS: u64 = 20;

impl Settings {
    /// The shortest segment, in milliseconds, but for those that a discontinuity or another configuration ends, and the first one.
    pub fn shortest_ms(&self) -> u64 {
        self.target_ms.saturating_sub(EARLY_MS).max(1)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            target_ms: 2_000,
            longest_ms: 60_000,
            bytes_max: 64 << 20,
            video_wait_ms: 2_000,
            announced_wait_ms: 20_000,
        }
    }
}
