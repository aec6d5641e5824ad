//! A reader's bytes, looked at before they are consumed, in a buffer whose size is bounded.

use std::io::{self, Read};

/// Most bytes one record or block may have; longer ones are taken for damage.
///
/// 16 MiB is libpcap's `MAXIMUM_SNAPLEN` for its largest link types (pcap-common.c) sixty-four times over for Ethernet, and
/// twice what Wireshark accepts for one packet's block with its options.
pub(crate) const LONGEST: usize = 16 << 20;

const FIRST_CAPACITY: usize = 256 << 10;

/// Bytes read ahead.
#[derive(Debug)]
pub(crate) struct Buffer<R> {
    from: R,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the file of `bytes[start]`.
    offset: u64,
    at_end: bool,
}

impl<R: Read> Buffer<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, bytes: vec![0; FIRST_CAPACITY], start: 0, end: 0, offset: 0, at_end: false }
    }

    /// Offset in the file of the next byte not consumed.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Makes `count` bytes available if the file has them, and gives how many are (which may be more or fewer).
    pub(crate) fn want(&mut self, count: usize) -> io::Result<usize> {
        debug_assert!(count <= LONGEST + 64, "records are bounded before they are asked for");
        while self.end - self.start < count && !self.at_end {
            if self.start + count > self.bytes.len() {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
                if count > self.bytes.len() {
                    self.bytes.resize(count.next_power_of_two(), 0);
                }
            }
            match self.from.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end - self.start)
    }

    /// What is available now.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Steps over `count` bytes, at most those available.
    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// The `count` bytes that were just consumed.
    pub(crate) fn consumed(&self, count: usize) -> &[u8] {
        &self.bytes[self.start - count..self.start]
    }
}
