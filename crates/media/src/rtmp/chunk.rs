//! RTMP's chunks (§5.3): messages put together from them.

use super::message::{Message, MessageKind};

/// Puts messages together from chunks, however the bytes come.
#[derive(Debug)]
pub struct ChunkReader {
    chunk_size: usize,
    message_max: usize,
    streams: Vec<Stream>,
    /// Bytes in messages that are not whole.
    held_bytes: usize,
    /// What has come of a header that is not whole; and, if four bytes behind one turned out to be payload, those.
    held: Vec<u8>,
    /// The chunk stream whose chunk is being read, and how much of the chunk is still to come.
    within: Option<(usize, usize)>,
}

#[derive(Debug)]
struct Stream {
    id: u32,
    timestamp_ms: u32,
    /// What a chunk without a header adds to the timestamp, when it begins a message.
    delta_ms: u32,
    /// The last header had its timestamp or delta in four more bytes.
    extended: Option<u32>,
    length: usize,
    kind: u8,
    stream_id: u32,
    payload: Vec<u8>,
    /// Payload still missing; `None` between messages.
    missing: Option<usize>,
}

/// A chunk's header as it is on the wire.
struct Header {
    id: u32,
    /// Its length on the wire.
    length: usize,
    timestamp: Option<u32>,
    extended: Option<u32>,
    message: Option<(usize, u8)>,
    stream_id: Option<u32>,
}

/// Why chunks make no sense. The connection has to end: the following chunks cannot be delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// A message is longer than the limit.
    #[error("a message of {length} bytes is longer than the {most} that are taken")]
    Long {
        /// Length, in bytes.
        length: usize,
        /// The limit, in bytes.
        most: usize,
    },
    /// Messages are begun and never ended.
    #[error("messages that are not whole hold more than {most} bytes")]
    Held {
        /// The limit, in bytes.
        most: usize,
    },
    /// More chunk streams than anybody uses.
    #[error("more than {STREAMS_MAX} chunk streams")]
    Streams,
    /// A chunk refers to a header that never came.
    #[error("chunk stream {0} begins without a header")]
    Headless(u32),
    /// A header in the middle of a message.
    #[error("chunk stream {0} begins a message before the last one ended")]
    Unfinished(u32),
    /// A chunk size of nothing, or with the highest bit set.
    #[error("{0} is no chunk size")]
    Size(u32),
}

/// Encoders use four or five chunk streams.
pub(super) const STREAMS_MAX: usize = 64;
/// The chunk size of both sides at first (§5.4.1).
pub(super) const CHUNK_SIZE: usize = 128;
/// A timestamp field that says: see the four bytes behind the header (§5.3.1.3).
pub(super) const EXTENDED: u32 = 0x00ff_ffff;
/// Room that a message gets at its start, whatever length it claims.
const ROOM_AT_FIRST: usize = 64 * 1024;

impl ChunkReader {
    /// A reader that takes messages of up to `message_max` bytes, and twice that in all that are not whole.
    pub const fn new(message_max: usize) -> Self {
        Self { chunk_size: CHUNK_SIZE, message_max, streams: Vec::new(), held_bytes: 0, held: Vec::new(), within: None }
    }

    /// The size of chunks from here on, as the other side says.
    ///
    /// # Errors
    /// [`ChunkError::Size`] for one that cannot be.
    pub const fn set_chunk_size(&mut self, size: u32) -> Result<(), ChunkError> {
        if size == 0 || size > 0x7fff_ffff {
            return Err(ChunkError::Size(size));
        }
        self.chunk_size = size as usize;
        Ok(())
    }

