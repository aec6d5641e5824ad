//! A piece of media in memory that never changes: a sealed memory file, sent by the kernel without a copy or read in place.
//!
//! Source: memfd_create(2), fcntl(2) "File Sealing", mmap(2).

use crate::error::{HostError, wrap};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// Bytes that nobody can change any more, once as a file and once as memory; both are the same pages.
///
/// The memory goes back when the last owner drops it; a send that the kernel has begun keeps its own pages. It holds no
/// descriptor, so that threads with tables of their own may share it; each opens its own ([`Segment::open`]).
#[derive(Debug)]
pub struct Segment {
    start: NonNull<c_void>,
    len: usize,
    /// The number its file has in the table it was made in, and which file that is.
    number: i32,
    is: (u64, u64),
}

/// A segment's file, in the table it was made in; a segment can be opened for as long as this is there.
#[derive(Debug)]
pub struct SegmentFile(File);

/// A segment's file, open in the table of one thread, which it cannot leave.
#[derive(Debug)]
pub struct OpenSegment {
    file: OwnedFd,
    stays: PhantomData<*const ()>,
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
    pub fn seal(name: &str, parts: &[&[u8]]) -> Result<(Self, SegmentFile), HostError> {
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
        let is = wrap(which(&file), act)?;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        // SAFETY: the kernel chooses the place; the file cannot shrink any more, so that every page of the mapping is there.
        let start = unsafe { mmap(std::ptr::null_mut(), len, ProtFlags::READ, flags, &file, 0) };
        let start = wrap(start.map_err(Into::into), act)?;
        let start = NonNull::new(start).expect("invariant: a mapping the kernel places is not at zero");
        Ok((Self { start, len, number: file.as_raw_fd(), is }, SegmentFile(file)))
    }

    /// Opens its file in the calling thread's table; `None` where that cannot be, because its [`SegmentFile`] has gone, no descriptor
    /// is left, or there is no `/proc`: the memory is still there.
    pub fn open(&self) -> Option<OpenSegment> {
        // The table of the process's first thread. Threads of one process may look at each other: ptrace(2), "access mode checking".
        let path = format!("/proc/self/fd/{}", self.number);
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        // Its number may be another file's by now.
        (which(&file).ok()? == self.is).then_some(OpenSegment { file, stays: PhantomData })
    }
}

/// The device and number of a file.
fn which(file: impl AsFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(file)?;
    Ok((stat.st_dev, stat.st_ino))
}

impl Deref for Segment {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has this length, lives as long as `self`, and nobody can change it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }
}

impl AsFd for SegmentFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for OpenSegment {
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
    use crate::table;
    use std::io::Read;

    #[test]
    fn it_is_what_was_written_and_cannot_change() {
        let (segment, file) = Segment::seal("a-segment", &[b"one ", b"two"]).expect("made");
        assert_eq!(&*segment, b"one two");
        let mut again = File::from(file.as_fd().try_clone_to_owned().expect("cloned"));
        assert_eq!(again.write(b"x").expect_err("sealed").raw_os_error(), Some(libc::EPERM));
        assert!(again.set_len(1).is_err() && again.set_len(100).is_err());
        drop((again, file));
        let there = std::thread::spawn(move || segment.to_vec()).join().expect("read elsewhere");
        assert_eq!(there, b"one two");
    }

    #[test]
    fn an_empty_one_is_refused() {
        assert!(Segment::seal("empty", &[b"", b""]).is_err());
    }

    #[test]
    fn a_thread_with_a_table_of_its_own_opens_it() {
        let (segment, file) = Segment::seal("elsewhere", &[b"here and there"]).expect("made");
        let (segment, file) = std::thread::spawn(move || {
            table::own(&[]).expect("a table");
            let open = segment.open().expect("opened");
            let mut text = String::new();
            File::from(open.file).read_to_string(&mut text).expect("read");
            assert_eq!(text, "here and there");
            (segment, file)
        })
        .join()
        .expect("well");
        assert!(segment.open().is_some());
        drop(file);
        // Whatever has its number now is not taken for it.
        let _other = File::open("/dev/null").expect("opened");
        assert!(segment.open().is_none());
    }

    #[test]
    fn descriptors_and_memory_come_back() {
        let is_ours = |entry: std::fs::DirEntry| {
            std::fs::read_link(entry.path()).is_ok_and(|path| path.to_string_lossy().contains("comes-back"))
        };
        let count =
            || std::fs::read_dir("/proc/self/fd").expect("listed").flatten().map(is_ours).filter(|&is| is).count();
        let maps = || std::fs::read_to_string("/proc/self/maps").expect("read").matches("comes-back").count();
        let some: Vec<_> = (0..50).map(|_| Segment::seal("comes-back", &[&[7; 100_000]]).expect("made")).collect();
        assert!(maps() >= 1 && count() == 50);
        drop(some);
        assert_eq!((maps(), count()), (0, 0));
    }
}
