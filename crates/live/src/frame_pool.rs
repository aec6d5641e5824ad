//! Buffers that frames are read into, used again.

use crate::frame::Frame;
use std::sync::Arc;
use thalweg_host::HostError;
use thalweg_host::tun::{Tun, VNET_HEADER_LEN};

/// A vnet header and the longest IP packet.
const BUFFER_BYTES: usize = VNET_HEADER_LEN + 65_535;
/// Frames up to this length are copied, so that an acknowledgement does not hold a large buffer while it is on its way.
const COPIED_BYTES_MAX: usize = 16_384;
/// Buffers kept for later: 64 MiB.
const KEPT_MAX: usize = 1_024;

/// Reads frames, and takes back the buffers of those that have been written.
#[derive(Debug, Default)]
pub(crate) struct FramePool {
    free: Vec<Vec<u8>>,
}

/// What a device gave.
pub(crate) enum Read {
    /// A frame.
    Frame(Arc<Frame>),
    /// Something that is no IP packet.
    Foreign,
    /// Nothing waits.
    Empty,
}

impl FramePool {
    pub(crate) fn read(&mut self, tun: &Tun) -> Result<Read, HostError> {
        let mut buffer = self.free.pop().unwrap_or_default();
        // What was read into it before is overwritten, so only a new buffer is filled.
        buffer.resize(BUFFER_BYTES, 0);
        let length = match tun.read(&mut buffer) {
            Ok(Some(length)) => length,
            other => {
                self.free.push(buffer);
                return other.map(|_| Read::Empty);
            }
        };
        let frame = if length <= COPIED_BYTES_MAX {
            let copy = buffer[..length].to_vec();
            self.free.push(buffer);
            Frame::parse(copy)
        } else {
            Frame::parse_start(buffer, length)
        };
        Ok(frame.map_or(Read::Foreign, |frame| Read::Frame(Arc::new(frame))))
    }

    /// Takes back a frame's buffer if nothing of the frame is on its way any more.
    pub(crate) fn take_back(&mut self, frame: Arc<Frame>) {
        if self.free.len() < KEPT_MAX
            && let Some(frame) = Arc::into_inner(frame)
        {
            let buffer = frame.into_buffer();
            if buffer.capacity() >= BUFFER_BYTES {
                self.free.push(buffer);
            }
        }
    }
}
