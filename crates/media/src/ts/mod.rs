//! MPEG-TS: units into packets of 188 bytes, and out of them.
//!
//! Source: ISO/IEC 13818-1 (H.222.0) §2.4.3 (packets, PES), §2.4.4 (PAT, PMT); HLS's wishes in RFC 8216 §3.2.

mod demux;
mod mux;
mod psi;

pub use demux::{Demuxer, Pes, TsError};
pub use mux::Muxer;

/// A packet's length, in bytes.
pub const PACKET: usize = 188;
/// What each packet begins with.
pub const SYNC: u8 = 0x47;

/// Where our tracks and tables are.
const PMT_PID: u16 = 0x1000;
const VIDEO_PID: u16 = 0x0100;
const AUDIO_PID: u16 = 0x0101;

/// Stream types (§2.4.4.9, table 2-34).
const TYPE_MPEG1_AUDIO: u8 = 0x03;
const TYPE_MPEG2_AUDIO: u8 = 0x04;
const TYPE_AAC: u8 = 0x0f;
const TYPE_AVC: u8 = 0x1b;

/// Ticks of 90 kHz in a millisecond.
const TICKS: i64 = 90;
/// Timestamps have 33 bits.
const MASK: u64 = (1 << 33) - 1;

#[cfg(test)]
mod tests;
