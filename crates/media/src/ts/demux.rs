//! Packets → PES packets, and what is wrong with them: for the checker, the load client and tests.

use super::psi::{crc, read_pat, read_pmt};
use super::{PACKET, SYNC, TYPE_AAC, TYPE_AVC, TYPE_MPEG1_AUDIO, TYPE_MPEG2_AUDIO};
use crate::Track;

/// Takes a transport stream apart, strictly: what a player would only shrug at is an error here.
#[derive(Debug)]
pub struct Demuxer {
    pes_max: usize,
    held: Vec<u8>,
    pat_counter: Option<u8>,
    pmt: Option<(u16, Option<u8>)>,
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    pid: u16,
    track: Track,
    counter: Option<u8>,
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    bytes: Vec<u8>,
    random_access: bool,
    pcr: Option<u64>,
}

/// A PES packet: a picture, or some frames of sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pes {
    /// Whose it is, by the program's table.
    pub track: Track,
    /// When it is shown, in ticks of 90 kHz; 33 bits, so that it wraps.
    pub pts: u64,
    /// When it is decoded, in the same ticks.
    pub dts: u64,
    /// The clock reference in its first packet, in the same ticks.
    pub pcr: Option<u64>,
    /// Its first packet says that decoding can begin here.
    pub random_access: bool,
    /// A byte stream of H.264, or frames of ADTS or MP3.
    pub payload: Vec<u8>,
}

/// What is wrong with a transport stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TsError {
    /// A packet does not begin with 0x47.
    #[error("a packet begins with {0:#04x}, not with 0x47")]
    Sync(u8),
    /// A packet says of itself that it is damaged.
    #[error("a packet of PID {0:#x} is marked as damaged")]
    Damaged(u16),
    /// Packets are missing or doubled.
    #[error("PID {pid:#x} goes on with {found}, where {expected} is due")]
    Continuity {
        /// Whose packets.
        pid: u16,
        /// The counter that was due.
        expected: u8,
        /// The counter that came.
        found: u8,
    },
    /// An adaptation field or a table does not fit where it is.
    #[error("a packet of PID {0:#x} makes no sense")]
    Packet(u16),
    /// A table's checksum is wrong.
    #[error("the checksum of a table in PID {0:#x} is wrong")]
    Checksum(u16),
    /// A PES packet's header makes no sense, or it is not as long as it says.
    #[error("a PES packet of PID {0:#x} makes no sense")]
    Pes(u16),
    /// A PES packet is longer than the limit.
    #[error("a PES packet of PID {0:#x} is too long")]
    Long(u16),
    /// Packets of a PID come before the table that names it, or before a PES packet's start.
    #[error("packets of PID {0:#x} come before what they belong to")]
    Early(u16),
    /// The stream ends within a packet.
    #[error("the stream ends within a packet")]
    Cut,
}

/// Most tracks that a program may have.
const STREAMS_MAX: usize = 16;
/// Packets that only fill.
const NULL_PID: u16 = 0x1fff;
/// Below are tables, MPEG's and DVB's (ETSI EN 300 468 §5.1.3).
const TABLES: u16 = 0x20;

impl Demuxer {
    /// Takes PES packets of up to `pes_max` bytes.
    pub const fn new(pes_max: usize) -> Self {
        Self { pes_max, held: Vec::new(), pat_counter: None, pmt: None, streams: Vec::new() }
    }

    /// Reads from the head of `input` until a PES packet is whole; `None` when all of `input` was taken before. One of unknown
    /// length is whole when the next one begins, or at [`Demuxer::finish`].
    ///
    /// # Errors
    /// [`TsError`].
    pub fn read(&mut self, input: &mut &[u8]) -> Result<Option<Pes>, TsError> {
        loop {
            let n = (PACKET - self.held.len()).min(input.len());
            let (taken, rest) = input.split_at(n);
            *input = rest;
            self.held.extend_from_slice(taken);
            let Ok(packet) = <[u8; PACKET]>::try_from(&self.held[..]) else { return Ok(None) };
            self.held.clear();
            if let Some(pes) = self.packet(&packet)? {
                return Ok(Some(pes));
            }
        }
    }

    /// The last PES packets, one a call, `None` after them. The counters stay: another segment may follow.
    ///
    /// # Errors
    /// [`TsError`].
    pub fn finish(&mut self) -> Result<Option<Pes>, TsError> {
        if !self.held.is_empty() {
            self.held.clear();
            return Err(TsError::Cut);
        }
        for stream in &mut self.streams {
            if let Some(begun) = stream.begun.take() {
                return begun.end(stream.pid, stream.track).map(Some);
            }
        }
        Ok(None)
    }

