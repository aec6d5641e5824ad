//! A publisher's tags into what viewers share: FLV blocks, HLS segments and playlists.

use super::end::End;
use super::segments::Segments;
use super::silence::Silence;
use super::untaken::Untaken;
use crate::hub::{Block, Publication, Stream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use thalweg_media::{Arrival, Config, Ingest, Tag, TagKind, Track, Unit, flv, metadata};
use thalweg_model::LimitsConfig;

/// What makes a stream. It outlives its publisher, so that the next one goes on behind a discontinuity.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) stream: Arc<Stream>,
    ingest: Ingest,
    segments: Segments,
    configs: Vec<Config>,
    metadata: Option<Arc<[u8]>>,
    /// The metadata say that there is video, and sound.
    announces: [bool; 2],
    /// What goes before the next block for one who begins there.
    header: Arc<[u8]>,
    /// The next block.
    block: Vec<u8>,
    block_is_start: bool,
    block_at_ms: u64,
    /// Since the last keyframe, once there is one.
    gop: Option<Gop>,
    /// Tags of this publisher that made no sense and were passed over.
    pub(super) skipped_tags: u64,
    untaken: Untaken,
    silence: Silence,
    /// The sound of the publisher before this one, until this one has or announces sound: see [`Writer::replaced`].
    former_sound: Option<Config>,
}

/// A group of pictures that goes on.
#[derive(Debug, Clone, Copy)]
struct Gop {
    /// When its keyframe is decoded.
    began_ms: u64,
    /// When its latest picture is decoded.
    latest_ms: u64,
    /// The pictures' bytes.
    bytes: u64,
}

impl Writer {
    /// For a stream of segments so long.
    pub(super) fn new(stream: Arc<Stream>, target_ms: u64, window: usize) -> Self {
        let segments = Segments::new(&stream, target_ms, window);
        Self {
            stream,
            ingest: Ingest::default(),
            segments,
            configs: Vec::new(),
            metadata: None,
            announces: [false; 2],
            header: Arc::from([]),
            block: Vec::new(),
            block_is_start: false,
            block_at_ms: 0,
            gop: None,
            skipped_tags: 0,
            untaken: Untaken::default(),
            silence: Silence::default(),
            former_sound: None,
        }
    }

    /// Another publisher goes on.
    pub(super) fn restart(&mut self) {
        self.ingest.restart();
        self.segments.restart(&self.stream);
        self.former_sound = self.configs.iter().find(|config| config.track() == Track::Audio).cloned();
        (self.configs, self.metadata, self.announces) = (Vec::new(), None, [false; 2]);
        (self.gop, self.skipped_tags, self.untaken) = (None, 0, Untaken::default());
        self.silence = Silence::default();
        self.stream.is_live.store(true, Ordering::Release);
    }

    /// Takes a tag that came at `now_ms`. What it makes is seen by viewers after [`Writer::flush`].
    ///
    /// # Errors
    /// Why the publisher has to end: its media cannot be carried, or has no keyframe for longer than `limits` allow.
    pub(super) fn take(&mut self, tag: &Tag, limits: &LimitsConfig, now_ms: u64) -> Result<(), End> {
        self.stream.received_bytes.fetch_add(tag.payload.len() as u64, Ordering::Relaxed);
        self.ingest.set_now(now_ms);
        let taken = self.ingest.take(tag);
        if let Some(track) = tag.kind.track() {
            self.untaken.tag(track, &taken, self.has(track), now_ms, limits)?;
        }
        match taken {
            Ok(Some(Arrival::Config(config))) => self.config(config),
            Ok(Some(Arrival::Metadata(text))) => self.metadata(text),
            Ok(Some(Arrival::Unit(unit))) => self.replaced(&unit, limits, now_ms)?,
            Ok(Some(Arrival::UnitWithConfig(config, unit))) => {
                self.config(config);
                self.replaced(&unit, limits, now_ms)?;
            }
            Ok(_) => {}
            // Without one of its tracks a stream is not what was published.
            Err(error) if error.is_final() => return Err(End::Media(error)),
            Err(_) => self.skipped_tags += 1,
        }
        Ok(())
    }

    fn metadata(&mut self, text: Arc<[u8]>) {
        // Encoders repeat it.
        if self.metadata.as_ref() == Some(&text) {
            return;
        }
        self.cut();
        let [video, sound] = [metadata::announces_video(&text), metadata::announces_sound(&text)];
        self.announces = [self.announces[0] || video, self.announces[1] || sound];
        if self.announces[0] {
            self.segments.announce_video();
        }
        if sound {
            self.segments.announce_sound();
            self.former_sound = None;
        }
        self.metadata = Some(text);
        self.renew_header();
    }

