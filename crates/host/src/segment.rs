//! A piece of media in memory that never changes: a sealed memory file, sent by the kernel without a copy or read in place.
//!
//! Source: memfd_create(2), fcntl(2) "File Sealing", mmap(2).

use crate::error::{HostError, wrap};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io::Write;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;

/// Bytes that nobody can change any more, once as a file and once as memory; both are the same pages.
///
/// The memory goes back when the last owner drops it; a send that the kernel has begun keeps its own pages.
#[derive(Debug)]
pub struct Segment {
    file: File,
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: the mapping is read-only for as long as it lives, and the file's seals forbid every change of its bytes and length.
unsafe impl Send for Segment {}
// SAFETY: as above: there is nothing that one thread could change under another.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a segment of `parts`, one after the other; `name` is what `/proc/*/maps` shows.
    ///
    /// # Errors
    /// When `parts` hold nothing, or the kernel gives no descriptor or memory.
    pub fn seal(name: &str, parts: &[&[u8]]) -> Result<Self, HostError> {
        let act = || format!("make the memory file {name}");
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(wrap(memfd_create(name, flags).map_err(Into::into), act)?);
        for part in parts {
            wrap(file.write_all(part), act)?;
        }
        let len = parts.iter().map(|part| part.len()).sum();
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        wrap(fcntl_add_seals(&file, seals).map_err(Into::into), act)?;
        // Private, since kernels before 6.7 refuse even a read-only shared mapping of a file that is sealed against writing;
        // without a write the pages stay the file's own.
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the place; the file cannot shrink any more, so that every page of the mapping is there.
        let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, &file, 0) };
        let start = wrap(start.map_err(Into::into), act)?;
        let start = NonNull::new(start).expect("invariant: a mapping the kernel places is not at zero");
        Ok(Self { file, start, len })
    }
}

impl Deref for Segment {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has this length, lives as long as `self`, and nobody can change it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and no slice of it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_was_written_and_cannot_change() {
        let segment = Segment::seal("a-segment", &[b"one ", b"two"]).expect("made");
        assert_eq!(&*segment, b"one two");
        let mut again = File::from(segment.as_fd().try_clone_to_owned().expect("cloned"));
        assert_eq!(again.write(b"x").expect_err("sealed").raw_os_error(), Some(libc::EPERM));
        assert!(again.set_len(1).is_err() && again.set_len(100).is_err());
        drop(again);
        let there = std::thread::spawn(move || segment.to_vec()).join().expect("read elsewhere");
        assert_eq!(there, b"one two");
    }

    #[test]
    fn an_empty_one_is_refused() {
        assert!(Segment::seal("empty", &[b"", b""]).is_err());
    }

    #[test]
    fn descriptors_and_memory_come_back() {
        let count = || std::fs::read_dir("/proc/self/fd").expect("listed").count();
        let maps = || std::fs::read_to_string("/proc/self/maps").expect("read").matches("comes-back").count();
        let before = count();
        let some: Vec<_> = (0..50).map(|_| Segment::seal("comes-back", &[&[7; 100_000]]).expect("made")).collect();
        assert!(maps() >= 1 && count() >= before + 50);
        drop(some);
        // Other tests open files of their own meanwhile.
        assert!(maps() == 0 && count() < before + 50);
    }
}
