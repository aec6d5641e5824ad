//! Units → packets.

use super::psi::{write_pat, write_pmt};
use super::{AUDIO_PID, MASK, PACKET, SYNC, TICKS, TYPE_AAC, TYPE_AVC, TYPE_MPEG1_AUDIO, TYPE_MPEG2_AUDIO, VIDEO_PID};
use crate::aac::ADTS_LENGTH;
use crate::avc::{NAL_AUD, NAL_PPS, NAL_SPS, Nals};
use crate::{AacConfig, AvcConfig, Config, Mp3Config, Track, Unit};
use std::sync::Arc;

/// Writes one program: H.264, sound (AAC or MP3), or both.
///
/// Frames of sound are gathered, several to a PES packet: alone, each would fill its last packet with stuffing. So what was written
/// is whole only after [`Muxer::flush`].
#[derive(Debug, Default)]
pub struct Muxer {
    video: Option<Arc<AvcConfig>>,
    audio: Option<Sound>,
    version: u8,
    /// Continuity counters: PAT, PMT, video, audio.
    counters: [u8; 4],
    gathered: Gathered,
    decoding: Decoding,
    /// The latest clock reference, in ticks.
    pcr: Option<i64>,
}

/// When pictures are decoded.
#[derive(Debug, Default)]
struct Decoding {
    /// By how much earlier than a publisher says, in ticks: its pictures may be shown before it says that they are decoded.
    ahead: i64,
    /// When the last one is.
    last: Option<i64>,
}

impl Decoding {
    /// The decoding and presentation timestamps of a picture, where the publisher says so. Nothing is shown before it is decoded, and
    /// each picture is decoded later than the last; where both take it, a picture is shown later, until it is known how much earlier to
    /// decode.
    fn place(&mut self, dts: i64, pts: i64) -> (i64, i64) {
        if dts - pts <= AHEAD_MAX {
            self.ahead = self.ahead.max(dts - pts);
        }
        let dts = (dts - self.ahead).max(self.last.map_or(i64::MIN, |last| last + 1));
        self.last = Some(dts);
        (dts, pts.max(dts))
    }
}

/// How sound is decoded.
#[derive(Debug)]
enum Sound {
    Aac(Arc<AacConfig>),
    Mp3(Mp3Config),
}

impl Sound {
    /// Its stream type. Source: ISO/IEC 13818-1 table 2-34: 11172-3 has the rates from 32 kHz on, 13818-3 those below.
    const fn stream_type(&self) -> u8 {
        match self {
            Self::Aac(_) => TYPE_AAC,
            Self::Mp3(mp3) if mp3.sample_rate < 32_000 => TYPE_MPEG2_AUDIO,
            Self::Mp3(_) => TYPE_MPEG1_AUDIO,
        }
    }

    /// Samples in a frame, and in a second.
    fn samples(&self) -> (u32, u32) {
        match self {
            Self::Aac(aac) => (aac.samples, aac.sample_rate()),
            Self::Mp3(mp3) => (mp3.samples, mp3.sample_rate),
        }
    }
}

/// Frames of sound, of AAC with their ADTS headers, that were not written yet.
#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
    dts_ms: u64,
    frames: u32,
}

/// How much sound is gathered at most, in bytes: what fits into 16 packets, as FFmpeg does.
const GATHER_BYTES: usize = 2930;
/// And in frames.
const GATHER_FRAMES: u32 = 5;
/// Most that two clock references are apart, in ticks: a tenth of a second (§2.7.2).
const PCR_APART: i64 = 9_000;
/// Media is apart by no more than this, in ticks: the clock goes on through it. A minute: see `limits.gop`.
const PCR_FILLED_MAX: i64 = 60 * 90_000;
/// Frames that are further from where the first one says they are begin a PES packet of their own, in milliseconds.
const GATHER_OFF_MS: u64 = 5;

