//! A reader's bytes, looked at before they are consumed, in a buffer whose size is bounded.

use crate::compressed::Source;
use crate::damage::Damage;
use std::io::{self, Read};

/// Most bytes one record or block may have; longer ones are taken for damage.
///
/// 16 MiB is libpcap's `MAXIMUM_SNAPLEN` for its largest link types (pcap-common.c) sixty-four times over for Ethernet, and
/// twice what Wireshark accepts for one packet's block with its options.
pub(crate) const LONGEST: usize = 16 << 20;

const FIRST_CAPACITY: usize = 256 << 10;

/// Bytes read ahead.
#[derive(Debug)]
pub(crate) struct ReadBuffer<R: Read> {
    from: Source<R>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the file of `bytes[start]`.
    offset: u64,
    at_end: bool,
}

impl<R: Read> ReadBuffer<R> {
    pub(crate) fn new(from: R) -> io::Result<Self> {
        let from = Source::new(from)?;
        Ok(Self { from, bytes: vec![0; FIRST_CAPACITY], start: 0, end: 0, offset: 0, at_end: false })
    }

    /// Where the bytes come from.
    pub(crate) const fn source(&self) -> &Source<R> {
        &self.from
    }

    /// Makes `count` bytes available if the file has them, and gives how many are (which may be more or fewer).
    #[inline]
    pub(crate) fn want(&mut self, count: usize) -> io::Result<usize> {
        debug_assert!(count <= LONGEST + 128, "records are bounded before they are asked for");
        let available = self.end - self.start;
        if available >= count { Ok(available) } else { self.fetch(count) }
    }

    #[cold]
    fn fetch(&mut self, count: usize) -> io::Result<usize> {
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
    /// Steps over a place that makes no sense: to the next that `is_record` takes for a record, given all bytes from it on, at least
    /// `window` of them unless the file ends before. `false` when there is none.
    pub(crate) fn resync(
        &mut self,
        damage: &mut Damage,
        window: usize,
        is_record: impl Fn(&[u8]) -> bool,
    ) -> io::Result<bool> {
        damage.at(self.offset);
        let mut skip = 1;
        loop {
            self.consume(skip);
            damage.skipped_bytes += skip as u64;
            let available = self.want(window)?;
            if available == 0 {
                return Ok(false);
            }
            // Search what is at hand at once: asking for every byte would be slow.
            let searched = if available < window { available } else { available - window + 1 };
            let bytes = self.peek();
            let found = (0..searched).find(|&at| is_record(&bytes[at..]));
            skip = found.unwrap_or(searched);
            if found.is_some() {
                self.consume(skip);
                damage.skipped_bytes += skip as u64;
                return Ok(true);
            }
        }
    }
}
