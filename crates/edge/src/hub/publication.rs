//! A stream's publisher, as operators see it.

use serde::Serialize;
use thalweg_media::Config;

/// Facts about who publishes a stream, or published it last.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Publication {
    /// Its address and port.
    pub address: String,
    /// When it began, in milliseconds since 1970.
    pub began_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Why it ended.
    pub why: Option<String>,
    /// What it sends, over the last seconds.
    pub bits_per_second: u64,
    /// Tags that made no sense and were passed over.
    pub skipped_tags: u64,
    /// The pictures, once their configuration has come.
    pub video: Option<VideoFacts>,
    /// The sound, once its configuration has come.
    pub audio: Option<AudioFacts>,
}

/// Facts about pictures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VideoFacts {
    /// The codec's name. Source: RFC 6381.
    pub codec: String,
    /// Pixels; 0 where the configuration is not understood.
    pub width: u32,
    /// Pixels; 0 where the configuration is not understood.
    pub height: u32,
    /// Pictures a second, as measured, once there is a segment.
    pub frame_rate: Option<f64>,
}

/// Facts about sound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AudioFacts {
    /// The codec's name. Source: RFC 6381.
    pub codec: String,
    /// Samples a second and channel.
    pub sample_rate: u32,
    /// Channels.
    pub channels: u8,
}

impl Publication {
    /// Takes what a configuration says.
    pub fn describe(&mut self, config: &Config, frame_rate: Option<f64>) {
        let codec = config.codec();
        match config {
            Config::Avc(avc) => {
                self.video = Some(VideoFacts { codec, width: avc.width, height: avc.height, frame_rate });
            }
            Config::Aac(aac) => {
                // Source: ISO/IEC 14496-3 table 1.19: 7 stands for eight.
                let channels = if aac.channel_configuration == 7 { 8 } else { aac.channel_configuration };
                self.audio = Some(AudioFacts { codec, sample_rate: aac.sample_rate(), channels });
            }
            Config::Mp3(mp3) => {
                self.audio = Some(AudioFacts { codec, sample_rate: mp3.sample_rate, channels: mp3.channels });
            }
            _ => {}
        }
    }
}