/// What timestamps begin with, in ticks: so far is the clock reference behind, that decoders have time to fill their buffers, and
/// a unit may be shown a little before the first one.
const BEGIN: i64 = 126_000;
/// Most that decoding is moved ahead, in ticks: two seconds, which 16 pictures take at 8 a second. No more are held back (ISO/IEC 14496-10,
/// `max_dec_frame_buffering`).
const AHEAD_MAX: i64 = 180_000;
/// How far the clock reference is behind the decoding of its packet's unit, in ticks: 0.7 s, as FFmpeg has it.
const PCR_BEHIND: i64 = 63_000;

/// An access unit delimiter that allows every kind of slice; RFC 8216 has none, players of Apple's want it.
const DELIMITER: [u8; 6] = [0, 0, 0, 1, NAL_AUD, 0xf0];
const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// The counters' places.
const PAT: usize = 0;
const PMT: usize = 1;
const VIDEO: usize = 2;
const AUDIO: usize = 3;

impl Muxer {
    /// A track is there, or is decoded otherwise, from the next [`Muxer::begin`] on.
    pub fn config(&mut self, config: &Config) {
        match config {
            Config::Avc(avc) => self.video = Some(avc.clone()),
            Config::Aac(aac) => self.audio = Some(Sound::Aac(aac.clone())),
            Config::Mp3(mp3) => self.audio = Some(Sound::Mp3(*mp3)),
        }
        self.version = self.version.wrapping_add(1) & 31;
        // Another track may have the clock now.
        self.pcr = None;
    }

    /// There are no tracks any more: those of the next publisher follow.
    pub fn clear(&mut self) {
        (self.video, self.audio, self.gathered) = (None, None, Gathered::default());
        (self.decoding.ahead, self.pcr) = (0, None);
    }

    /// Appends the program's tables. Each segment begins with them.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        write_pat(self.counters[PAT], out);
        let video = self.video.is_some().then_some(TYPE_AVC);
        write_pmt(self.counters[PMT], self.version, video, self.audio.as_ref().map(Sound::stream_type), out);
        self.counters[PAT] = self.counters[PAT].wrapping_add(1);
        self.counters[PMT] = self.counters[PMT].wrapping_add(1);
    }

    /// Appends a unit, or gathers it. One of a track without a configuration, and sound that ADTS cannot hold, is left out.
    pub fn write(&mut self, unit: &Unit, out: &mut Vec<u8>) {
        match unit.track {
            Track::Video => self.picture(unit, out),
            Track::Audio => self.sound(unit, out),
        }
    }

    /// Appends what was gathered. Each segment ends with it.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.gathered.bytes.is_empty() {
            return;
        }
        let gathered = std::mem::take(&mut self.gathered.bytes);
        let pts = BEGIN + self.gathered.dts_ms as i64 * TICKS;
        let header = PesHeader::new(0xc0, pts, None, Some(gathered.len()));
        // Without video the clock is here.
        let pcr =
            self.video.is_none().then(|| clock(&mut self.pcr, AUDIO_PID, self.counters[AUDIO], pts - PCR_BEHIND, out));
        let total = header.bytes().len() + gathered.len();
        let mut packets = Packets::new(AUDIO_PID, &mut self.counters[AUDIO], pcr, true, total, out);
        packets.put(header.bytes());
        packets.put(&gathered);
        // The buffer is kept for the next frames.
        self.gathered = Gathered { bytes: gathered, dts_ms: 0, frames: 0 };
        self.gathered.bytes.clear();
    }

    fn picture(&mut self, unit: &Unit, out: &mut Vec<u8>) {
        let Some(config) = &self.video else { return };
        let nals = Nals::new(&unit.payload, config.length_size).filter(|nal| nal[0] & 31 != NAL_AUD);
        // A decoder that begins here has seen no parameter set.
        let lacks = |set: u8| !nals.clone().any(|nal| nal[0] & 31 == set);
        let bare = unit.keyframe && (lacks(NAL_SPS) || lacks(NAL_PPS));
        let sets = config.sps.iter().chain(&config.pps).filter(|_| bare).map(Vec::as_slice);
        let dts = BEGIN + unit.dts_ms as i64 * TICKS;
        let (dts, pts) = self.decoding.place(dts, dts + i64::from(unit.cts_ms) * TICKS);
        let header = PesHeader::new(0xe0, pts, Some(dts), None);
        let body: usize = sets.clone().chain(nals.clone()).map(|nal| START_CODE.len() + nal.len()).sum();
        let total = header.bytes().len() + DELIMITER.len() + body;
        let pcr = Some(clock(&mut self.pcr, VIDEO_PID, self.counters[VIDEO], dts - PCR_BEHIND, out));
        let mut packets = Packets::new(VIDEO_PID, &mut self.counters[VIDEO], pcr, unit.keyframe, total, out);
        packets.put(header.bytes());
        packets.put(&DELIMITER);
        for nal in sets.chain(nals) {
            packets.put(&START_CODE);
            packets.put(nal);
        }
    }

    fn sound(&mut self, unit: &Unit, out: &mut Vec<u8>) {
        let Some(sound) = &self.audio else { return };
        let header: [u8; ADTS_LENGTH];
        let header = match sound {
            Sound::Aac(aac) => {
                let Some(adts) = aac.adts(unit.payload.len()) else { return };
                header = adts;
                &header[..]
            }
            Sound::Mp3(_) => &[],
        };
        let (samples, rate) = sound.samples();
        let passed_ms = u64::from(self.gathered.frames * samples) * 1000 / u64::from(rate);
        let off_ms = unit.dts_ms.abs_diff(self.gathered.dts_ms + passed_ms);
        let full = self.gathered.bytes.len() + header.len() + unit.payload.len() > GATHER_BYTES;
        // Where the clock is in sound, it is due again behind this frame.
        let is_due = self.video.is_none()
            && i64::from((self.gathered.frames + 1) * samples) * 90_000 > PCR_APART * i64::from(rate);
        if full || is_due || off_ms > GATHER_OFF_MS || self.gathered.frames >= GATHER_FRAMES {
            self.flush(out);
        }
        if self.gathered.bytes.is_empty() {
            self.gathered.dts_ms = unit.dts_ms;
        }
        self.gathered.frames += 1;
        self.gathered.bytes.extend_from_slice(header);
        self.gathered.bytes.extend_from_slice(&unit.payload);
    }
}

