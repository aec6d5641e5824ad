//! A publisher's tags → configurations, metadata and access units on one timeline.

use crate::aac::AacError;
use crate::avc::{AvcError, Nals};
use crate::codec::{CodecId, Foreign};
use crate::tag::body::{self, AAC, AVC, Body, Content, MP3};
use crate::{AacConfig, AvcConfig, Config, Mp3Config, Mp3Error, Tag, TagKind, Timeline, Track, Unit};
use std::sync::Arc;

/// Turns tags into what a stream is made of. It outlives a publisher, so that the next one continues on the same timeline.
#[derive(Debug, Default)]
pub struct Ingest {
    timeline: Timeline,
    now_ms: u64,
    video: Option<Arc<AvcConfig>>,
    /// Video's configuration as the publisher last sent it; parameter sets in a keyframe replace it.
    sent_video: Option<Arc<AvcConfig>>,
    audio: Option<Config>,
    metadata: Option<Arc<[u8]>>,
}

/// What a tag was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// A track is decoded otherwise from here on. A configuration that only repeats the one in force is passed over.
    Config(Config),
    /// `onMetaData`, as a script tag carries it.
    Metadata(Arc<[u8]>),
    /// A picture, or a frame of sound.
    Unit(Unit),
    /// A frame that is decoded otherwise than those before, and says itself how.
    UnitWithConfig(Config, Unit),
}

/// Why a tag was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// A codec that is not carried.
    #[error("{0} is not carried: send H.264 video, and AAC or MP3 audio")]
    Codec(Foreign),
    /// It ends before its payload.
    #[error("a media tag is cut off")]
    Cut,
    /// The configuration or a unit of H.264 makes no sense.
    #[error(transparent)]
    Avc(#[from] AvcError),
    /// The configuration of AAC makes no sense.
    #[error(transparent)]
    Aac(#[from] AacError),
    /// A frame of MP3 makes no sense.
    #[error(transparent)]
    Mp3(#[from] Mp3Error),
}

impl IngestError {
    /// Whether the track cannot be carried at all, rather than this tag.
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Codec(_) | Self::Aac(_) => true,
            Self::Avc(error) => !matches!(error, AvcError::Nal),
            Self::Cut | Self::Mp3(_) => false,
        }
    }
}

impl Ingest {
    /// Another publisher's tags follow: its time continues from here, and its configurations come again.
    pub fn restart(&mut self) {
        self.timeline.restart();
        (self.video, self.sent_video, self.audio, self.metadata) = (None, None, None, None);
    }

