//! Ethernet frames with IPv4 and TCP, checksums right, into a pcap file with microseconds.

use std::io::{self, Write};

const LINK_LEN: usize = 14;
const IP_LEN: usize = 20;
/// Every payload byte that is no text.
const FILL: u8 = b'x';

/// A TCP segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Frame {
    pub(crate) source: ([u8; 4], u16),
    pub(crate) destination: ([u8; 4], u16),
    pub(crate) id: u16,
    pub(crate) flags: u8,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) tsval: u32,
    pub(crate) tsecr: u32,
    /// Left edge and length of each block; those of length 0 are none.
    pub(crate) sack: [(u32, u32); 3],
    /// What a SYN offers.
    pub(crate) mss: u16,
    pub(crate) payload: u32,
}

/// What a payload begins and ends with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Text<'a> {
    pub(crate) head: &'a [u8],
    pub(crate) tail: &'a [u8],
}

/// A pcap file being written.
pub(crate) struct Pcap<W> {
    out: W,
    frame: Vec<u8>,
    bytes: u64,
    packets: u64,
}

impl<W: Write> Pcap<W> {
    pub(crate) fn begin(mut out: W) -> io::Result<Self> {
        let mut header = Vec::new();
        for word in [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 262_144, 1] {
            header.extend(word.to_le_bytes());
        }
        out.write_all(&header)?;
        Ok(Self { out, frame: Vec::new(), bytes: header.len() as u64, packets: 0 })
    }

    pub(crate) fn packet(&mut self, at_ns: u64, frame: &Frame, text: Text<'_>) -> io::Result<()> {
        self.frame.clear();
        self.frame.extend([0; 16]);
        emit(frame, text, &mut self.frame);
        let len = self.frame.len() as u32 - 16;
        let micros = at_ns / 1_000;
        for (at, word) in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, len, len].into_iter().enumerate() {
            self.frame[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        self.bytes += self.frame.len() as u64;
        self.packets += 1;
        self.out.write_all(&self.frame)
    }

    /// Bytes and packets written.
    pub(crate) fn finish(mut self) -> io::Result<(u64, u64)> {
        self.out.flush()?;
        Ok((self.bytes, self.packets))
    }
}

fn emit(frame: &Frame, text: Text<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    out.extend([0x45, 0, 0, 0]);
    out.extend(frame.id.to_be_bytes());
    out.extend([0x40, 0, 64, 6, 0, 0]);
    out.extend(frame.source.0);
    out.extend(frame.destination.0);
    out.extend(frame.source.1.to_be_bytes());
    out.extend(frame.destination.1.to_be_bytes());
    out.extend(frame.seq.to_be_bytes());
    out.extend(frame.ack.to_be_bytes());
    let is_syn = frame.flags & 2 != 0;
    // A window of 4 MiB, scaled by 7 everywhere but in a SYN.
    let window: u16 = if is_syn { 64_240 } else { 32_768 };
    out.extend([0, frame.flags]);
    out.extend(window.to_be_bytes());
    out.extend([0; 4]);
    if is_syn {
        out.extend([2, 4]);
        out.extend((frame.mss + 12).to_be_bytes());
        out.extend([4, 2]);
    } else {
        out.extend([1, 1]);
    }
    out.extend([8, 10]);
    out.extend(frame.tsval.to_be_bytes());
    out.extend(frame.tsecr.to_be_bytes());
    if is_syn {
        out.extend([1, 3, 3, 7]);
    }
    let blocks = frame.sack.iter().filter(|(_, len)| *len > 0);
    if blocks.clone().next().is_some() {
        out.extend([1, 1, 5, 2 + 8 * blocks.clone().count() as u8]);
        for (left, len) in blocks {
            out.extend(left.to_be_bytes());
            out.extend(left.wrapping_add(*len).to_be_bytes());
        }
    }
    let ip = start + LINK_LEN;
    let tcp = ip + IP_LEN;
    out[tcp + 12] = ((out.len() - tcp) as u8 / 4) << 4;
    let end = out.len() + frame.payload as usize;
    out.extend(text.head);
    out.resize(end - text.tail.len(), FILL);
    out.extend(text.tail);
    let total = (out.len() - ip) as u16;
    out[ip + 2..ip + 4].copy_from_slice(&total.to_be_bytes());
    let sum = checksum(words(&out[ip..tcp]));
    out[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
    let pseudo = words(&out[ip + 12..tcp]) + 6 + (out.len() - tcp) as u64;
    let sum = checksum(pseudo + words(&out[tcp..]));
    out[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
}

fn words(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0))).sum()
}

/// The Internet checksum (RFC 1071).
fn checksum(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
