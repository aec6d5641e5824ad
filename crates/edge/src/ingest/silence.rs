//! Silence in place of sound that pauses while video goes on.
//!
//! A player in a browser plays what its buffers of video and of sound both hold: while one of them is empty it stands still. One that
//! joins while there is no sound makes no room for it: hls.js ends with an error when sound comes again.

use std::sync::Arc;
use thalweg_media::{Config, Track, Unit};

/// Sound that is missing for so long, on the stream's timeline and by the clock, pauses. Encoders send a frame each 20 to 130 ms (1024
/// samples at 48 to 8 kHz), so no frame that is merely late or in a burst is replaced. A player holds more than this: its reserve is at
/// least a segment, two seconds as shipped.
const PAUSE_MS: u64 = 1_000;
/// The longest silence that one picture can ask for: longer is a jump of the clock.
const FILLED_MAX_MS: u64 = 60_000;

/// Fills pauses of a publisher's sound.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// A frame of silence, and how long it lasts, in microseconds; `None` for sound that none is known for.
    frame: Option<(Arc<[u8]>, u64)>,
    /// When the next frame of sound is due on the timeline, in microseconds.
    due_us: Option<u64>,
    /// When sound came last, by the clock.
    heard_ms: u64,
    is_filling: bool,
    /// Up to where silence was written, in microseconds.
    filled_us: u64,
}

impl Silence {
    /// Takes a configuration.
    pub(super) fn config(&mut self, config: &Config) {
        if config.track() == Track::Audio {
            *self = Self { frame: frame(config), ..Self::default() };
        }
    }

    /// Whether there is silence for this sound.
    pub(super) fn is_known(config: &Config) -> bool {
        frame(config).is_some()
    }

    /// There is no sound from `dts_ms` on, until some comes.
    pub(super) const fn begin(&mut self, dts_ms: u64) {
        (self.due_us, self.is_filling) = (Some(dts_ms * 1_000), true);
    }

    /// The frames of silence before `unit`, which came at `now_ms`, and whether it is taken: sound that comes when its place is filled
    /// is not.
    pub(super) fn before(&mut self, unit: &Unit, now_ms: u64) -> (Vec<Unit>, bool) {
        let Some((frame, duration_us)) = &self.frame else { return (Vec::new(), true) };
        if unit.discontinuity {
            (self.due_us, self.is_filling, self.filled_us) = (None, false, 0);
        }
        let dts_us = unit.dts_ms * 1_000;
        if unit.track == Track::Audio {
            (self.heard_ms, self.is_filling) = (now_ms, false);
            // Times are rounded to milliseconds.
            let is_taken = dts_us + 1_000 > self.filled_us;
            if is_taken {
                self.due_us = Some(dts_us + duration_us);
            }
            return (Vec::new(), is_taken);
        }
        let Some(mut due_us) = self.due_us else { return (Vec::new(), true) };
        let missing_ms = dts_us.saturating_sub(due_us) / 1_000;
        self.is_filling |= missing_ms >= PAUSE_MS && now_ms.saturating_sub(self.heard_ms) >= PAUSE_MS;
        if missing_ms > FILLED_MAX_MS {
            (self.due_us, self.is_filling) = (None, false);
        }
        let mut silence = Vec::new();
        while self.is_filling && due_us + duration_us <= dts_us {
            let payload = Arc::clone(frame);
            let dts_ms = due_us.div_ceil(1_000);
            silence.push(Unit {
                track: Track::Audio,
                dts_ms,
                cts_ms: 0,
                keyframe: true,
                discontinuity: false,
                payload,
            });
            due_us += duration_us;
            (self.due_us, self.filled_us) = (Some(due_us), due_us);
        }
        (silence, true)
    }
}

/// A frame of silence, and how long it lasts, in microseconds.
fn frame(config: &Config) -> Option<(Arc<[u8]>, u64)> {
    let Config::Aac(aac) = config else { return None };
    let duration_us = u64::from(aac.samples) * 1_000_000 / u64::from(aac.sample_rate());
    aac.silence().map(|frame| (Arc::from(frame), duration_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_media::AacConfig;

    fn unit(track: Track, dts_ms: u64) -> Unit {
        Unit { track, dts_ms, cts_ms: 0, keyframe: true, discontinuity: false, payload: Arc::from([1]) }
    }

    /// The times of the silence before units of both tracks, in order, that come at once.
    fn filled(silence: &mut Silence, units: &[(Track, u64, u64)]) -> (Vec<u64>, Vec<u64>) {
        let (mut times, mut dropped) = (Vec::new(), Vec::new());
        for &(track, dts_ms, now_ms) in units {
            let (frames, is_taken) = silence.before(&unit(track, dts_ms), now_ms);
            times.extend(frames.iter().map(|frame| frame.dts_ms));
            dropped.extend((!is_taken).then_some(dts_ms));
        }
        (times, dropped)
    }

    fn silence() -> Silence {
        let mut silence = Silence::default();
        // 64 ms a frame.
        silence.config(&Config::Aac(Arc::new(AacConfig::low_complexity(16_000, 1).expect("AAC"))));
        silence
    }

    #[test]
    fn a_pause_is_filled_without_a_gap_until_sound_comes_again() {
        let (video, audio) = (Track::Video, Track::Audio);
        let mut filler = silence();
        let before = [(audio, 0, 0), (video, 0, 0), (video, 900, 900), (video, 1_040, 1_040)];
        assert_eq!(filled(&mut filler, &before), (vec![], vec![]), "too short to be a pause");
        let (times, dropped) = filled(&mut filler, &[(video, 1_080, 1_080), (video, 1_280, 1_280)]);
        assert_eq!(times, (1..20).map(|n| n * 64).collect::<Vec<_>>());
        assert_eq!(dropped, Vec::<u64>::new());
        // Sound whose place is filled is late; then all is as before.
        let after = [(audio, 1_216, 1_300), (audio, 1_280, 1_300), (video, 1_320, 1_320), (video, 1_900, 1_900)];
        assert_eq!(filled(&mut filler, &after), (vec![], vec![1_216]));
    }

    #[test]
    fn sound_behind_a_burst_of_video_is_no_pause_and_no_jump_is_filled() {
        let (video, audio) = (Track::Video, Track::Audio);
        assert_eq!(filled(&mut silence(), &[(audio, 0, 0), (video, 5_000, 10), (audio, 64, 20)]), (vec![], vec![]));
        assert_eq!(filled(&mut silence(), &[(audio, 0, 0), (video, 90_000, 5_000)]), (vec![], vec![]));
        assert_eq!(filled(&mut silence(), &[(video, 0, 0), (video, 9_000, 9_000)]), (vec![], vec![]), "no sound yet");
        let mut other = Silence::default();
        other.config(&Config::Aac(Arc::new(AacConfig::low_complexity(48_000, 6).expect("AAC"))));
        assert_eq!(filled(&mut other, &[(audio, 0, 0), (video, 9_000, 9_000)]), (vec![], vec![]));
    }
}