    /// Drops what came of a message in a chunk stream.
    pub fn abort(&mut self, chunk_stream: u32) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == chunk_stream) {
            self.held_bytes -= stream.payload.len();
            stream.payload = Vec::new();
            stream.missing = None;
        }
    }

    /// Reads from the head of `input` until a message is whole; `None` when all of `input` was taken before.
    ///
    /// # Errors
    /// [`ChunkError`].
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Message>, ChunkError> {
        loop {
            let Some((at, left)) = self.within else {
                if !self.read_header(input)? {
                    return Ok(None);
                }
                continue;
            };
            // What was held behind the header comes first.
            let n = if self.held.is_empty() { self.extend(at, left, input) } else { self.extend_from_held(at, left) };
            if self.held_bytes > 2 * self.message_max {
                return Err(ChunkError::Held { most: 2 * self.message_max });
            }
            if n < left {
                self.within = Some((at, left - n));
                if self.held.is_empty() && input.is_empty() {
                    return Ok(None);
                }
                continue;
            }
            self.within = None;
            let stream = &mut self.streams[at];
            if stream.missing == Some(0) {
                stream.missing = None;
                self.held_bytes -= stream.payload.len();
                return Ok(Some(Message {
                    timestamp_ms: stream.timestamp_ms,
                    kind: MessageKind::from(stream.kind),
                    stream_id: stream.stream_id,
                    payload: std::mem::take(&mut stream.payload),
                }));
            }
        }
    }

    /// Moves up to `left` bytes of payload into the stream at `at`; returns how many.
    fn extend(&mut self, at: usize, left: usize, input: &mut &[u8]) -> usize {
        let (taken, rest) = input.split_at(left.min(input.len()));
        *input = rest;
        let stream = &mut self.streams[at];
        stream.payload.extend_from_slice(taken);
        stream.missing = stream.missing.map(|missing| missing - taken.len());
        self.held_bytes += taken.len();
        taken.len()
    }

    fn extend_from_held(&mut self, at: usize, left: usize) -> usize {
        let held = std::mem::take(&mut self.held);
        let mut rest = &held[..];
        let n = self.extend(at, left, &mut rest);
        self.held.extend_from_slice(rest);
        n
    }

    /// Reads a chunk's header, as far as it has come; `true` when a chunk begins.
    fn read_header(&mut self, input: &mut &[u8]) -> Result<bool, ChunkError> {
        if self.held.is_empty()
            && let Some(header) = self.parse(input)?
        {
            *input = &input[header.length..];
            self.begin(&header)?;
            return Ok(true);
        }
        loop {
            if let Some(header) = self.parse(&self.held)? {
                self.held.drain(..header.length);
                self.begin(&header)?;
                return Ok(true);
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(false) };
            self.held.push(byte);
            *input = rest;
        }
    }

    /// The header at the head of `bytes`; `None` while it is not whole.
    fn parse(&self, bytes: &[u8]) -> Result<Option<Header>, ChunkError> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let (id, basic) = match (first & 0x3f, bytes) {
            (0, [_, a, ..]) => (64 + u32::from(*a), 2),
            (1, [_, a, b, ..]) => (64 + u32::from(*a) + 256 * u32::from(*b), 3),
            (0 | 1, _) => return Ok(None),
            (id, _) => (id.into(), 1),
        };
        let format = usize::from(first >> 6);
        let known = self.streams.iter().find(|stream| stream.id == id);
        // FFmpeg and librtmp take a delta against nothing as one against zero; without a length it is hopeless.
        if format > 1 && known.is_none() {
            return Err(ChunkError::Headless(id));
        }
        let mut header = Header {
            id,
            length: basic + [11, 7, 3, 0][format],
            timestamp: None,
            extended: None,
            message: None,
            stream_id: None,
        };
        let Some(fixed) = bytes.get(basic..header.length) else { return Ok(None) };
        let behind = &bytes[header.length..];
        if format == 3 {
            // §5.3.1.3 has the four bytes repeated in every chunk without a header; some encoders do not, and begin with the
            // payload. So they are taken for a timestamp only while they are the one that was sent.
            if let Some(extended) = known.and_then(|stream| stream.extended) {
                let expected = extended.to_be_bytes();
                let n = behind.len().min(4);
                if behind[..n] == expected[..n] {
                    if n < 4 {
                        return Ok(None);
                    }
                    header.length += 4;
                }
            }
            return Ok(Some(header));
        }
        let field = u24(fixed);
        header.timestamp = Some(field);
        if field == EXTENDED {
            let Some(&four) = behind.first_chunk() else { return Ok(None) };
            header.extended = Some(u32::from_be_bytes(four));
            header.timestamp = header.extended;
            header.length += 4;
        }
        if format < 2 {
            header.message = Some((u24(&fixed[3..]) as usize, fixed[6]));
        }
        if format == 0 {
            header.stream_id = Some(u32::from_le_bytes([fixed[7], fixed[8], fixed[9], fixed[10]]));
        }
        Ok(Some(header))
    }

    /// Takes a whole header in.
    fn begin(&mut self, header: &Header) -> Result<(), ChunkError> {
        let at = self.stream(header.id)?;
        let stream = &mut self.streams[at];
        if let Some(timestamp) = header.timestamp {
            if stream.missing.is_some() {
                return Err(ChunkError::Unfinished(header.id));
            }
            stream.extended = header.extended;
            stream.delta_ms = timestamp;
        }
        if let Some((length, kind)) = header.message {
            stream.length = length;
            stream.kind = kind;
        }
        if stream.missing.is_none() {
            if stream.length > self.message_max {
                return Err(ChunkError::Long { length: stream.length, most: self.message_max });
            }
            // §5.3.1.2.4: behind a header with a whole timestamp, a message without a header is as much later as that says.
            stream.timestamp_ms = match header.stream_id {
                Some(_) => stream.delta_ms,
                None => stream.timestamp_ms.wrapping_add(stream.delta_ms),
            };
            stream.payload.reserve_exact(stream.length.min(ROOM_AT_FIRST));
        }
        stream.stream_id = header.stream_id.unwrap_or(stream.stream_id);
        let missing = *stream.missing.get_or_insert(stream.length);
        self.within = Some((at, missing.min(self.chunk_size)));
        Ok(())
    }

    /// Where the chunk stream `id` is, made if it is new.
    fn stream(&mut self, id: u32) -> Result<usize, ChunkError> {
        if let Some(at) = self.streams.iter().position(|stream| stream.id == id) {
            return Ok(at);
        }
        if self.streams.len() == STREAMS_MAX {
            return Err(ChunkError::Streams);
        }
        self.streams.push(Stream {
            id,
            timestamp_ms: 0,
            delta_ms: 0,
            extended: None,
            length: 0,
            kind: 0,
            stream_id: 0,
            payload: Vec::new(),
            missing: None,
        });
        Ok(self.streams.len() - 1)
    }
}

fn u24(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
