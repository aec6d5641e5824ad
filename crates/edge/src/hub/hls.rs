//! A stream as HLS: segments, and a playlist that is one response for all.

use crate::http::Head;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::segment::Segment;
use thalweg_media::hls::{Container, Part, SegmentFormat};
use thalweg_media::ts::Muxer;

/// The format of segments.
pub type Format = Muxer;
/// How segments' files are named, and their media type.
pub const CONTAINER: Container = Format::CONTAINER;

/// A segment or an initialization section, and what its responses say of it.
#[derive(Debug)]
pub struct Piece {
    /// What it is.
    pub part: Part,
    /// Its bytes.
    pub segment: Segment,
    /// Its entity tag, quotes included.
    pub etag: String,
    /// How long it plays, in milliseconds: 0 for an initialization section.
    pub duration_ms: u64,
    /// When it could be asked for.
    pub published: Instant,
}

impl Piece {
    /// A part that plays for `duration_ms`; `epoch` distinguishes parts of the same number after a restart.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(part: Part, epoch: u64, duration_ms: u64, bytes: &[u8]) -> Result<Self, HostError> {
        let segment = Segment::seal(bytes)?;
        let etag = match part {
            Part::Segment(number) => format!("\"{epoch:x}-{number}\""),
            Part::Init(number) => format!("\"{epoch:x}-i{number}\""),
        };
        Ok(Self { part, segment, etag, duration_ms, published: Instant::now() })
    }
}

/// A playlist, as the part of its response after the date.
#[derive(Debug)]
pub struct Playlist {
    /// Fields, the empty line and the text.
    pub response: Arc<[u8]>,
    /// Where the text begins.
    pub text_at: usize,
    /// Its entity tag, quotes included.
    pub etag: String,
}

impl Playlist {
    /// Version `version` of a playlist, whose text may be cached for `max_age_s`.
    pub fn new(text: &str, version: &str, max_age_s: u64) -> Self {
        let etag = format!("\"{version}\"");
        let mut response = Vec::with_capacity(text.len() + 256);
        Head::fields(&mut response)
            .field("Content-Type", "application/vnd.apple.mpegurl")
            .length(text.len() as u64)
            .field("Cache-Control", &format!("max-age={max_age_s}"))
            .field("ETag", &etag)
            .raw(crate::http::CORS)
            .end();
        let text_at = response.len();
        response.extend_from_slice(text.as_bytes());
        Self { response: response.into(), text_at, etag }
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.response[self.text_at..]
    }
}

/// What viewers may ask for.
#[derive(Debug, Clone, Default)]
pub struct Hls {
    /// The newest playlist; there is none before the first segment.
    pub playlist: Option<Arc<Playlist>>,
    /// The segments in it and some that were in it, oldest first, without gaps.
    pub pieces: VecDeque<Arc<Piece>>,
    /// The initialization sections that those need, oldest first.
    pub inits: VecDeque<Arc<Piece>>,
    /// How the multivariant playlist describes the stream: the attributes of `EXT-X-STREAM-INF`.
    pub attributes: String,
}

impl Hls {
    /// The segment or the initialization section of that file name.
    pub fn piece(&self, file: &str) -> Option<&Arc<Piece>> {
        let part = CONTAINER.part(file)?;
        match (part, self.pieces.front()?.part) {
            (Part::Segment(number), Part::Segment(first)) => {
                self.pieces.get(usize::try_from(number.checked_sub(first)?).ok()?)
            }
            _ => self.inits.iter().find(|init| init.part == part),
        }
    }
}
