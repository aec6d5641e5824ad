//! The classic pcap format: both byte orders, micro- and nanoseconds, and the modified header of patched libpcaps.
//!
//! Source: IETF draft-ietf-opsawg-pcap; libpcap `sf-pcap.c` for the modified magic.

use crate::bytes::Order;
use crate::damage::Damage;
use crate::link::LinkType;
use crate::packet::{Found, Interface};
use crate::read_buffer::{LONGEST, ReadBuffer};
use std::io::{self, Read};
use thalweg_units::Timestamp;

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

/// Bytes above which a record's length is believed only when what follows is a record: a jumbo frame has fewer. A wrong length hides
/// the packets within it, and up to here those are few.
const UNQUESTIONED: u32 = 9_216;

/// Lengths of record headers by the file's magic, the usual one first. Some patched libpcaps kept the magic of the standard format:
/// Nokia's firewalls (20 bytes), Red Hat 6.1 (24), SuSE 6.3 (28, with the modified magic). Source: Wireshark `wiretap/libpcap.c`.
const RECORD_HEADERS: [&[usize]; 2] = [&[16, 20, 24], &[24, 28]];
/// Bytes that are looked at to tell which it is, and the records in a row that make one believed.
pub(crate) const PROBED: usize = 128 << 10;
const PROBED_RECORDS: usize = 4;

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

/// What is asked of a record's two lengths: at a place that was found by searching, more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    Any,
    Agree,
}

impl Header {
    /// Whether no more was kept than there was. Old writers count a frame check sequence or padding in one length only.
    const fn agrees(&self) -> bool {
        self.kept <= self.original.saturating_add(8)
    }
}

impl Reader {
    /// Reads the file header at the start of `head`, which should go on for [`PROBED`] bytes; `None` when it is none of this format.
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
        let mut reader = Self {
            order,
            nanoseconds: magic == NANOSECONDS,
            record_header: if magic == MODIFIED { 24 } else { 16 },
            plausible_len: snaplen.clamp(65_535, 262_144),
            last_seconds: None,
        };
        if magic != NANOSECONDS {
            let lengths = RECORD_HEADERS[usize::from(magic == MODIFIED)];
            // The usual length stays unless another is followed by records, and it is not.
            let found = lengths.iter().find(|&&length| {
                reader.record_header = length;
                reader.begins_records(&head[FILE_HEADER..])
            });
            reader.record_header = *found.unwrap_or(&lengths[0]);
        }
        Some((reader, Interface { name: None, link, snaplen }))
    }

    /// Whether some records follow each other, to the end of what is there if that comes first.
    fn begins_records(&self, mut bytes: &[u8]) -> bool {
        let mut seconds = None;
        for _ in 0..PROBED_RECORDS {
            if bytes.len() < self.record_header {
                return true;
            }
            let Some(header) = self.plausible(bytes, seconds, Lengths::Agree) else { return false };
            seconds = Some(header.seconds);
            bytes = bytes.get(self.record_header + header.kept as usize..).unwrap_or_default();
        }
        true
    }

    /// The next record, consumed from `buffer`.
    #[inline]
    pub(crate) fn next<R: Read>(
        &mut self,
        buffer: &mut ReadBuffer<R>,
        damage: &mut Damage,
    ) -> io::Result<Option<Found>> {
        // Nearly every record is at hand, whole and as it should be.
        if let Some(head) = buffer.peek().first_chunk() {
            let header = self.header(head);
            if header.fraction < self.fractions()
                && self.is_plain(header)
                && header.kept <= UNQUESTIONED
                && buffer.peek().len() >= self.record_header + header.kept as usize
            {
                return Ok(Some(self.take(header, buffer)));
            }
        }
        self.next_of_any(buffer, damage)
    }

    #[cold]
    fn next_of_any<R: Read>(&mut self, buffer: &mut ReadBuffer<R>, damage: &mut Damage) -> io::Result<Option<Found>> {
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
    fn take<R: Read>(&mut self, header: Header, buffer: &mut ReadBuffer<R>) -> Found {
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

    /// Whether a record header can be one. One that is odd is believed when a sound record, or the file's end, follows; one that is
    /// long, unless none follows and there are some within it.
    fn believes<R: Read>(&self, header: Header, buffer: &mut ReadBuffer<R>) -> io::Result<bool> {
        if header.kept as usize > LONGEST || header.fraction >= self.fractions() {
            return Ok(false);
        }
        let is_plain = self.is_plain(header);
        if is_plain && header.kept <= UNQUESTIONED {
            return Ok(true);
        }
        let next = self.record_header + header.kept as usize;
        let available = buffer.want(next + self.record_header)?;
        let bytes = buffer.peek();
        Ok(match available.checked_sub(next) {
            // The file is cut within it, which is looked at later.
            None => is_plain,
            Some(0) => true,
            Some(rest) if is_plain && rest < self.record_header => true,
            // Some writers have more kept than there was, in all records.
            Some(_) if self.plausible(&bytes[next..], Some(header.seconds), Lengths::Any).is_some() => true,
            Some(_) => is_plain && !(self.record_header..next).any(|at| self.plausible_pair(&bytes[at..])),
        })
    }

    /// Steps to the next place where two plausible records follow each other (or one ends the file); `false` at the end.
    fn resync<R: Read>(&self, buffer: &mut ReadBuffer<R>, damage: &mut Damage) -> io::Result<bool> {
        let window = 2 * (self.record_header + self.plausible_len as usize);
        buffer.resync(damage, window, |bytes| self.plausible_pair(bytes))
    }

    fn plausible_pair(&self, bytes: &[u8]) -> bool {
        let Some(first) = self.plausible(bytes, self.last_seconds, Lengths::Agree) else { return false };
        let next = self.record_header + first.kept as usize;
        match bytes.len().checked_sub(next) {
            None => false,
            Some(0) => true,
            Some(_) => self.plausible(&bytes[next..], Some(first.seconds), Lengths::Agree).is_some(),
        }
    }

    fn plausible(&self, bytes: &[u8], near_seconds: Option<u32>, lengths: Lengths) -> Option<Header> {
        if bytes.len() < self.record_header {
            return None;
        }
        let header = self.header(bytes.first_chunk()?);
        let near = near_seconds.is_none_or(|seconds| header.seconds.abs_diff(seconds) <= PLAUSIBLE_STEP_S);
        let sizes = (1..=self.plausible_len).contains(&header.kept)
            && (lengths == Lengths::Any || header.agrees())
            && header.original as usize <= LONGEST;
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
mod tests;
