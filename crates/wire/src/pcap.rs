//! The classic pcap format: both byte orders, micro- and nanoseconds, and the modified header of patched libpcaps.
//!
//! Source: IETF draft-ietf-opsawg-pcap; libpcap `sf-pcap.c` for the modified magic.

use crate::buffer::{Buffer, LONGEST};
use crate::bytes::Order;
use crate::capture::{Found, Interface};
use crate::{Damage, LinkType};
use std::io::{self, Read};
use units::Timestamp;

/// Length of the file header.
pub(crate) const FILE_HEADER: usize = 24;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Alexey Kuznetsov's patched libpcap: eight more bytes in each record header.
const MODIFIED: u32 = 0xa1b2_cd34;

/// How far the clock may move between two records for a record found by searching to be believed: ten days.
///
/// A search meets random bytes as seconds; a window of 20 days of 136 years refuses all but 1 in 2,500 of them.
const PLAUSIBLE_STEP_S: u32 = 10 * 86_400;

/// State between records.
#[derive(Debug)]
pub(crate) struct Reader {
    order: Order,
    nanoseconds: bool,
    record_header: usize,
    /// Most bytes a plausible record holds, for searching.
    plausible_len: u32,
    last_seconds: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Header {
    seconds: u32,
    fraction: u32,
    kept: u32,
    original: u32,
}

impl Header {
    /// Whether no more was kept than there was. Old writers count a frame check sequence or padding in one length only.
    const fn agrees(&self) -> bool {
        self.kept <= self.original.saturating_add(8)
    }
}

impl Reader {
    /// Reads the file header at the start of `head`; `None` when it is none of this format.
    pub(crate) fn begin(head: &[u8]) -> Option<(Self, Interface)> {
        if head.len() < FILE_HEADER {
            return None;
        }
        let (order, magic) = [Order::Little, Order::Big]
            .into_iter()
            .map(|order| (order, order.u32(head, 0)))
            .find(|(_, magic)| matches!(*magic, MICROSECONDS | NANOSECONDS | MODIFIED))?;
        let snaplen = order.u32(head, 16);
        // The upper bits hold the FCS length and flags.
        let link = LinkType(order.u32(head, 20) as u16);
        let reader = Self {
            order,
            nanoseconds: magic == NANOSECONDS,
            record_header: if magic == MODIFIED { 24 } else { 16 },
            plausible_len: snaplen.clamp(65_535, 262_144),
            last_seconds: None,
        };
        Some((reader, Interface { name: None, link, snaplen }))
    }

    /// The next record, consumed from `buffer`.
    #[inline]
    pub(crate) fn next<R: Read>(&mut self, buffer: &mut Buffer<R>, damage: &mut Damage) -> io::Result<Option<Found>> {
        // Nearly every record is at hand, whole and as it should be.
        if let Some(head) = buffer.peek().first_chunk() {
            let header = self.header(head);
            if header.fraction < self.fractions()
                && self.is_plain(header)
                && buffer.peek().len() >= self.record_header + header.kept as usize
            {
                return Ok(Some(self.take(header, buffer)));
            }
        }
        self.next_of_any(buffer, damage)
    }

    #[cold]
    fn next_of_any<R: Read>(&mut self, buffer: &mut Buffer<R>, damage: &mut Damage) -> io::Result<Option<Found>> {
        loop {
            let available = buffer.want(self.record_header)?;
            if available < self.record_header {
                damage.truncated |= available > 0;
                buffer.consume(available);
                return Ok(None);
            }
            let header = match buffer.peek().first_chunk() {
                Some(bytes) => self.header(bytes),
                None => return Ok(None),
            };
            if !self.believes(header, buffer)? {
                if !self.resync(buffer, damage)? {
                    return Ok(None);
                }
                continue;
            }
            let kept = header.kept as usize;
            let available = buffer.want(self.record_header + kept)?;
            if available < self.record_header + kept {
                // The file is cut here, unless records follow: then it is the length that is wrong.
                let rest = buffer.peek();
                if (self.record_header..available).any(|at| self.plausible_pair(&rest[at..])) {
                    if self.resync(buffer, damage)? {
                        continue;
                    }
                    return Ok(None);
                }
                damage.truncated = true;
                buffer.consume(available);
                return Ok(None);
            }
            return Ok(Some(self.take(header, buffer)));
        }
    }

    /// Consumes a record that is at hand.
    #[inline]
    fn take<R: Read>(&mut self, header: Header, buffer: &mut Buffer<R>) -> Found {
        let kept = header.kept as usize;
        buffer.consume(self.record_header + kept);
        self.last_seconds = Some(header.seconds);
        let nanos = if self.nanoseconds { u64::from(header.fraction) } else { u64::from(header.fraction) * 1_000 };
        Found {
            at: Timestamp::from_nanos(u64::from(header.seconds) * 1_000_000_000 + nanos),
            interface: 0,
            original_len: header.original.max(header.kept),
            dropped_before: 0,
            after: 0,
            len: kept,
        }
    }

    /// Whether a record's time and lengths are as those of nearly all are.
    #[inline]
    fn is_plain(&self, header: Header) -> bool {
        let is_near = self.last_seconds.is_none_or(|seconds| header.seconds.abs_diff(seconds) <= PLAUSIBLE_STEP_S);
        is_near && header.kept <= self.plausible_len && header.agrees()
    }

