//! Program tables: what there is, and in which packets.

use super::{AUDIO_PID, PACKET, PMT_PID, SYNC, VIDEO_PID};

/// Appends a packet with the program association table.
pub(super) fn write_pat(counter: u8, out: &mut Vec<u8>) {
    // Transport stream 1, version 0, in force, section 0 of 0; program 1.
    let [high, low] = (0xe000 | PMT_PID).to_be_bytes();
    write_section(0, counter, &[0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, high, low], out);
}

/// Appends a packet with the program map table, of the tracks that there are, by their stream types.
pub(super) fn write_pmt(counter: u8, version: u8, video: Option<u8>, audio: Option<u8>, out: &mut Vec<u8>) {
    let [high, low] = (0xe000 | if video.is_some() { VIDEO_PID } else { AUDIO_PID }).to_be_bytes();
    let length = 13 + 5 * (u8::from(video.is_some()) + u8::from(audio.is_some()));
    let mut section = vec![2, 0xb0, length, 0, 1, 0xc1 | (version & 31) << 1, 0, 0, high, low, 0xf0, 0];
    for (kind, pid) in [(video, VIDEO_PID), (audio, AUDIO_PID)] {
        if let Some(kind) = kind {
            let [high, low] = (0xe000 | pid).to_be_bytes();
            section.extend([kind, high, low, 0xf0, 0]);
        }
    }
    write_section(PMT_PID, counter, &section, out);
}

/// Appends a packet with a section, its checksum and stuffing.
fn write_section(pid: u16, counter: u8, section: &[u8], out: &mut Vec<u8>) {
    let [high, low] = (0x4000 | pid).to_be_bytes();
    // A pointer of nothing: the section begins at once.
    let mut packet = vec![SYNC, high, low, 0x10 | counter & 15, 0];
    packet.extend_from_slice(section);
    packet.extend(crc(section).to_be_bytes());
    packet.resize(PACKET, 0xff);
    out.extend_from_slice(&packet);
}

/// The checksum of a section (annex A); that of a section with its checksum is 0.
pub(super) fn crc(section: &[u8]) -> u32 {
    section.iter().fold(u32::MAX, |crc, &byte| {
        (0..8)
            .fold(crc ^ u32::from(byte) << 24, |crc, _| if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 })
    })
}

/// The program map's PID, of a whole association table; `None` for one that says nothing.
pub(super) fn read_pat(section: &[u8]) -> Option<u16> {
    let body = section.get(8..section.len().checked_sub(4)?)?;
    let mut programs = body.chunks_exact(4);
    // Program 0 is the network's table.
    let program = programs.find(|program| program[..2] != [0, 0])?;
    Some(u16::from_be_bytes([program[2], program[3]]) & 0x1fff)
}

/// Stream types and their PIDs, of a whole map table.
pub(super) fn read_pmt(section: &[u8]) -> Option<Vec<(u8, u16)>> {
    let body = section.get(..section.len().checked_sub(4)?)?;
    let skipped = usize::from(u16::from_be_bytes([*body.get(10)?, *body.get(11)?]) & 0x0fff);
    let mut rest = body.get(12 + skipped..)?;
    let mut streams = Vec::new();
    while let Some((&[kind, high, low, length_high, length_low], after)) = rest.split_first_chunk() {
        streams.push((kind, u16::from_be_bytes([high, low]) & 0x1fff));
        rest = after.get(usize::from(u16::from_be_bytes([length_high, length_low]) & 0x0fff)..)?;
    }
    Some(streams)
}
