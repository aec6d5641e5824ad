//! A map's values as memory of this process: read without a system call, while programs write them.

use super::map::Map;
use crate::error::{HostError, check};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The value of a [`Map::shared`], mapped.
#[derive(Debug)]
pub(super) struct Mapped {
    memory: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to this alone and is reached by atomic operations only.
unsafe impl Send for Mapped {}

impl Mapped {
    /// Maps the value, of `len` bytes.
    pub(super) fn of(map: &Map, len: usize) -> Result<Self, HostError> {
        assert_eq!(len % size_of::<u64>(), 0, "invariant: a value is a number of words");
        // SAFETY: a fresh mapping of a length that the kernel checks against the map's; unmapped on drop.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, map.as_fd().as_raw_fd(), 0)
        };
        check(if memory == libc::MAP_FAILED { -1 } else { 0 }, || "map a map's values".to_owned())?;
        Ok(Self { memory: memory.cast(), len })
    }

    /// The number at that word.
    pub(super) fn get(&self, word: usize) -> u64 {
        self.word(word).load(Ordering::Acquire)
    }

    /// Writes the number at that word.
    pub(super) fn set(&self, word: usize, number: u64) {
        self.word(word).store(number, Ordering::Release);
    }

    fn word(&self, word: usize) -> &AtomicU64 {
        assert!(word < self.len / size_of::<u64>(), "invariant: the word is within the value");
        // SAFETY: the word lies within the mapping, which begins at a page, so it is aligned; programs write it at the same
        // time, hence atomic.
        unsafe { AtomicU64::from_ptr(self.memory.cast::<u64>().add(word)) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `of` with this length and nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.cast(), self.len) };
    }
}
