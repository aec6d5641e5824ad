//! A copy of a capture with comments on its packets, as Wireshark shows them.

use super::read::{Block, Reader, is_section, options};
use super::{ENHANCED_PACKET, OLD_PACKET, OPT_COMMENT, OPT_END, SECTION, Writer};
use crate::bytes::Order;
use crate::capture::{Capture, Error};
use crate::damage::Damage;
use crate::read_buffer::ReadBuffer;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use thiserror::Error;

/// Where a section header's options begin: behind its type, length, magic, version and section length.
const SECTION_OPTIONS_AT: usize = 24;
const SECTION_LENGTH_AT: usize = 16;
/// Where a packet's bytes begin in its block.
const PACKET_AT: usize = 28;
/// A comment's bytes at most: an option's length has 16 bits, and padding must fit, too.
const LONGEST_COMMENT: usize = 65_532;

/// Why a copy could not be made.
#[derive(Debug, Error)]
pub enum AnnotateError {
    /// The capture cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// The copy cannot be written.
    #[error("cannot write the copy: {0}")]
    Write(io::Error),
}

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Annotated {
    /// Packets copied.
    pub packets: u64,
    /// Packets that got a comment; simple packet blocks have no room for one.
    pub commented: u64,
}

/// Copies a capture as pcapng, with `comments` on packets by their numbers ([`crate::Packet::number`]) and `summary` on the
/// first section.
///
/// A pcapng's blocks are copied byte for byte, of every kind: names, secrets and comments that were there stay. What is damaged
/// is left out. Memory is bounded.
///
/// # Errors
/// [`AnnotateError`]; what was written until then is of no use.
pub fn annotate(
    from: impl Read,
    to: impl Write,
    summary: &str,
    comments: &BTreeMap<u64, String>,
) -> Result<Annotated, AnnotateError> {
    let mut buffer = ReadBuffer::new(from).map_err(Error::Read)?;
    buffer.want(64).map_err(Error::Read)?;
    if is_section(buffer.peek()) {
        blocks(buffer, to, summary, comments)
    } else {
        records(Capture::of_buffer(buffer)?, to, summary, comments)
    }
}

fn blocks<R: Read>(
    mut buffer: ReadBuffer<R>,
    mut to: impl Write,
    summary: &str,
    comments: &BTreeMap<u64, String>,
) -> Result<Annotated, AnnotateError> {
    let (mut reader, mut interfaces, mut damage) = (Reader::default(), Vec::new(), Damage::default());
    let (mut done, mut changed, mut is_first) = (Annotated::default(), Vec::new(), true);
    while let Some(block) = reader.next_block(&mut buffer, &mut interfaces, &mut damage).map_err(Error::Read)? {
        let bytes = buffer.consumed(block.length);
        done.packets += u64::from(block.packet.is_some());
        let comment = block.packet.and_then(|_| comments.get(&done.packets)).map(String::as_str);
        let write = |to: &mut dyn Write, bytes: &[u8]| to.write_all(bytes).map_err(AnnotateError::Write);
        match (block.kind, comment) {
            (SECTION, _) => {
                add_comment(
                    &mut changed,
                    bytes,
                    block,
                    SECTION_OPTIONS_AT,
                    Some(summary).filter(|text| is_first && !text.is_empty()),
                );
                is_first = false;
                // Its blocks grow: the length of the section is no longer what it says, and may be left unsaid.
                if let Some(length) = changed.get_mut(SECTION_LENGTH_AT..SECTION_LENGTH_AT + 8) {
                    length.fill(0xff);
                }
                write(&mut to, &changed)?;
            }
            (ENHANCED_PACKET | OLD_PACKET, Some(comment)) => {
                let kept = block.packet.map_or(0, |packet| packet.len);
                add_comment(&mut changed, bytes, block, PACKET_AT + kept.next_multiple_of(4), Some(comment));
                done.commented += 1;
                write(&mut to, &changed)?;
            }
            _ => write(&mut to, bytes)?,
        }
    }
    to.flush().map_err(AnnotateError::Write)?;
    Ok(done)
}

/// Puts the block into `into`, with a comment behind the options that begin at `options_at`.
fn add_comment(into: &mut Vec<u8>, block: &[u8], Block { order, .. }: Block, options_at: usize, comment: Option<&str>) {
    let two = |number: usize| match order {
        Order::Little => (number as u16).to_le_bytes(),
        Order::Big => (number as u16).to_be_bytes(),
    };
    let body_end = block.len() - 4;
    let options_at = options_at.min(body_end);
    let kept: usize =
        options(order, &block[options_at..body_end]).map(|(_, value)| 4 + value.len().next_multiple_of(4)).sum();
    into.clear();
    into.extend_from_slice(&block[..(options_at + kept).min(body_end)]);
    if let Some(comment) = comment {
        let mut len = comment.len().min(LONGEST_COMMENT);
        while !comment.is_char_boundary(len) {
            len -= 1;
        }
        into.extend_from_slice(&two(usize::from(OPT_COMMENT)));
        into.extend_from_slice(&two(len));
        into.extend_from_slice(&comment.as_bytes()[..len]);
        into.resize(into.len().next_multiple_of(4), 0);
    }
    if into.len() > options_at {
        into.extend_from_slice(&two(usize::from(OPT_END)));
        into.extend_from_slice(&two(0));
    }
    let length = (into.len() + 4) as u32;
    let length = match order {
        Order::Little => length.to_le_bytes(),
        Order::Big => length.to_be_bytes(),
    };
    into[4..8].copy_from_slice(&length);
    into.extend_from_slice(&length);
}

