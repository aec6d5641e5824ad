//! A publisher's tags into what viewers share: FLV blocks, HLS segments and playlists.

use super::segments::Segments;
use crate::hub::Stream;
use media::{Arrival, Config, Ingest, Tag, TagKind, Track, Unit, flv};
use model::LimitsConfig;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Nobody could join such a stream.
#[derive(Debug)]
pub(super) struct GopTooLong;

/// What makes a stream. It outlives its publisher, so that the next one goes on behind a discontinuity.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) stream: Arc<Stream>,
    ingest: Ingest,
    segments: Segments,
    configs: Vec<Config>,
    metadata: Option<Arc<[u8]>>,
    /// What goes before the next block for one who begins there.
    header: Arc<[u8]>,
    /// The next block.
    block: Vec<u8>,
    block_is_start: bool,
    block_at_ms: u64,
    /// Since the last keyframe: when that was, and the video's bytes.
    gop: Option<(u64, u64)>,
    /// Tags that were passed over.
    pub(super) odd: u64,
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
            header: Arc::from([]),
            block: Vec::new(),
            block_is_start: false,
            block_at_ms: 0,
            gop: None,
            odd: 0,
        }
    }

    /// Another publisher goes on.
    pub(super) fn restart(&mut self) {
        self.ingest.restart();
        self.segments.restart(&self.stream);
        (self.configs, self.metadata, self.gop) = (Vec::new(), None, None);
        self.stream.is_live.store(true, Ordering::Release);
    }

    /// Takes a tag. What it makes is seen by viewers after [`Writer::flush`].
    ///
    /// # Errors
    /// The video is without a keyframe for longer than `limits` let it be.
    pub(super) fn take(&mut self, tag: &Tag, limits: &LimitsConfig) -> Result<(), GopTooLong> {
        self.stream.received_bytes.fetch_add(tag.payload.len() as u64, Ordering::Relaxed);
        match self.ingest.take(tag) {
            Ok(Some(Arrival::Config(config))) => self.config(config),
            Ok(Some(Arrival::Metadata(text))) => {
                self.cut();
                self.metadata = Some(text);
                self.renew_header();
            }
            Ok(Some(Arrival::Unit(unit))) => {
                self.bound_gop(&unit, limits)?;
                self.unit(&unit);
            }
            Ok(_) => {}
            Err(_) => self.odd += 1,
        }
        Ok(())
    }

    fn bound_gop(&mut self, unit: &Unit, limits: &LimitsConfig) -> Result<(), GopTooLong> {
        if unit.track != Track::Video {
            return Ok(());
        }
        let bytes = unit.payload.len() as u64;
        let (began_ms, before) = self.gop.filter(|_| !unit.keyframe).unwrap_or((unit.dts_ms, 0));
        self.gop = Some((began_ms, before + bytes));
        let lasted_ms = unit.dts_ms.saturating_sub(began_ms);
        match lasted_ms > limits.gop.as_micros() / 1_000 || before + bytes > limits.gop_bytes.get() {
            true => Err(GopTooLong),
            false => Ok(()),
        }
    }

    fn config(&mut self, config: Config) {
        self.cut();
        self.segments.config(&config, &self.stream);
        self.configs.retain(|other| other.track() != config.track());
        self.configs.push(config);
        self.renew_header();
    }

    fn renew_header(&mut self) {
        let mut bytes = Vec::new();
        let has = |track| self.configs.iter().any(|config| config.track() == track);
        flv::write_header(has(Track::Audio), has(Track::Video), &mut bytes);
        if let Some(metadata) = &self.metadata {
            flv::write_tag(TagKind::Script, self.block_at_ms as u32, metadata, &mut bytes);
        }
        for config in &self.configs {
            flv::write_config(config, self.block_at_ms as u32, &mut bytes);
        }
        self.header = bytes.into();
    }

    fn unit(&mut self, unit: &Unit) {
        let has_video = self.configs.iter().any(|config| config.track() == Track::Video);
        let is_start = if has_video { unit.track == Track::Video && unit.keyframe } else { true };
        if is_start && has_video {
            self.cut();
        }
        if self.block.is_empty() {
            (self.block_is_start, self.block_at_ms) = (is_start, unit.dts_ms);
        }
        flv::write_unit(unit, &mut self.block);
        self.segments.unit(unit, &self.stream);
    }

    fn cut(&mut self) {
        if !self.block.is_empty() {
            let bytes = std::mem::take(&mut self.block).into_boxed_slice();
            self.stream.flv.push(bytes, self.block_is_start, self.block_at_ms, Arc::clone(&self.header));
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

    /// No publisher will come back: players are told that this is the end.
    pub(super) fn end(&mut self) {
        self.segments.end(&self.stream);
        self.stream.flv.end();
    }
}