    fn bound_gop(&mut self, unit: &Unit, limits: &LimitsConfig) -> Result<(), End> {
        let at_ms = unit.dts_ms;
        let lasted_ms = match (unit.track, &mut self.gop) {
            // Sound alone has no groups.
            (Track::Audio, None) => 0,
            // Sound may be ahead of video; behind video that has stopped, it is bounded too.
            (Track::Audio, Some(gop)) => at_ms.saturating_sub(gop.latest_ms),
            (Track::Video, Some(gop)) if !unit.keyframe => {
                (gop.latest_ms, gop.bytes) = (at_ms, gop.bytes + unit.payload.len() as u64);
                at_ms.saturating_sub(gop.began_ms)
            }
            (Track::Video, gop) => {
                *gop = Some(Gop { began_ms: at_ms, latest_ms: at_ms, bytes: unit.payload.len() as u64 });
                0
            }
        };
        let bytes = self.gop.map_or(0, |gop| gop.bytes);
        match lasted_ms > limits.gop.as_micros() / 1_000 || bytes > limits.gop_bytes.get() {
            true => Err(End::Gop),
            false => Ok(()),
        }
    }

    fn config(&mut self, config: Config) {
        if config.track() == Track::Audio {
            self.former_sound = None;
            // Silence has it already.
            if self.configs.contains(&config) {
                return;
            }
        }
        self.cut();
        self.segments.config(&config);
        self.silence.config(&config);
        self.configs.retain(|other| other.track() != config.track());
        self.configs.push(config);
        self.renew_header();
    }

    /// Whether a track has a configuration.
    fn has(&self, track: Track) -> bool {
        self.configs.iter().any(|config| config.track() == track)
    }

    fn renew_header(&mut self) {
        let mut bytes = Vec::new();
        let [video, sound] = self.announces;
        flv::write_header(self.has(Track::Audio) || sound, self.has(Track::Video) || video, &mut bytes);
        if let Some(metadata) = &self.metadata {
            flv::write_tag(TagKind::Script, self.block_at_ms as u32, metadata, &mut bytes);
        }
        for config in &self.configs {
            flv::write_config(config, self.block_at_ms as u32, &mut bytes);
        }
        self.header = bytes.into();
    }

    /// Takes a unit. If a publisher returns with video alone, silence of the former sound goes with its video from the first keyframe on:
    /// players have made room for sound, and stand still without it.
    fn replaced(&mut self, unit: &Unit, limits: &LimitsConfig, now_ms: u64) -> Result<(), End> {
        if unit.track == Track::Audio || !unit.keyframe {
            return self.filled(unit, limits, now_ms);
        }
        let Some(sound) = self.former_sound.take().filter(Silence::is_known) else {
            return self.filled(unit, limits, now_ms);
        };
        self.config(sound);
        self.filled(unit, limits, now_ms)?;
        self.silence.begin(unit.dts_ms);
        Ok(())
    }

    /// Takes a unit, and before it silence where sound pauses.
    fn filled(&mut self, unit: &Unit, limits: &LimitsConfig, now_ms: u64) -> Result<(), End> {
        let (silence, is_taken) = self.silence.before(unit, now_ms);
        silence.iter().chain(is_taken.then_some(unit)).try_for_each(|unit| self.unit(unit, limits))
    }

    fn unit(&mut self, unit: &Unit, limits: &LimitsConfig) -> Result<(), End> {
        self.bound_gop(unit, limits)?;
        self.segments.bound(limits);
        let has_video = self.has(Track::Video);
        let is_start = if has_video { unit.track == Track::Video && unit.keyframe } else { true };
        if is_start && has_video {
            self.cut();
        }
        if self.block.is_empty() {
            (self.block_is_start, self.block_at_ms) = (is_start, unit.dts_ms);
        }
        let config = self.configs.iter().find(|config| config.track() == unit.track);
        flv::write_unit(unit, config, &mut self.block);
        self.segments.unit(unit, &self.stream);
        Ok(())
    }

    /// Completes what operators see of the publisher.
    pub(super) fn describe(&self, publication: &mut Publication) {
        let frame_rate =
            self.segments.rates().and_then(|rates| rates.pictures_per_1000_s).map(|rate| rate as f64 / 1e3);
        self.configs.iter().for_each(|config| publication.describe(config, frame_rate));
        publication.skipped_tags = self.skipped_tags;
    }

    fn cut(&mut self) {
        if !self.block.is_empty() {
            let bytes = std::mem::take(&mut self.block).into_boxed_slice();
            let (is_start, at_ms, header) = (self.block_is_start, self.block_at_ms, Arc::clone(&self.header));
            let video = self.configs.iter().find_map(|config| match config {
                Config::Avc(avc) => Some(Arc::clone(avc)),
                _ => None,
            });
            self.stream.flv.push(Block { number: 0, bytes, is_start, at_ms, header, video });
        }
    }

    /// Lets viewers see what was taken.
    pub(super) fn flush(&mut self) {
        self.cut();
    }

    /// The publisher has gone; it may come back.
    pub(super) fn pause(&mut self) {
        self.flush();
        self.segments.pause(&self.stream);
        self.stream.is_live.store(false, Ordering::Release);
    }

    /// No publisher will come back: the playlist says that the stream has ended.
    pub(super) fn end(&mut self) {
        self.segments.end(&self.stream);
        self.stream.flv.end();
    }
}
