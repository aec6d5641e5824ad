//! Tracks that a publisher sends and of which nothing can be taken: without their configuration, or damaged.

use super::end::End;
use thalweg_media::{Arrival, IngestError, Track};
use thalweg_model::LimitsConfig;

/// Since when nothing of a track that is sent could be taken, in milliseconds since 1970: of video, and of audio.
#[derive(Debug, Default)]
pub(super) struct Untaken([Option<u64>; 2]);

impl Untaken {
    /// A tag of `track` came at `now_ms`, and was taken as this; `is_configured` says whether the track has a configuration.
    ///
    /// # Errors
    /// [`End::Untaken`] where nothing could be taken for longer than `limits.publish_silence`: for viewers the track is silent.
    pub(super) fn tag(
        &mut self,
        track: Track,
        taken: &Result<Option<Arrival>, IngestError>,
        is_configured: bool,
        now_ms: u64,
        limits: &LimitsConfig,
    ) -> Result<(), End> {
        let since_ms = &mut self.0[usize::from(track == Track::Audio)];
        let why = match taken {
            Ok(Some(Arrival::Unit(_) | Arrival::UnitWithConfig(..))) => {
                *since_ms = None;
                return Ok(());
            }
            Err(error) => Some(*error),
            Ok(None) if !is_configured => None,
            // A configuration, or what holds no media.
            Ok(_) => return Ok(()),
        };
        let lasted_ms = now_ms.saturating_sub(*since_ms.get_or_insert(now_ms));
        match lasted_ms > limits.publish_silence.as_micros() / 1_000 {
            true => Err(End::Untaken(track, why)),
            false => Ok(()),
        }
    }
}
