//! A stream as HLS: segments, and a playlist that is one response for all.

use crate::http::Head;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::segment::Segment;
use thalweg_media::hls::Container;

/// A segment and what its responses say of it.
#[derive(Debug)]
pub struct Piece {
    /// Its media sequence number.
    pub sequence: u64,
    /// Its bytes.
    pub segment: Segment,
    /// What its bytes are.
    pub container: Container,
    /// Its entity tag, quotes included.
    pub etag: String,
    /// How long it plays, in milliseconds.
    pub duration_ms: u64,
    /// When it could be asked for.
    pub published: Instant,
}

impl Piece {
    /// A segment that plays for `duration_ms`; `epoch` tells segments of the same number apart after a restart.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(
        sequence: u64,
        epoch: u64,
        duration_ms: u64,
        container: Container,
        bytes: &[u8],
    ) -> Result<Self, HostError> {
        let segment = Segment::seal(bytes)?;
        let etag = format!("\"{epoch:x}-{sequence}\"");
        Ok(Self { sequence, segment, container, etag, duration_ms, published: Instant::now() })
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
    /// How the multivariant playlist describes the stream: the attributes of `EXT-X-STREAM-INF`.
    pub attributes: String,
}

impl Hls {
    /// The segment of that file name.
    pub fn piece(&self, file: &str) -> Option<&Arc<Piece>> {
        let first = self.pieces.front()?;
        let number = first.container.number_in(file)?;
        self.pieces.get(usize::try_from(number.checked_sub(first.sequence)?).ok()?)
    }
}
