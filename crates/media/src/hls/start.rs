//! The beginning of a stream: which tracks its first segment has.
//!
//! Publishers do not begin with both tracks at once. A relay such as nginx-rtmp-module sends sound at once, and video from the next
//! keyframe on, which may be ten seconds away. A player that finds sound alone in the first segment makes no room for video.

use super::settings::Settings;
use crate::{Track, Unit};

/// Waits for the first keyframe of a publisher.
#[derive(Debug, Default)]
pub(super) struct Start {
    /// When the first unit came.
    began_ms: Option<u64>,
    /// Metadata, a configuration or a unit says that there is video.
    is_video_announced: bool,
}

/// What becomes of a unit at the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// It belongs in a segment.
    pub(super) is_taken: bool,
    /// What was written before it does not.
    pub(super) drop_open: bool,
    /// The tracks are known: nothing is waited for any more.
    pub(super) is_over: bool,
}

impl Start {
    pub(super) const fn announce_video(&mut self) {
        self.is_video_announced = true;
    }

    /// Takes a unit; `is_known` says of which tracks, video and audio, there is a configuration.
    pub(super) fn unit(&mut self, unit: &Unit, is_known: [bool; 2], settings: &Settings) -> Step {
        let [is_video_known, is_audio_known] = is_known;
        let waited_ms = unit.dts_ms.saturating_sub(*self.began_ms.get_or_insert(unit.dts_ms));
        if unit.track == Track::Video {
            self.is_video_announced = true;
            let is_keyframe = unit.keyframe && is_video_known;
            return Step { is_taken: is_keyframe, drop_open: true, is_over: is_keyframe };
        }
        if self.is_video_announced {
            let is_late = is_audio_known && waited_ms >= settings.announced_wait_ms;
            return Step { is_taken: is_late, drop_open: true, is_over: is_late };
        }
        Step { is_taken: is_audio_known, drop_open: false, is_over: waited_ms >= settings.video_wait_ms }
    }
}
