//! The pictures between the newest keyframe and the present, sent with compressed timestamps so that a new viewer is live at once.
//!
//! A viewer that joins between keyframes gets the pictures since the last one. With their own timestamps a player would show them in
//! real time and stay behind by that long. So each gets a timestamp two milliseconds after the one before, and the last one its own;
//! the sound begins where they end. The payload is in the blocks that all viewers share; only the tags' headers are rewritten when
//! they are sent.

use super::chunked::Coding;
use crate::hub::Block;
use std::collections::VecDeque;
use std::sync::Arc;

/// Time between pictures: with two milliseconds, reordered pictures keep their order in whole ones.
const PICTURE_MS: u64 = 2;
/// Bytes of a tag before its data. Source: Adobe's FLV 10.1, E.4.1.
const TAG_HEADER: usize = 11;
/// A tag's own head, and that of a picture's data, which holds its composition time. Source: E.4.3.1.
pub(super) const HEAD: usize = TAG_HEADER + 5;
/// The size of the tag before.
const TRAILER: usize = 4;

/// A viewer's position among the pictures before it is live.
#[derive(Debug)]
pub(super) struct FastJoin {
    /// The block of the tag that is next.
    block: Arc<Block>,
    /// Where in it the tag begins.
    at: usize,
    /// Bytes of its chunk that were sent.
    sent: usize,
    coding: Coding,
    /// The number of the last block that it is about.
    pub(super) last: u64,
    retiming: Retiming,
}

/// Maps the time before `end_ms` to less.
#[derive(Debug, Clone, Copy)]
struct Retiming {
    /// Timestamp of the last picture.
    end_ms: u32,
    /// From the first picture to the last one.
    span_ms: u64,
    /// What that becomes.
    short_ms: u64,
}

/// A picture's tag in a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Picture<'a> {
    /// The tag's first bytes, as they are sent.
    pub(super) head: [u8; HEAD],
    /// The rest of it.
    pub(super) rest: &'a [u8],
}

impl FastJoin {
    /// From the keyframe at the beginning of `held[start]` to the newest picture that is decoded alike; `None` where that takes no time.
    /// Metadata and sound that came meanwhile are in the header of the last block.
    pub(super) fn new(held: &VecDeque<Arc<Block>>, start: usize, coding: Coding) -> Option<Self> {
        let first = held.get(start)?;
        let blocks = held.iter().skip(start).take_while(|block| block.video == first.video);
        let (mut count, mut from_ms, mut end_ms, mut last) = (0, None, 0, first.number);
        for block in blocks {
            last = block.number;
            let mut at = 0;
            while let Some((begin, end)) = next_picture(&block.bytes, at) {
                end_ms = timestamp_ms(&block.bytes[begin..]);
                from_ms = from_ms.or(Some(end_ms));
                (at, count) = (end, count + 1);
            }
        }
        let span_ms = u64::from(end_ms.wrapping_sub(from_ms?));
        let short_ms = (count - 1) * PICTURE_MS;
        let retiming = Retiming { end_ms, span_ms, short_ms };
        (short_ms < span_ms).then(|| Self { block: Arc::clone(first), at: 0, sent: 0, coding, last, retiming })
    }

    /// The tags to be sent next, from what was not sent of the first one; at most `most`.
    pub(super) fn pictures<'a>(
        &'a self,
        held: &'a VecDeque<Arc<Block>>,
        most: usize,
    ) -> impl Iterator<Item = Picture<'a>> {
        let (mut block, mut at) = (&self.block, self.at);
        let next = move || {
            loop {
                if let Some((begin, end)) = next_picture(&block.bytes, at) {
                    at = end;
                    let tag = &block.bytes[begin..end];
                    return Some(Picture { head: self.retiming.head(tag), rest: &tag[HEAD..] });
                }
                (block, at) = (self.after(block, held)?, 0);
            }
        };
        std::iter::from_fn(next).take(most)
    }

    /// Bytes of the first chunk of [`FastJoin::pictures`] that were sent.
    pub(super) const fn sent(&self) -> usize {
        self.sent
    }

    /// Counts bytes sent; returns those that were none of its own, once all is sent or the rest has left the ring.
    pub(super) fn moved(&mut self, mut sent: usize, held: &VecDeque<Arc<Block>>) -> Result<(), usize> {
        loop {
            let Some((begin, end)) = next_picture(&self.block.bytes, self.at) else {
                let Some(next) = self.after(&self.block, held).cloned() else { return Err(sent) };
                (self.block, self.at) = (next, 0);
                continue;
            };
            let left = self.coding.coded_len(end - begin) - self.sent;
            if sent < left {
                self.sent += sent;
                return Ok(());
            }
            sent -= left;
            (self.at, self.sent) = (end, 0);
        }
    }

    /// When the block it stands in is due, in milliseconds of the stream.
    pub(super) fn at_ms(&self) -> u64 {
        self.block.at_ms
    }

    /// The number of the block it stands in.
    pub(super) fn number(&self) -> u64 {
        self.block.number
    }

    fn after<'a>(&self, block: &Block, held: &'a VecDeque<Arc<Block>>) -> Option<&'a Arc<Block>> {
        let next = Some(block.number + 1).filter(|&next| next <= self.last)?;
        held.get(usize::try_from(next.checked_sub(held.front()?.number)?).ok()?)
    }
}