    /// What is taken from here on comes at `now_ms`, by any clock that does not go back: a publisher whose timestamps jump ahead by as
    /// much as has passed was silent, and its clock was not set.
    pub const fn set_now(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// The video's configuration, once it has come.
    pub const fn video(&self) -> Option<&Arc<AvcConfig>> {
        self.video.as_ref()
    }

    /// The audio's configuration, once it has come.
    pub const fn audio(&self) -> Option<&Config> {
        self.audio.as_ref()
    }

    /// The last `onMetaData`, as a script tag carries it.
    pub const fn metadata(&self) -> Option<&Arc<[u8]>> {
        self.metadata.as_ref()
    }

    /// Takes a tag; `None` for what says nothing: a configuration that holds already, an end of sequence, a unit before its
    /// configuration, a further track of Enhanced RTMP, a script that is no metadata.
    ///
    /// # Errors
    /// [`IngestError`]: the tag is passed over.
    pub fn take(&mut self, tag: &Tag) -> Result<Option<Arrival>, IngestError> {
        match tag.kind {
            TagKind::Video => self.video_tag(tag.timestamp_ms, &body::video(&tag.payload).ok_or(IngestError::Cut)?),
            TagKind::Audio => self.audio_tag(tag.timestamp_ms, &body::audio(&tag.payload).ok_or(IngestError::Cut)?),
            TagKind::Script => {
                // The string's marker and length, then the name.
                let wanted = tag.payload.starts_with(b"\x02\0\x0aonMetaData");
                Ok(wanted.then(|| Arrival::Metadata(self.metadata.insert(tag.payload.as_slice().into()).clone())))
            }
        }
    }

    fn video_tag(&mut self, timestamp_ms: u32, body: &Body<'_>) -> Result<Option<Arrival>, IngestError> {
        let &Body { codec, is_keyframe, content, payload } = body;
        if content != Content::Nothing && codec != CodecId::Number(AVC) {
            return Err(IngestError::Codec(Foreign { track: Track::Video, id: codec }));
        }
        match content {
            Content::Config => {
                if self.sent_video.as_ref().is_some_and(|config| config.record == payload) {
                    return Ok(None);
                }
                let config = Arc::new(AvcConfig::parse(payload)?);
                (self.video, self.sent_video) = (Some(config.clone()), Some(config.clone()));
                Ok(Some(Arrival::Config(Config::Avc(config))))
            }
            Content::Unit { cts_ms } => {
                let Some(config) = &self.video else { return Ok(None) };
                let nals = Nals::new(payload, config.length_size);
                nals.clone().check()?;
                let is_keyframe = nals.is_keyframe(is_keyframe);
                let other = if is_keyframe { config.replaced_by(nals).map(Arc::new) } else { None };
                let unit = self.unit(Track::Video, timestamp_ms, cts_ms, is_keyframe, payload);
                let Some(other) = other else { return Ok(Some(Arrival::Unit(unit))) };
                self.video = Some(Arc::clone(&other));
                Ok(Some(Arrival::UnitWithConfig(Config::Avc(other), unit)))
            }
            Content::Nothing => Ok(None),
        }
    }

    fn audio_tag(&mut self, timestamp_ms: u32, body: &Body<'_>) -> Result<Option<Arrival>, IngestError> {
        let &Body { codec, content, payload, .. } = body;
        match (codec, content) {
            (_, Content::Nothing) => Ok(None),
            (CodecId::Number(AAC), Content::Config) => {
                if matches!(&self.audio, Some(Config::Aac(config)) if config.record == payload) {
                    return Ok(None);
                }
                let config = AacConfig::parse(payload)?;
                // In other words the same: decoding goes on.
                if matches!(&self.audio, Some(Config::Aac(known)) if known.decodes_as(&config)) {
                    return Ok(None);
                }
                let config = Config::Aac(Arc::new(config));
                self.audio = Some(config.clone());
                Ok(Some(Arrival::Config(config)))
            }
            (CodecId::Number(AAC), _) => {
                let is_ready = matches!(self.audio, Some(Config::Aac(_))) && !payload.is_empty();
                Ok(is_ready.then(|| Arrival::Unit(self.unit(Track::Audio, timestamp_ms, 0, true, payload))))
            }
            (CodecId::Number(number), Content::Unit { .. }) if MP3.contains(&number) => {
                let config = Config::Mp3(Mp3Config::parse(payload)?);
                let unit = self.unit(Track::Audio, timestamp_ms, 0, true, payload);
                if self.audio.as_ref() == Some(&config) {
                    return Ok(Some(Arrival::Unit(unit)));
                }
                self.audio = Some(config.clone());
                Ok(Some(Arrival::UnitWithConfig(config, unit)))
            }
            _ => Err(IngestError::Codec(Foreign { track: Track::Audio, id: codec })),
        }
    }

    fn unit(&mut self, track: Track, timestamp_ms: u32, cts_ms: i32, keyframe: bool, payload: &[u8]) -> Unit {
        let placed = self.timeline.place(track, timestamp_ms, self.now_ms);
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
        assert_eq!((found.dts_ms, found.cts_ms, found.keyframe, found.discontinuity), (10_000, -2, true, false));
        assert_eq!(&found.payload[..], b"\0\0\0\x01\x65");
        let mut flagged = |flag: u8, nal: &[u8]| {
            let payload = [&[flag, 1, 0, 0, 0, 0, 0, 0, 2], nal].concat();
            match ingest.take(&tag(TagKind::Video, 500, &payload)) {
                Ok(Some(Arrival::Unit(unit))) => unit.keyframe,
                other => panic!("{other:?}"),
            }
        };
        assert!(flagged(0x27, b"\x65\x88"), "an IDR picture, whatever the publisher says");
        assert!(!flagged(0x17, b"\x41\x9a"), "a P picture, whatever the publisher says");
        // As a tag it is what it was, but for the time.
        let mut bytes = Vec::new();
        flv::write_header(false, true, &mut bytes);
        flv::write_unit(&found, None, &mut bytes);
        let again = FlvReader::new(100).read(&mut &bytes[..]).expect("FLV").expect("a tag");
        assert_eq!((again.payload, again.timestamp_ms), (unit.payload.clone(), 10_000));
        assert_eq!(ingest.take(&tag(TagKind::Audio, 500, b"\xaf\0\x12\x10")).map(|a| a.is_some()), Ok(true));
        let Ok(Some(Arrival::Unit(found))) = ingest.take(&tag(TagKind::Audio, 510, b"\xaf\x01abc")) else {
            panic!("a unit")
        };
        assert_eq!((found.dts_ms, found.track, found.keyframe), (10_010, Track::Audio, true));
        // Another publisher.
        ingest.restart();
        assert_eq!(ingest.take(&tag(TagKind::Video, 0, &header)).map(|a| a.is_some()), Ok(true));
        let Ok(Some(Arrival::Unit(found))) = ingest.take(&unit) else { panic!("a unit") };
        assert!(found.discontinuity && found.dts_ms > 10_010);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let mut ingest = Ingest::default();
        let mut told = |kind, payload: &[u8]| {
            let error = ingest.take(&tag(kind, 0, payload)).expect_err("refused");
            assert!(error.is_final(), "{error}");
            error.to_string()
        };
        let rest = "is not carried: send H.264 video, and AAC or MP3 audio";
        for (kind, payload, name) in [
            (TagKind::Video, &b"\x1c\0\0\0\0"[..], "HEVC"),
            (TagKind::Video, b"\x90hvc1", "HEVC"),
            (TagKind::Video, b"\x93av01x", "AV1"),
            (TagKind::Video, b"\x91vp09x", "VP9"),
            (TagKind::Video, b"\x12x", "Sorenson H.263"),
            (TagKind::Audio, b"\x90Opusx", "Opus"),
            (TagKind::Audio, b"\x90fLaCx", "FLAC"),
            (TagKind::Audio, b"\x72x", "G.711 A-law"),
            (TagKind::Audio, b"\xb2x", "Speex"),
        ] {
            assert_eq!(told(kind, payload), format!("{name} {rest}"));
        }
        // AAC-ELD has no place in ADTS.
        assert_eq!(told(TagKind::Audio, b"\xaf\0\xf8\xe8\x50\x00"), "audio object type 39 has no place in ADTS");
        let own = told(TagKind::Audio, b"\xaf\0\x11\x80");
        assert!(
            own.ends_with("(channel configuration 0) are not carried: send mono or stereo (FFmpeg: -ac 2)"),
            "{own}"
        );
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

    #[test]
    fn parameter_sets_in_a_keyframe_configure_it() {
        let mut ingest = Ingest::default();
        let header = [b"\x17\0\0\0\0", &avc().record[..]].concat();
        ingest.take(&tag(TagKind::Video, 0, &header)).expect("a configuration");
        let unit = |nals: &[&[u8]]| {
            let nals = nals.iter().flat_map(|nal| [&(nal.len() as u32).to_be_bytes()[..], nal].concat());
            b"\x17\x01\0\0\0".iter().copied().chain(nals).collect::<Vec<u8>>()
        };
        let (sps, pps, idr) = (&b"\x67\x64\0\x28\xac"[..], &b"\x68\xee"[..], &b"\x65\x88"[..]);
        let mut take = |payload: &[u8]| ingest.take(&tag(TagKind::Video, 0, payload)).expect("a tag");
        // The same sets again are no other configuration.
        assert!(matches!(take(&unit(&[&avc().sps[0], &avc().pps[0], idr])), Some(Arrival::Unit(_))));
        let Some(Arrival::UnitWithConfig(Config::Avc(config), found)) = take(&unit(&[sps, pps, idr])) else {
            panic!("a configuration")
        };
        assert!(found.keyframe && config.length_size == 4);
        assert_eq!(
            (config.codec(), &config.sps, &config.pps),
            ("avc1.640028".to_owned(), &vec![sps.to_vec()], &vec![pps.to_vec()])
        );
        assert!(matches!(take(&unit(&[sps, idr])), Some(Arrival::Unit(_))));
        // A publisher that repeats its configuration, which is of before, changes nothing.
        assert_eq!(take(&header), None);
        assert!(matches!(take(&unit(&[sps, pps, idr])), Some(Arrival::Unit(_))));
        // Without a picture parameter set, the former ones hold.
        let Some(Arrival::UnitWithConfig(Config::Avc(config), _)) = take(&unit(&[&avc().sps[0], idr])) else {
            panic!("a configuration")
        };
        assert_eq!(config.pps, [pps]);
        assert!(matches!(take(&unit(&[b"\x67", idr])), Some(Arrival::Unit(_))), "no parameter set");
    }

    #[test]
    fn a_configuration_in_other_words_is_none() {
        let mut ingest = Ingest::default();
        // AAC-LC of 48 kHz; the same, without spectral band replication in so many words; and with it, and at 44.1 kHz.
        for (record, is_other) in [
            (&b"\x11\x90"[..], true),
            (b"\x11\x90\x56\xe5\0", false),
            (b"\x11\x90", false),
            (b"\x11\x90\x56\xe5\x98", true),
            (b"\x12\x10", true),
        ] {
            let taken = ingest.take(&tag(TagKind::Audio, 0, &[b"\xaf\0", record].concat())).expect("a configuration");
            assert_eq!(taken.is_some(), is_other, "{record:x?}");
        }
    }

    #[test]
    fn frames_of_mp3_configure_themselves() {
        let mut ingest = Ingest::default();
        let stereo = b"\x2f\xff\xfb\x90\x64abc";
        let Ok(Some(Arrival::UnitWithConfig(config, unit))) = ingest.take(&tag(TagKind::Audio, 0, stereo)) else {
            panic!("a configuration")
        };
        assert_eq!((config.codec(), &unit.payload[..]), ("mp4a.40.34".to_owned(), &stereo[1..]));
        assert!(matches!(ingest.take(&tag(TagKind::Audio, 26, stereo)), Ok(Some(Arrival::Unit(_)))));
        let mut bytes = Vec::new();
        flv::write_header(true, false, &mut bytes);
        flv::write_unit(&unit, Some(&config), &mut bytes);
        let again = FlvReader::new(100).read(&mut &bytes[..]).expect("FLV").expect("a tag");
        assert_eq!(again.payload, stereo);
        let mono = ingest.take(&tag(TagKind::Audio, 52, b"\x2e\xff\xfb\x90\xc4abc"));
        assert!(matches!(mono, Ok(Some(Arrival::UnitWithConfig(..)))), "{mono:?}");
        let error = ingest.take(&tag(TagKind::Audio, 78, b"\x2fabcdef")).expect_err("no frame");
        assert!(!error.is_final());
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