    fn packet(&mut self, packet: &[u8; PACKET]) -> Result<Option<Pes>, TsError> {
        if packet[0] != SYNC {
            return Err(TsError::Sync(packet[0]));
        }
        let pid = u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff;
        if packet[1] & 0x80 != 0 {
            return Err(TsError::Damaged(pid));
        }
        if pid == NULL_PID {
            return Ok(None);
        }
        let begins = packet[1] & 0x40 != 0;
        let counter = packet[3] & 15;
        let mut payload = &packet[4..];
        let mut field: &[u8] = &[];
        if packet[3] & 0x20 != 0 {
            let length = usize::from(payload[0]);
            field = payload.get(1..1 + length).ok_or(TsError::Packet(pid))?;
            payload = &payload[1 + length..];
        }
        if packet[3] & 0x10 == 0 {
            // Nothing but an adaptation field: the counter stands still.
            return Ok(None);
        }
        if pid == 0 {
            follow(&mut self.pat_counter, pid, counter)?;
            let section = section(pid, begins, payload)?;
            let found = read_pat(section).ok_or(TsError::Packet(pid))?;
            if self.pmt.is_none_or(|(known, _)| known != found) {
                self.pmt = Some((found, None));
            }
            return Ok(None);
        }
        if let Some((pmt, last)) = &mut self.pmt
            && *pmt == pid
        {
            follow(last, pid, counter)?;
            let streams = read_pmt(section(pid, begins, payload)?).ok_or(TsError::Packet(pid))?;
            self.tracks(&streams);
            return Ok(None);
        }
        let pes_max = self.pes_max;
        // Other tables, and tracks that nothing here knows.
        let foreign = pid < TABLES || !self.streams.is_empty();
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.pid == pid) else {
            return if foreign { Ok(None) } else { Err(TsError::Early(pid)) };
        };
        follow(&mut stream.counter, pid, counter)?;
        let mut whole = None;
        if begins {
            whole = stream.begun.take().map(|begun| begun.end(pid, stream.track)).transpose()?;
            let flags = field.first().copied().unwrap_or(0);
            let pcr = field.get(1..7).filter(|_| flags & 0x10 != 0);
            let pcr = pcr.map(|b| u64::from(u32::from_be_bytes([b[0], b[1], b[2], b[3]])) << 1 | u64::from(b[4] >> 7));
            stream.begun = Some(Begun { bytes: Vec::new(), random_access: flags & 0x40 != 0, pcr });
        }
        let begun = stream.begun.as_mut().ok_or(TsError::Early(pid))?;
        begun.bytes.extend_from_slice(payload);
        if begun.bytes.len() > pes_max {
            return Err(TsError::Long(pid));
        }
        Ok(whole)
    }

    /// Takes over which tracks there are; those that were there go on.
    fn tracks(&mut self, found: &[(u8, u16)]) {
        for &(kind, pid) in found {
            let track = match kind {
                TYPE_AVC => Track::Video,
                TYPE_AAC | TYPE_MPEG1_AUDIO | TYPE_MPEG2_AUDIO => Track::Audio,
                _ => continue,
            };
            if self.streams.len() < STREAMS_MAX && self.streams.iter().all(|stream| stream.pid != pid) {
                self.streams.push(Stream { pid, track, counter: None, begun: None });
            }
        }
    }
}

fn follow(last: &mut Option<u8>, pid: u16, found: u8) -> Result<(), TsError> {
    let expected = last.map_or(found, |last| (last + 1) & 15);
    *last = Some(found);
    if expected == found { Ok(()) } else { Err(TsError::Continuity { pid, expected, found }) }
}

/// The table in a packet that holds a whole one.
fn section(pid: u16, begins: bool, payload: &[u8]) -> Result<&[u8], TsError> {
    let wrong = TsError::Packet(pid);
    let (&pointer, rest) = payload.split_first().filter(|_| begins).ok_or(wrong)?;
    let rest = rest.get(usize::from(pointer)..).ok_or(wrong)?;
    let &[_, high, low] = rest.first_chunk().ok_or(wrong)?;
    let length = 3 + usize::from(u16::from_be_bytes([high, low]) & 0x0fff);
    let section = rest.get(..length).ok_or(wrong)?;
    if crc(section) == 0 { Ok(section) } else { Err(TsError::Checksum(pid)) }
}

impl Begun {
    fn end(self, pid: u16, track: Track) -> Result<Pes, TsError> {
        let wrong = TsError::Pes(pid);
        let &[0, 0, 1, _, high, low, _, which, header] = self.bytes.first_chunk().ok_or(wrong)? else {
            return Err(wrong);
        };
        let said = usize::from(u16::from_be_bytes([high, low]));
        if said != 0 && said + 6 != self.bytes.len() {
            return Err(wrong);
        }
        let payload = self.bytes.get(9 + usize::from(header)..).ok_or(wrong)?;
        let field = |at: usize| self.bytes.get(at..at + 5).and_then(timestamp).filter(|_| header >= at as u8 - 4);
        let pts = field(9).filter(|_| which & 0x80 != 0).ok_or(wrong)?;
        let dts = if which & 0x40 != 0 { field(14).ok_or(wrong)? } else { pts };
        let payload = payload.to_vec();
        Ok(Pes { track, pts, dts, pcr: self.pcr, random_access: self.random_access, payload })
    }
}

/// A timestamp out of five bytes, if its markers are there.
fn timestamp(bytes: &[u8]) -> Option<u64> {
    let &[a, b, c, d, e] = bytes.first_chunk()?;
    let parts = [(a & 0x0e, 29u32), (b, 22), (c & 0xfe, 14), (d, 7)];
    let sum: u64 = parts.iter().map(|&(byte, shift)| u64::from(byte) << shift).sum();
    (a & c & e & 1 == 1).then_some(sum + u64::from(e >> 1))
}