/// Moves the clock to `to`, with packets of its own where references would be too far apart. They have no payload, and so the counter of
/// the last packet (§2.4.3.3).
fn clock(last: &mut Option<i64>, pid: u16, counter: u8, to: i64, out: &mut Vec<u8>) -> i64 {
    if let Some(last) = last.filter(|last| to - last <= PCR_FILLED_MAX) {
        let mut at = last + PCR_APART;
        while at < to {
            let [high, low] = pid.to_be_bytes();
            let mut packet = [0xff; PACKET];
            packet[..5].copy_from_slice(&[SYNC, high, low, 0x20 | counter.wrapping_sub(1) & 15, (PACKET - 5) as u8]);
            packet[5] = 0x10;
            packet[6..12].copy_from_slice(&clock_reference(at));
            out.extend_from_slice(&packet);
            at += PCR_APART;
        }
    }
    *last = Some(to);
    to
}

/// A clock reference: 33 bits, six reserved, and nine of which none is used (§2.4.3.5).
fn clock_reference(ticks: i64) -> [u8; 6] {
    let [_, _, _, high, rest @ ..] = ((ticks as u64 & MASK) << 7).to_be_bytes();
    [high, rest[0], rest[1], rest[2], rest[3] | 0x7e, 0]
}

/// A PES packet's header (§2.4.3.6).
struct PesHeader {
    bytes: [u8; 19],
    length: usize,
}