impl Retiming {
    fn time_ms(self, at_ms: u32) -> u32 {
        let before_ms = self.end_ms.wrapping_sub(at_ms);
        // What is later than the last picture, such as the time at which it is shown, stays.
        if before_ms == 0 || before_ms > i32::MAX as u32 {
            return at_ms;
        }
        self.end_ms.wrapping_sub((u64::from(before_ms) * self.short_ms / self.span_ms) as u32)
    }

    /// The first bytes of a picture's tag with other times.
    fn head(self, tag: &[u8]) -> [u8; HEAD] {
        let mut head: [u8; HEAD] = tag[..HEAD].try_into().expect("invariant: a picture's tag has its head");
        let decoded_ms = timestamp_ms(tag);
        let [_, c2, c1, c0] = [0, head[13], head[14], head[15]];
        let offset_ms = i32::from_be_bytes([c2, c1, c0, 0]) >> 8;
        let shown_ms = self.time_ms(decoded_ms.wrapping_add_signed(offset_ms));
        let decoded_ms = self.time_ms(decoded_ms);
        let [t3, t2, t1, t0] = decoded_ms.to_be_bytes();
        head[4..8].copy_from_slice(&[t2, t1, t0, t3]);
        head[13..16].copy_from_slice(&shown_ms.wrapping_sub(decoded_ms).to_be_bytes()[1..]);
        head
    }
}

/// Where the next picture's tag begins and ends, from a tag at `at` on.
fn next_picture(block: &[u8], mut at: usize) -> Option<(usize, usize)> {
    const VIDEO: u8 = 9;
    loop {
        let tag = block.get(at..at + TAG_HEADER)?;
        let size = usize::from(tag[1]) << 16 | usize::from(tag[2]) << 8 | usize::from(tag[3]);
        let end = at + TAG_HEADER + size + TRAILER;
        if end > block.len() {
            return None;
        }
        if tag[0] & 0x1f == VIDEO && size >= HEAD - TAG_HEADER {
            return Some((at, end));
        }
        at = end;
    }
}

