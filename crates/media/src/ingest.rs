//! A publisher's tags → configurations, metadata and access units on one timeline.

use crate::aac::AacError;
use crate::avc::{AvcError, Nals};
use crate::flv::AVC;
use crate::{AacConfig, AvcConfig, Config, Tag, TagKind, Timeline, Track, Unit};
use std::sync::Arc;

/// Turns tags into what a stream is made of. It outlives a publisher, so that the next one goes on on the same timeline.
#[derive(Debug, Default)]
pub struct Ingest {
    timeline: Timeline,
    video: Option<Arc<AvcConfig>>,
    audio: Option<Arc<AacConfig>>,
    metadata: Option<Arc<[u8]>>,
}

/// What a tag was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// A track is decoded otherwise from here on. One that only repeats what holds is not told.
    Config(Config),
    /// `onMetaData`, as a script tag carries it.
    Metadata(Arc<[u8]>),
    /// A picture, or a frame of sound.
    Unit(Unit),
}

/// Why a tag was not taken. The next one may be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// Not H.264, by its number in FLV; 12 is HEVC as some encoders have it, and one of 128 and more an extended header.
    #[error("video codec {0} is not supported: send H.264")]
    VideoCodec(u8),
    /// Not AAC, by its number in FLV; 2 is MP3.
    #[error("audio codec {0} is not supported: send AAC")]
    AudioCodec(u8),
    /// It ends before its payload.
    #[error("a media tag is cut off")]
    Cut,
    /// The configuration or a unit of H.264 makes no sense.
    #[error(transparent)]
    Avc(#[from] AvcError),
    /// The configuration of AAC makes no sense.
    #[error(transparent)]
    Aac(#[from] AacError),
}

/// A video tag's upper bit: the codec is in four letters, as "enhanced RTMP" has it.
const EXTENDED: u8 = 0x80;

impl Ingest {
    /// Another publisher's tags follow: its time goes on from here, and its configurations are told anew.
    pub fn restart(&mut self) {
        self.timeline.restart();
        (self.video, self.audio, self.metadata) = (None, None, None);
    }

    /// The video's configuration, once it has come.
    pub const fn video(&self) -> Option<&Arc<AvcConfig>> {
        self.video.as_ref()
    }

    /// The audio's configuration, once it has come.
    pub const fn audio(&self) -> Option<&Arc<AacConfig>> {
        self.audio.as_ref()
    }

    /// The last `onMetaData`, as a script tag carries it.
    pub const fn metadata(&self) -> Option<&Arc<[u8]>> {
        self.metadata.as_ref()
    }

    /// Takes a tag; `None` for what says nothing: a configuration that holds already, an end of sequence, a unit before its
    /// configuration, a script that is no metadata.
    ///
    /// # Errors
    /// [`IngestError`]: the tag is passed over.
    pub fn take(&mut self, tag: &Tag) -> Result<Option<Arrival>, IngestError> {
        match tag.kind {
            TagKind::Video => self.video_tag(tag),
            TagKind::Audio => self.audio_tag(tag),
            TagKind::Script => {
                // The string's marker and length, then the name.
                let wanted = tag.payload.starts_with(b"\x02\0\x0aonMetaData");
                Ok(wanted.then(|| Arrival::Metadata(self.metadata.insert(tag.payload.as_slice().into()).clone())))
            }
        }
    }

    fn video_tag(&mut self, tag: &Tag) -> Result<Option<Arrival>, IngestError> {
        let &head = tag.payload.first().ok_or(IngestError::Cut)?;
        if head & EXTENDED != 0 {
            return Err(IngestError::VideoCodec(head));
        }
        // Frame type 5: a command to the player, of one byte.
        if head >> 4 == 5 {
            return Ok(None);
        }
        if head & 0x0f != AVC {
            return Err(IngestError::VideoCodec(head & 0x0f));
        }
        let (&[_, kind, cts @ ..], payload) = tag.payload.split_first_chunk::<5>().ok_or(IngestError::Cut)?;
        match kind {
            0 => {
                if self.video.as_ref().is_some_and(|config| config.record == payload) {
                    return Ok(None);
                }
                let config = Arc::new(AvcConfig::parse(payload)?);
                self.video = Some(config.clone());
                Ok(Some(Arrival::Config(Config::Avc(config))))
            }
            1 => {
                let Some(config) = &self.video else { return Ok(None) };
                Nals::new(payload, config.length_size).check()?;
                // 24 bits with a sign.
                let cts_ms = i32::from_be_bytes([cts[0], cts[1], cts[2], 0]) >> 8;
                Ok(Some(Arrival::Unit(self.unit(Track::Video, tag.timestamp_ms, cts_ms, head >> 4 == 1, payload))))
            }
            _ => Ok(None),
        }
    }

    fn audio_tag(&mut self, tag: &Tag) -> Result<Option<Arrival>, IngestError> {
        let &head = tag.payload.first().ok_or(IngestError::Cut)?;
        if head >> 4 != 10 {
            return Err(IngestError::AudioCodec(head >> 4));
        }
        let (&[_, kind], payload) = tag.payload.split_first_chunk::<2>().ok_or(IngestError::Cut)?;
        if kind == 0 {
            if self.audio.as_ref().is_some_and(|config| config.record == payload) {
                return Ok(None);
            }
            let config = Arc::new(AacConfig::parse(payload)?);
            self.audio = Some(config.clone());
            return Ok(Some(Arrival::Config(Config::Aac(config))));
        }
        if self.audio.is_none() || payload.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arrival::Unit(self.unit(Track::Audio, tag.timestamp_ms, 0, true, payload))))
    }

    fn unit(&mut self, track: Track, timestamp_ms: u32, cts_ms: i32, keyframe: bool, payload: &[u8]) -> Unit {
        let placed = self.timeline.place(track, timestamp_ms);
        Unit {
            track,
            dts_ms: placed.ms,
            cts_ms,
            keyframe,
            discontinuity: placed.discontinuity,
            payload: payload.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flv::{self, FlvReader};
    use proptest::prelude::*;

    fn tag(kind: TagKind, timestamp_ms: u32, payload: &[u8]) -> Tag {
        Tag { kind, timestamp_ms, payload: payload.to_vec() }
    }

    fn avc() -> Arc<AvcConfig> {
        Arc::new(AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration"))
    }

    #[test]
    fn tags_become_units() {
        let mut ingest = Ingest::default();
        let header = [b"\x17\0\0\0\0", &avc().record[..]].concat();
        let unit = tag(TagKind::Video, 500, b"\x17\x01\xff\xff\xfe\0\0\0\x01\x65");
        assert_eq!(ingest.take(&unit), Ok(None), "a unit before its configuration");
        assert_eq!(ingest.take(&tag(TagKind::Video, 500, &header)), Ok(Some(Arrival::Config(Config::Avc(avc())))));
        assert_eq!(ingest.take(&tag(TagKind::Video, 500, &header)), Ok(None));
        let Ok(Some(Arrival::Unit(found))) = ingest.take(&unit) else { panic!("a unit") };
        assert_eq!((found.dts_ms, found.cts_ms, found.keyframe, found.discontinuity), (1000, -2, true, false));
        assert_eq!(&found.payload[..], b"\0\0\0\x01\x65");
        // As a tag it is what it was, but for the time.
        let mut bytes = Vec::new();
        flv::write_header(false, true, &mut bytes);
        flv::write_unit(&found, &mut bytes);
        let again = FlvReader::new(100).read(&mut &bytes[..]).expect("FLV").expect("a tag");
        assert_eq!((again.payload, again.timestamp_ms), (unit.payload.clone(), 1000));
        assert_eq!(ingest.take(&tag(TagKind::Audio, 500, b"\xaf\0\x12\x10")).map(|a| a.is_some()), Ok(true));
        let Ok(Some(Arrival::Unit(found))) = ingest.take(&tag(TagKind::Audio, 510, b"\xaf\x01abc")) else {
            panic!("a unit")
        };
        assert_eq!((found.dts_ms, found.track, found.keyframe), (1010, Track::Audio, true));
        // Another publisher.
        ingest.restart();
        assert_eq!(ingest.take(&tag(TagKind::Video, 0, &header)).map(|a| a.is_some()), Ok(true));
        let Ok(Some(Arrival::Unit(found))) = ingest.take(&unit) else { panic!("a unit") };
        assert!(found.discontinuity && found.dts_ms > 1010);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let mut ingest = Ingest::default();
        assert_eq!(ingest.take(&tag(TagKind::Video, 0, b"\x1c\0\0\0\0")), Err(IngestError::VideoCodec(12)));
        assert_eq!(ingest.take(&tag(TagKind::Video, 0, b"\x90hvc1")), Err(IngestError::VideoCodec(0x90)));
        assert_eq!(ingest.take(&tag(TagKind::Audio, 0, b"\x2f\0")), Err(IngestError::AudioCodec(2)));
        assert_eq!(ingest.take(&tag(TagKind::Video, 0, b"")), Err(IngestError::Cut));
        assert_eq!(
            ingest.take(&tag(TagKind::Video, 0, b"\x17\0\0\0\0\x02\0\0\0\0\0")),
            Err(AvcError::Version(2).into())
        );
        let metadata = b"\x02\0\x0aonMetaData\x08\0\0\0\0\0\0\x09";
        assert_eq!(
            ingest.take(&tag(TagKind::Script, 0, metadata)),
            Ok(Some(Arrival::Metadata(metadata.as_slice().into())))
        );
        assert_eq!(ingest.take(&tag(TagKind::Script, 0, b"\x02\0\x02on")), Ok(None));
        assert_eq!(ingest.metadata().map(|m| m.len()), Some(metadata.len()));
    }

    proptest! {
        #[test]
        fn nothing_panics(parts in prop::collection::vec((0u8..3, any::<u32>(), prop::collection::vec(any::<u8>(), 0..40)), 0..30)) {
            let mut ingest = Ingest::default();
            let header = [b"\x17\0\0\0\0", &avc().record[..]].concat();
            ingest.take(&tag(TagKind::Video, 0, &header)).expect("a configuration");
            for (kind, timestamp_ms, payload) in parts {
                let (kind, head) = [
                    (TagKind::Audio, &b""[..]),
                    (TagKind::Video, b""),
                    (TagKind::Video, b"\x27\x01\0\0\0\0\0\0"),
                ][usize::from(kind)];
                let _ = ingest.take(&tag(kind, timestamp_ms, &[head, &payload].concat()));
            }
        }
    }
}