impl PesHeader {
    /// `payload` is the payload's length, where the header states it; video's need not.
    fn new(stream: u8, pts: i64, dts: Option<i64>, payload: Option<usize>) -> Self {
        let dts = dts.filter(|&dts| dts != pts);
        let fields = if dts.is_some() { 10 } else { 5 };
        // The flags and this header's own rest count, the first six bytes do not.
        let length = payload.and_then(|payload| u16::try_from(3 + fields + payload).ok()).unwrap_or(0).to_be_bytes();
        let mut bytes = [0; 19];
        let which = if dts.is_some() { 0xc0 } else { 0x80 };
        // 0x84: the payload begins where a unit does.
        bytes[..9].copy_from_slice(&[0, 0, 1, stream, length[0], length[1], 0x84, which, fields as u8]);
        bytes[9..14].copy_from_slice(&timestamp(if dts.is_some() { 3 } else { 2 }, pts));
        if let Some(dts) = dts {
            bytes[14..].copy_from_slice(&timestamp(1, dts));
        }
        Self { bytes, length: 9 + fields }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A timestamp in five bytes, with a marker bit behind each part.
const fn timestamp(prefix: u8, ticks: i64) -> [u8; 5] {
    let t = ticks as u64 & MASK;
    [
        prefix << 4 | ((t >> 29) as u8 & 0x0e) | 1,
        (t >> 22) as u8,
        ((t >> 14) as u8 & 0xfe) | 1,
        (t >> 7) as u8,
        ((t << 1) as u8 & 0xfe) | 1,
    ]
}

/// Writes a PES packet's bytes into packets, each byte copied once.
struct Packets<'a> {
    pid: u16,
    counter: &'a mut u8,
    pcr: Option<i64>,
    random_access: bool,
    /// Bytes of the PES packet that are not written yet.
    left: usize,
    /// Room in the packet that is being written.
    room: usize,
    first: bool,
    out: &'a mut Vec<u8>,
}

impl<'a> Packets<'a> {
    fn new(
        pid: u16,
        counter: &'a mut u8,
        pcr: Option<i64>,
        random_access: bool,
        total: usize,
        out: &'a mut Vec<u8>,
    ) -> Self {
        // The first packet holds less, for the clock.
        out.reserve((total / (PACKET - 4) + 2) * PACKET);
        Self { pid, counter, pcr, random_access, left: total, room: 0, first: true, out }
    }

    fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.room == 0 {
                self.begin();
            }
            let (now, later) = bytes.split_at(self.room.min(bytes.len()));
            self.out.extend_from_slice(now);
            self.room -= now.len();
            self.left -= now.len();
            bytes = later;
        }
    }

    /// Begins a packet: header, adaptation field, and stuffing where the rest does not fill it.
    fn begin(&mut self) {
        let [high, low] = (self.pid | if self.first { 0x4000 } else { 0 }).to_be_bytes();
        let counter = *self.counter & 15;
        *self.counter = self.counter.wrapping_add(1);
        if !self.first && self.left >= PACKET - 4 {
            self.out.extend_from_slice(&[SYNC, high, low, 0x10 | counter]);
            self.room = PACKET - 4;
            return;
        }
        let mut field = [0xff; PACKET - 4];
        // Its length, flags, and the clock.
        let mut used = 0;
        if self.first && (self.pcr.is_some() || self.random_access) {
            field[1] = u8::from(self.random_access) << 6 | u8::from(self.pcr.is_some()) << 4;
            used = 2;
            if let Some(pcr) = self.pcr {
                field[2..8].copy_from_slice(&clock_reference(pcr));
                used = 8;
            }
        }
        self.first = false;
        let room = PACKET - 4 - used;
        if self.left < room {
            // Stuffing: one byte is a field of no length, two are a length and no flags.
            let stuffed = used + room - self.left;
            if used == 0 && stuffed > 1 {
                field[1] = 0;
            }
            used = stuffed;
        }
        self.room = PACKET - 4 - used;
        if used > 0 {
            field[0] = used as u8 - 1;
        }
        let control = if used > 0 { 0x30 } else { 0x10 };
        self.out.extend_from_slice(&[SYNC, high, low, control | counter]);
        self.out.extend_from_slice(&field[..used]);
    }
}