    /// Whether a record header can be one. One that is odd is believed when a sound record, or the file's end, follows.
    fn believes<R: Read>(&self, header: Header, buffer: &mut Buffer<R>) -> io::Result<bool> {
        if header.kept as usize > LONGEST || header.fraction >= self.fractions() {
            return Ok(false);
        }
        if self.is_plain(header) {
            return Ok(true);
        }
        let next = self.record_header + header.kept as usize;
        let available = buffer.want(next + self.record_header)?;
        Ok(match available.checked_sub(next) {
            None => false,
            Some(0) => true,
            Some(_) => self.plausible(&buffer.peek()[next..], Some(header.seconds)).is_some(),
        })
    }

    /// Steps to the next place where two plausible records follow each other (or one ends the file); `false` at the end.
    fn resync<R: Read>(&self, buffer: &mut Buffer<R>, damage: &mut Damage) -> io::Result<bool> {
        let window = 2 * (self.record_header + self.plausible_len as usize);
        buffer.resync(damage, window, |bytes| self.plausible_pair(bytes))
    }

    fn plausible_pair(&self, bytes: &[u8]) -> bool {
        let Some(first) = self.plausible(bytes, self.last_seconds) else { return false };
        let next = self.record_header + first.kept as usize;
        match bytes.len().checked_sub(next) {
            None => false,
            Some(0) => true,
            Some(_) => self.plausible(&bytes[next..], Some(first.seconds)).is_some(),
        }
    }

    fn plausible(&self, bytes: &[u8], near_seconds: Option<u32>) -> Option<Header> {
        if bytes.len() < self.record_header {
            return None;
        }
        let header = self.header(bytes.first_chunk()?);
        let near = near_seconds.is_none_or(|seconds| header.seconds.abs_diff(seconds) <= PLAUSIBLE_STEP_S);
        let sizes =
            (1..=self.plausible_len).contains(&header.kept) && header.agrees() && header.original as usize <= LONGEST;
        (near && sizes && header.fraction < self.fractions()).then_some(header)
    }

    const fn fractions(&self) -> u32 {
        if self.nanoseconds { 1_000_000_000 } else { 1_000_000 }
    }

    fn header(&self, bytes: &[u8; 16]) -> Header {
        let word = |at: usize| {
            let word = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            if self.order == Order::Little { word } else { word.swap_bytes() }
        };
        Header { seconds: word(0), fraction: word(4), kept: word(8), original: word(12) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Capture;

    fn file(magic: u32, big: bool, records: &[(u32, u32, &[u8])]) -> Vec<u8> {
        let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut out = Vec::new();
        out.extend(word(magic));
        out.extend(if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
        for n in [0, 0, 65_535, 1] {
            out.extend(word(n));
        }
        for (seconds, fraction, bytes) in records {
            for n in [*seconds, *fraction, bytes.len() as u32, bytes.len() as u32] {
                out.extend(word(n));
            }
            if magic == MODIFIED {
                out.extend([0; 8]);
            }
            out.extend(*bytes);
        }
        out
    }

    #[test]
    fn reads_every_magic_in_both_orders() {
        for (magic, nanos) in [(MICROSECONDS, 5_000), (NANOSECONDS, 5), (MODIFIED, 5_000)] {
            for big in [false, true] {
                let file = file(magic, big, &[(1, 5, b"abc"), (2, 5, b"defg")]);
                let mut capture = Capture::new(file.as_slice()).expect("capture");
                let first = capture.next().expect("read").expect("packet");
                assert_eq!((first.at.as_nanos(), first.bytes), (1_000_000_000 + nanos, &b"abc"[..]));
                let second = capture.next().expect("read").expect("packet");
                assert_eq!(second.bytes, b"defg");
                assert!(capture.next().expect("read").is_none());
                assert_eq!(capture.damage(), &Damage::default());
            }
        }
    }

    #[test]
    fn a_bad_length_is_stepped_over() {
        let packets: Vec<(u32, u32, &[u8])> =
            vec![(100, 1, b"one"), (100, 2, b"two"), (101, 3, b"three"), (101, 4, b"four")];
        let mut file = file(MICROSECONDS, false, &packets);
        // The second record's length becomes absurd.
        file[24 + 19 + 8..24 + 19 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut capture = Capture::new(file.as_slice()).expect("capture");
        let mut seen = Vec::new();
        while let Some(packet) = capture.next().expect("read") {
            seen.push(packet.bytes.to_vec());
        }
        assert_eq!(seen, [b"one".to_vec(), b"three".to_vec(), b"four".to_vec()]);
        assert_eq!((capture.damage().resyncs, capture.damage().skipped_bytes), (1, 19));
    }

    #[test]
    fn a_writer_whose_two_lengths_differ_by_a_checksum_is_believed() {
        let mut file = file(MICROSECONDS, false, &[(1, 1, b"onetwo"), (1, 2, b"threes"), (1, 3, b"fourth")]);
        for record in 0..3 {
            file[24 + record * 22 + 12] = 2;
        }
        let mut capture = Capture::new(file.as_slice()).expect("capture");
        for _ in 0..3 {
            assert_eq!(capture.next().expect("read").expect("packet").original_len, 6);
        }
        assert_eq!(capture.damage(), &Damage::default());
    }

    #[test]
    fn a_cut_file_gives_its_whole_records() {
        let file = file(MICROSECONDS, false, &[(1, 1, b"one"), (1, 2, b"two")]);
        let mut capture = Capture::new(&file[..file.len() - 1]).expect("capture");
        assert!(capture.next().expect("read").is_some());
        assert!(capture.next().expect("read").is_none());
        assert!(capture.damage().truncated);
    }
}
