//! A stream as FLV: blocks that all its viewers share, newest last, bounded in bytes and time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thalweg_media::AvcConfig;
use thalweg_units::Span;

/// Whole FLV tags that were published in one go.
#[derive(Debug)]
pub struct Block {
    /// Its number, one more than that of the one before.
    pub number: u64,
    /// The tags.
    pub bytes: Box<[u8]>,
    /// Whether one who has nothing yet may begin here: a keyframe is first, or there is no video.
    pub is_start: bool,
    /// When its first tag is due, in milliseconds of the stream.
    pub at_ms: u64,
    /// What goes before the tags for one who begins here: FLV's header, metadata and the codecs' configurations.
    pub header: Arc<[u8]>,
    /// How its pictures are decoded: pictures of blocks of one configuration may be sent without what goes before the blocks between.
    pub video: Option<Arc<AvcConfig>>,
}

/// The newest blocks of a stream.
#[derive(Debug)]
pub struct Ring {
    bytes_max: u64,
    time_max: Span,
    /// The number of the block to come; `u64::MAX` after the end.
    next: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    blocks: VecDeque<Arc<Block>>,
    bytes: u64,
}

impl Ring {
    /// An empty ring, bounded in bytes and in time.
    pub fn new(bytes_max: u64, time_max: Span) -> Self {
        Self { bytes_max, time_max, next: AtomicU64::new(0), kept: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a block, which gets its number here; those that are too old, or too many, leave.
    pub fn push(&self, block: Block) {
        let mut kept = self.lock();
        let number = self.next.load(Ordering::Acquire);
        if number == u64::MAX {
            return;
        }
        let at_ms = block.at_ms;
        kept.bytes += block.bytes.len() as u64;
        kept.blocks.push_back(Arc::new(Block { number, ..block }));
        let time_max_ms = self.time_max.as_micros() / 1_000;
        while let Some(first) = kept.blocks.front()
            && kept.blocks.len() > 1
            && (kept.bytes > self.bytes_max || at_ms.saturating_sub(first.at_ms) > time_max_ms)
        {
            kept.bytes -= first.bytes.len() as u64;
            kept.blocks.pop_front();
        }
        self.next.store(number + 1, Ordering::Release);
    }

    /// No block comes any more.
    pub fn end(&self) {
        let mut kept = self.lock();
        *kept = Kept::default();
        self.next.store(u64::MAX, Ordering::Release);
    }

    /// Whether [`Ring::end`] was called.
    pub fn is_over(&self) -> bool {
        self.next.load(Ordering::Acquire) == u64::MAX
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Makes `held`, a reader's copy, hold what the ring holds; takes the lock only when there is something new.
    pub fn copy_into(&self, held: &mut VecDeque<Arc<Block>>) -> bool {
        let next = self.next.load(Ordering::Acquire);
        if held.back().map_or(0, |block| block.number + 1) == next {
            return false;
        }
        let kept = self.lock();
        let Some(first) = kept.blocks.front().map(|block| block.number) else {
            held.clear();
            return true;
        };
        while held.front().is_some_and(|block| block.number < first) {
            held.pop_front();
        }
        let from = held.back().map_or(first, |block| block.number + 1);
        let skip = usize::try_from(from - first).unwrap_or(usize::MAX);
        held.extend(kept.blocks.iter().skip(skip).cloned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(ring: &Ring, len: usize, is_start: bool, at_ms: u64) {
        let bytes = vec![0; len].into();
        ring.push(Block { number: 0, bytes, is_start, at_ms, header: Arc::from([]), video: None });
    }

    fn numbers(held: &VecDeque<Arc<Block>>) -> Vec<u64> {
        held.iter().map(|block| block.number).collect()
    }

    #[test]
    fn it_holds_no_more_than_its_bounds() {
        let ring = Ring::new(1_000, Span::from_millis(500));
        for at in 0..100 {
            push(&ring, 100, at % 10 == 0, at * 10);
            assert!(ring.bytes() <= 1_000);
        }
        let mut held = VecDeque::new();
        assert!(ring.copy_into(&mut held) && !ring.copy_into(&mut held));
        assert_eq!(numbers(&held), (90..100).collect::<Vec<_>>());
        push(&ring, 1, false, 1_400);
        assert!(ring.copy_into(&mut held));
        assert_eq!(numbers(&held), (91..101).collect::<Vec<_>>());
        push(&ring, 1, false, 9_000);
        ring.copy_into(&mut held);
        assert_eq!(numbers(&held), [101]);
        push(&ring, 5_000, true, 9_001);
        ring.copy_into(&mut held);
        assert_eq!(numbers(&held), [102], "a block past the bound is alone");
    }

    #[test]
    fn a_reader_that_slept_for_long_has_what_is_there() {
        let ring = Ring::new(300, Span::from_millis(500));
        let mut held = VecDeque::new();
        push(&ring, 100, true, 0);
        ring.copy_into(&mut held);
        for at in 1..50 {
            push(&ring, 100, false, at);
        }
        assert!(ring.copy_into(&mut held));
        assert_eq!(numbers(&held), [47, 48, 49]);
        ring.end();
        assert!(ring.is_over() && ring.copy_into(&mut held) && held.is_empty());
        push(&ring, 100, true, 99);
        assert_eq!(ring.bytes(), 0);
    }
}
