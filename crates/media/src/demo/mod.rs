//! A built-in stream: a ball over colour bars, with a flash and a tone each second. It needs no encoder but what is here.
//!
//! The picture is H.264 of the Baseline profile whose macroblocks are raw samples (I_PCM) or as they were (P_Skip): exact, and small
//! because the picture is. The sound is AAC-LC with two spectral lines.

mod picture;
mod sound;

use crate::{AacConfig, AvcConfig, Config, Track, Unit};
use picture::Painter;
use std::sync::Arc;

/// The stream's units, in the order of their decoding, without end. The same ones each time.
#[derive(Debug)]
pub struct Demo {
    painter: Painter,
    video: Arc<AvcConfig>,
    audio: Arc<AacConfig>,
    pictures: u64,
    frames: u64,
}

/// Pictures a second.
pub const PICTURES_PER_SECOND: u64 = 25;
/// Pictures from keyframe to keyframe: two seconds.
const KEYFRAME_EACH: u64 = 50;
/// Samples a second.
pub const SAMPLES_PER_SECOND: u64 = 48_000;
const SAMPLES_PER_FRAME: u64 = 1024;
/// How long the flash and the tone last, in milliseconds.
const SIGNAL_MS: u64 = 120;

impl Default for Demo {
    fn default() -> Self {
        Self::new()
    }
}

impl Demo {
    /// The stream from its beginning, which is at 0 ms.
    pub fn new() -> Self {
        let video = AvcConfig::of(&picture::sps(), &picture::pps()).expect("invariant: the sets are ours");
        let audio = AacConfig::low_complexity(SAMPLES_PER_SECOND as u32, 1).expect("invariant: AAC has this rate");
        Self { painter: Painter::default(), video: Arc::new(video), audio: Arc::new(audio), pictures: 0, frames: 0 }
    }

    /// How to decode it.
    pub fn configs(&self) -> [Config; 2] {
        [Config::Avc(self.video.clone()), Config::Aac(self.audio.clone())]
    }

    /// When the next unit is due, in milliseconds since the beginning.
    pub fn due_ms(&self) -> u64 {
        self.picture_ms().min(self.sound_ms())
    }

    const fn picture_ms(&self) -> u64 {
        self.pictures * 1000 / PICTURES_PER_SECOND
    }

    const fn sound_ms(&self) -> u64 {
        self.frames * SAMPLES_PER_FRAME * 1000 / SAMPLES_PER_SECOND
    }
}

impl Iterator for Demo {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let (picture_ms, sound_ms) = (self.picture_ms(), self.sound_ms());
        let (track, dts_ms, keyframe, payload) = if picture_ms <= sound_ms {
            let keyframe = self.pictures.is_multiple_of(KEYFRAME_EACH);
            let payload = self.painter.paint(self.pictures, signal(picture_ms), keyframe);
            self.pictures += 1;
            (Track::Video, picture_ms, keyframe, payload)
        } else {
            self.frames += 1;
            (Track::Audio, sound_ms, true, sound::frame(signal(sound_ms)))
        };
        Some(Unit { track, dts_ms, cts_ms: 0, keyframe, discontinuity: false, payload: payload.into() })
    }
}

/// Whether the flash and the tone are on.
const fn signal(ms: u64) -> bool {
    ms % 1000 < SIGNAL_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::avc::{NAL_IDR, Nals};

    #[test]
    fn ten_seconds_are_whole_and_small() {
        let mut demo = Demo::new();
        let [Config::Avc(avc), Config::Aac(aac)] = demo.configs() else { panic!("H.264 and AAC") };
        assert_eq!((avc.width, avc.height, aac.sample_rate()), (320, 192, 48_000));
        let (mut video, mut audio, mut bytes, mut last) = (0, 0, 0, 0);
        while demo.due_ms() < 10_000 {
            let due_ms = demo.due_ms();
            let unit = demo.next().expect("it has no end");
            assert!(unit.dts_ms == due_ms && unit.dts_ms >= last);
            last = unit.dts_ms;
            bytes += unit.payload.len();
            match unit.track {
                Track::Video => {
                    let types: Vec<u8> = Nals::new(&unit.payload, 4).map(|nal| nal[0] & 31).collect();
                    assert_eq!(types, [if unit.keyframe { NAL_IDR } else { 1 }]);
                    video += 1;
                }
                Track::Audio => audio += 1,
            }
        }
        assert_eq!((video, audio), (250, 469));
        // Within 1.5 Mb/s, so that many viewers fit on one machine.
        assert!(bytes * 8 / 10 < 1_500_000, "{bytes}");
    }
}
