//! RTMP's chunks (§5.3): messages cut in pieces.

use super::chunk::{CHUNK_SIZE, EXTENDED};
use super::message::MessageKind;

/// Cuts messages in chunks, each message with a whole header.
#[derive(Debug)]
pub struct ChunkWriter {
    chunk_size: usize,
}

impl Default for ChunkWriter {
    fn default() -> Self {
        Self { chunk_size: CHUNK_SIZE }
    }
}

impl ChunkWriter {
    /// The size of chunks from here on; the other side has to learn it first.
    pub fn set_chunk_size(&mut self, size: u32) {
        self.chunk_size = (size as usize).max(1);
    }

    /// Appends a message to `output`, in chunk stream `id`, from 2 to 63. A payload past 16 MiB cannot be said and is cut there.
    pub fn write(
        &self,
        id: u8,
        kind: MessageKind,
        timestamp_ms: u32,
        stream_id: u32,
        payload: &[u8],
        output: &mut Vec<u8>,
    ) {
        debug_assert!((2..64).contains(&id), "one byte holds the chunk stream");
        let payload = &payload[..payload.len().min(EXTENDED as usize)];
        let extended = timestamp_ms >= EXTENDED;
        output.push(id);
        output.extend(&timestamp_ms.min(EXTENDED).to_be_bytes()[1..]);
        output.extend(&(payload.len() as u32).to_be_bytes()[1..]);
        output.push(kind.into());
        output.extend(stream_id.to_le_bytes());
        if extended {
            output.extend(timestamp_ms.to_be_bytes());
        }
        for (at, piece) in payload.chunks(self.chunk_size).enumerate() {
            if at > 0 {
                output.push(0xc0 | id);
                if extended {
                    output.extend(timestamp_ms.to_be_bytes());
                }
            }
            output.extend_from_slice(piece);
        }
    }
}