/// A file without blocks, packet by packet.
fn records<R: Read>(
    mut capture: Capture<R>,
    to: impl Write,
    summary: &str,
    comments: &BTreeMap<u64, String>,
) -> Result<Annotated, AnnotateError> {
    let write = AnnotateError::Write;
    let mut writer = Writer::with_comment(to, "thalweg", summary).map_err(write)?;
    let mut done = Annotated::default();
    for interface in capture.interfaces() {
        writer.add_interface(interface.name.as_deref().unwrap_or_default(), interface.link, 0).map_err(write)?;
    }
    while let Some(packet) = capture.next()? {
        done.packets += 1;
        let comment = comments.get(&packet.number).map(String::as_str);
        done.commented += u64::from(comment.is_some());
        writer.packet(packet.interface, packet.at, packet.original_len, packet.bytes, comment).map_err(write)?;
    }
    writer.finish().map_err(write)?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use thalweg_units::Timestamp;

    fn capture() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), "test").expect("vec");
        writer.add_interface("eth0", LinkType::ETHERNET, 0).expect("vec");
        for (number, comment) in [(1u8, None), (2, Some("was here")), (3, None)] {
            let at = Timestamp::from_nanos(u64::from(number));
            writer.packet(0, at, 60, &vec![number; usize::from(number)], comment).expect("vec");
        }
        writer.finish().expect("vec")
    }

    fn packets(file: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut capture = Capture::new(file).expect("a capture");
        let mut found = Vec::new();
        while let Some(packet) = capture.next().expect("read") {
            found.push((packet.number, packet.at.as_nanos(), packet.bytes.to_vec()));
        }
        assert!(capture.damage().notes().is_empty(), "{:?}", capture.damage());
        found
    }

    fn occurs(file: &[u8], text: &str) -> bool {
        file.windows(text.len()).any(|window| window == text.as_bytes())
    }

    fn annotated(file: &[u8], comments: &[(u64, &str)]) -> (Vec<u8>, Annotated) {
        let comments = comments.iter().map(|(number, text)| (*number, (*text).to_owned())).collect();
        let mut copy = Vec::new();
        let done = annotate(file, &mut copy, "what was found", &comments).expect("copied");
        (copy, done)
    }

    #[test]
    fn packets_stay_as_they_are_and_comments_come_to_those_there_were() {
        let file = capture();
        let (copy, done) = annotated(&file, &[(2, "lost"), (3, "sent again"), (9, "no such packet")]);
        assert_eq!(done, Annotated { packets: 3, commented: 2 });
        assert_eq!(packets(&copy), packets(&file));
        for text in ["was here", "lost", "sent again", "what was found", "eth0"] {
            assert!(occurs(&copy, text), "{text}");
        }
        assert!(!occurs(&copy, "no such packet"));
    }

    #[test]
    fn without_comments_only_the_section_header_changes() {
        let file = capture();
        let (copy, _) = annotated(&file, &[]);
        let after = |file: &[u8]| file[Order::Little.u32(file, 4) as usize..].to_vec();
        assert_eq!(after(&copy), after(&file));
    }

    #[test]
    fn a_comment_too_long_for_an_option_is_cut_at_a_character() {
        let (copy, _) = annotated(&capture(), &[(1, &"ß".repeat(40_000))]);
        assert_eq!(packets(&copy).len(), 3);
    }

    #[test]
    fn the_blocks_of_a_big_endian_file_are_written_as_such() {
        let mut file = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let length = (body.len() + 12) as u32;
            for part in [&kind.to_be_bytes()[..], &length.to_be_bytes(), body, &length.to_be_bytes()] {
                file.extend_from_slice(part);
            }
        };
        block(SECTION, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 72]);
        block(1, &[0, 1, 0, 0, 0, 0, 0, 0]);
        block(0x0bad, b"kept");
        block(ENHANCED_PACKET, &[[0; 15].as_slice(), &[5], &[0, 0, 0, 60], &[7; 5], &[0; 3]].concat());
        let (copy, done) = annotated(&file, &[(1, "here")]);
        assert_eq!(done, Annotated { packets: 1, commented: 1 });
        assert_eq!(packets(&copy), packets(&file));
        assert!(occurs(&copy, "kept") && occurs(&copy, "here"));
        assert_eq!(copy[SECTION_LENGTH_AT..SECTION_LENGTH_AT + 8], [0xff; 8]);
    }

    #[test]
    fn a_pcap_becomes_a_pcapng() {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
        file.extend_from_slice(&[[1, 0, 0, 0], [5, 0, 0, 0], [4, 0, 0, 0], [60, 0, 0, 0], [9; 4]].concat());
        let (copy, done) = annotated(&file, &[(1, "here")]);
        assert_eq!(done, Annotated { packets: 1, commented: 1 });
        assert_eq!(packets(&copy), [(1, 1_000_005_000, vec![9; 4])]);
    }

    #[test]
    fn files_cut_anywhere_are_copied_as_far_as_they_go() {
        let file = capture();
        for end in 12..file.len() {
            let mut copy = Vec::new();
            if annotate(&file[..end], &mut copy, "cut", &BTreeMap::new()).is_ok() && !copy.is_empty() {
                assert!(packets(&copy).len() <= 3, "cut at {end}");
            }
        }
    }
}