fn timestamp_ms(tag: &[u8]) -> u32 {
    u32::from_be_bytes([tag[7], tag[4], tag[5], tag[6]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_media::flv::{FlvReader, write_header, write_unit};
    use thalweg_media::{Tag, TagKind, Track, Unit};

    fn unit(track: Track, dts_ms: u64, cts_ms: i32, keyframe: bool) -> Unit {
        Unit {
            track,
            dts_ms,
            cts_ms,
            keyframe,
            discontinuity: false,
            payload: vec![7; 100 + dts_ms as usize % 7].into(),
        }
    }

    /// Blocks of a picture and a frame of sound each, `step_ms` apart, the first a keyframe.
    fn blocks(count: u64, from_ms: u64, step_ms: u64) -> VecDeque<Arc<Block>> {
        let header: Arc<[u8]> = Arc::from([]);
        let block = |number| {
            let at_ms = from_ms + number * step_ms;
            let mut bytes = Vec::new();
            write_unit(
                &unit(Track::Video, at_ms, [80, 160, 0, 40][number as usize % 4], number == 0),
                None,
                &mut bytes,
            );
            write_unit(&unit(Track::Audio, at_ms + 5, 0, true), None, &mut bytes);
            Arc::new(Block {
                number,
                bytes: bytes.into(),
                is_start: number == 0,
                at_ms,
                header: Arc::clone(&header),
                video: None,
            })
        };
        (0..count).map(block).collect()
    }

    /// All that is sent when the kernel takes `step` bytes at a time.
    fn sent(held: &VecDeque<Arc<Block>>, step: usize) -> Vec<u8> {
        let mut fast_join = FastJoin::new(held, 0, Coding::Identity).expect("something to catch up with");
        let mut all = Vec::new();
        loop {
            let mut bytes = Vec::new();
            for picture in fast_join.pictures(held, 3) {
                bytes.extend(picture.head);
                bytes.extend(picture.rest);
            }
            let now = &bytes[fast_join.sent()..];
            let now = &now[..now.len().min(step)];
            all.extend(now);
            if let Err(over) = fast_join.moved(now.len(), held) {
                assert_eq!(over, 0);
                return all;
            }
        }
    }

    fn read(bytes: &[u8]) -> Vec<Tag> {
        let mut file = Vec::new();
        write_header(false, true, &mut file);
        file.extend(bytes);
        let (mut reader, mut rest) = (FlvReader::new(1 << 20), &file[..]);
        std::iter::from_fn(|| reader.read(&mut rest).expect("FLV")).collect()
    }

    #[test]
    fn all_pictures_come_in_little_time_and_in_their_order() {
        for from_ms in [0, u64::from(u32::MAX) - 500] {
            let held = blocks(50, from_ms, 40);
            let whole = sent(&held, usize::MAX);
            assert!([1, 15, 16, 17, 130, 1_000].iter().all(|&step| sent(&held, step) == whole));
            let tags = read(&whole);
            assert!(tags.len() == 50 && tags.iter().all(|tag| tag.kind == TagKind::Video));
            let before_end = |at_ms: u32| i64::from((from_ms as u32).wrapping_add(49 * 40).wrapping_sub(at_ms) as i32);
            let decoded: Vec<i64> = tags.iter().map(|tag| -before_end(tag.timestamp_ms)).collect();
            assert!(decoded.windows(2).all(|two| two[1] > two[0]), "{decoded:?}");
            assert_eq!((decoded[0], decoded[49]), (-98, 0));
            let offset =
                |tag: &Tag| i64::from(i32::from_be_bytes([tag.payload[2], tag.payload[3], tag.payload[4], 0]) >> 8);
            let shown: Vec<i64> = tags.iter().zip(&decoded).map(|(tag, at)| at + offset(tag)).collect();
            let own: Vec<u64> = (0..50).map(|n| n * 40 + [80, 160, 0, 40][n as usize % 4]).collect();
            let mut by_shown: Vec<usize> = (0..50).collect();
            by_shown.sort_by_key(|&at| shown[at]);
            let mut by_own: Vec<usize> = (0..50).collect();
            by_own.sort_by_key(|&at| own[at]);
            assert_eq!(by_shown, by_own, "{shown:?}");
            assert!(shown.iter().zip(&decoded).all(|(shown, decoded)| shown >= decoded));
        }
    }

    #[test]
    fn there_is_nothing_to_catch_up_with_at_a_keyframe_or_without_pictures() {
        assert!(FastJoin::new(&blocks(1, 7, 40), 0, Coding::Identity).is_none());
        assert!(FastJoin::new(&blocks(50, 7, 2), 0, Coding::Identity).is_none(), "it would take no less");
        let mut bytes = Vec::new();
        write_unit(&unit(Track::Audio, 5, 0, true), None, &mut bytes);
        let header = Arc::from([]);
        let block = Block { number: 0, bytes: bytes.into(), is_start: true, at_ms: 5, header, video: None };
        assert!(FastJoin::new(&VecDeque::from([Arc::new(block)]), 0, Coding::Identity).is_none());
    }

    #[test]
    fn what_has_left_the_ring_ends_it() {
        let mut held = blocks(50, 0, 40);
        let mut fast_join = FastJoin::new(&held, 0, Coding::Identity).expect("something to catch up with");
        assert!(fast_join.moved(10, &held).is_ok());
        held.drain(..10);
        let rest: usize = fast_join.pictures(&held, 99).map(|picture| picture.head.len() + picture.rest.len()).sum();
        assert_eq!(fast_join.moved(rest - 10, &held), Err(0));
        assert!(fast_join.number() == 0 && fast_join.last == 49);
    }
}
