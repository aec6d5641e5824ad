//! A piece of media in memory that never changes, and a way into a socket for it that copies nothing.
//!
//! The pages go through a pipe (vmsplice) into the socket's queue (splice). It costs less than sendfile from a memory file, for which
//! the kernel looks up page after page, and needs no descriptor per segment.
//!
//! Source: mmap(2), vmsplice(2), splice(2), pipe(7) "Pipe capacity".

use crate::error::{HostError, wrap};
use crate::socket::Tcp;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, vmsplice};
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::IoSlice;
use std::ops::{Deref, Range};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

/// Bytes that nobody can change any more.
///
/// The memory, which the kernel counts as `RssShmem`, goes back when the last owner drops it; what the kernel has taken of it to send
/// keeps its own pages.
#[derive(Debug)]
pub struct Segment {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: the mapping is read-only for as long as others know of it.
unsafe impl Send for Segment {}
// SAFETY: as above: there is nothing that one thread could change under another.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a segment of `bytes`.
    ///
    /// # Errors
    /// When there are none, or no memory for them.
    pub fn seal(bytes: &[u8]) -> Result<Self, HostError> {
        let len = bytes.len();
        let act = || format!("take {len} bytes of memory for a segment");
        // Shared, so that the kernel counts media apart from the program's own memory (`RssShmem`, not `RssAnon`).
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the kernel chooses the place of a mapping that is new.
        let start = wrap(unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, flags) }.map_err(Into::into), act)?;
        // Whatever follows, the mapping has an owner.
        let start = NonNull::new(start).expect("invariant: a mapping the kernel places is not at zero");
        let segment = Self { start, len };
        // SAFETY: the mapping has this length, and nobody else knows of it yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.as_ptr().cast(), len) };
        // SAFETY: the mapping is ours, and nothing has a reference into it.
        let sealed = unsafe { mprotect(start.as_ptr(), len, MprotectFlags::READ) };
        wrap(sealed.map_err(Into::into), act)?;
        Ok(segment)
    }
}

impl Deref for Segment {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the mapping has this length, lives as long as `self`, and nobody can change it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: this mapping is ours, and no slice of it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
    }
}

/// What a thread sends segments through, one part after another.
#[derive(Debug)]
pub struct SplicePipe {
    from: OwnedFd,
    into: OwnedFd,
    /// Where what a socket had no room for goes, and how much of it there is.
    nowhere: File,
    left: usize,
    most: usize,
}

impl SplicePipe {
    /// What it is to hold: from here on each system call's own cost is lost in that of the pages.
    const WANTED: usize = 256 << 10;

    /// An empty one.
    ///
    /// # Errors
    /// When no descriptor is left, or there is no `/dev/null`.
    pub fn new() -> Result<Self, HostError> {
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (from, into) = wrap(pipe_with(flags).map_err(Into::into), || "make a pipe".to_owned())?;
        let nowhere = wrap(OpenOptions::new().write(true).open("/dev/null"), || "open /dev/null".to_owned())?;
        // A user whose pipes hold much already gets no larger one, and has 64 KiB.
        let most = fcntl_setpipe_size(&into, Self::WANTED).unwrap_or(64 << 10);
        Ok(Self { from, into, nowhere, left: 0, most })
    }

    /// Sends of the `range` of `segment` as much as one call can (256 KiB); returns how many bytes the kernel took, `None` when the
    /// socket's buffer is full. Where the kernel refuses to take pages (a seccomp filter, another kernel) it copies them.
    ///
    /// # Errors
    /// When the connection is broken.
    ///
    /// # Panics
    /// When the range is not within the segment.
    pub fn send(&mut self, to: &Tcp, segment: &Segment, range: Range<usize>) -> Result<Option<usize>, HostError> {
        self.empty()?;
        let part = &segment[range];
        let part = &part[..part.len().min(self.most)];
        // SAFETY: the pages are a segment's, which never changes; they stay the kernel's until sent though the segment be dropped.
        let held = unsafe { vmsplice(&self.into, &[IoSliceRaw::from_slice(part)], SpliceFlags::NONBLOCK) };
        let Ok(held) = held else { return to.send_parts(&[IoSlice::new(part)]) };
        let sent = splice(&self.from, None, to, None, held, SpliceFlags::NONBLOCK);
        self.left = held - *sent.as_ref().unwrap_or(&0);
        match sent {
            Ok(sent) => Ok(Some(sent)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(HostError { act: "send a segment".to_owned(), source: error.into() }),
        }
    }

    /// Throws away what a socket did not take: the next one is somebody else's.
    fn empty(&mut self) -> Result<(), HostError> {
        while self.left > 0 {
            let gone = splice(&self.from, None, &self.nowhere, None, self.left, SpliceFlags::NONBLOCK);
            self.left -= wrap(gone.map_err(Into::into), || "empty a pipe".to_owned())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use thalweg_model::SocketSettings;

    fn pair() -> (Tcp, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let SocketAddr::V4(address) = listener.local_addr().expect("an address") else { unreachable!("asked for") };
        let near = Tcp::connect(address, &SocketSettings::default()).expect("connecting");
        let (far, _) = listener.accept().expect("taken");
        near.connected().expect("connected");
        (near, far)
    }

    #[test]
    fn it_is_what_it_was_made_of() {
        let segment = Segment::seal(b"one two").expect("made");
        let there = std::thread::spawn(move || segment.to_vec()).join().expect("read elsewhere");
        assert_eq!(there, b"one two");
        assert!(Segment::seal(b"").is_err());
    }

    #[test]
    fn nobody_can_write_to_it() {
        let segment = Segment::seal(&[7; 5_000]).expect("made");
        let (mut near, far) = std::os::unix::net::UnixStream::pair().expect("made");
        near.write_all(b"x").expect("sent");
        // The kernel is asked to write there, and may not.
        // SAFETY: the length is the segment's first byte, and the kernel checks that it may be written to.
        let got = unsafe { libc::read(std::os::fd::AsRawFd::as_raw_fd(&far), segment.as_ptr() as *mut c_void, 1) };
        assert_eq!((got, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EFAULT)));
        assert_eq!(segment[0], 7);
    }

    #[test]
    fn what_one_socket_had_no_room_for_does_not_go_to_the_next() {
        let bytes: Vec<u8> = (0..20_000_000u32).map(|i| (i % 251) as u8).collect();
        let segment = Segment::seal(&bytes).expect("made");
        let mut pipe = SplicePipe::new().expect("made");
        let (full, mut far) = pair();
        let mut at = 0;
        while at < bytes.len()
            && let Some(sent) = pipe.send(&full, &segment, at..bytes.len()).expect("sent")
        {
            at += sent;
        }
        assert!(at > 0 && at < bytes.len(), "{at} of a segment fitted into a socket nobody reads from");
        let (other, mut other_far) = pair();
        assert_eq!(pipe.send(&other, &segment, 5_000..5_100).expect("sent"), Some(100));
        // What the kernel has taken stays as it was though the segment goes.
        drop((segment, other, full, pipe));
        let mut got = Vec::new();
        other_far.read_to_end(&mut got).expect("read");
        assert_eq!(got, bytes[5_000..5_100]);
        got.clear();
        far.read_to_end(&mut got).expect("read");
        assert!(got == bytes[..at], "other bytes than were sent");
    }

    #[test]
    fn a_broken_connection_is_told_of_and_leaves_nothing_behind() {
        let segment = Segment::seal(&[1; 100_000]).expect("made");
        let mut pipe = SplicePipe::new().expect("made");
        let (near, far) = pair();
        near.finish().expect("shut");
        assert!(pipe.send(&near, &segment, 0..100_000).is_err());
        drop(far);
        let (near, mut far) = pair();
        assert_eq!(pipe.send(&near, &segment, 99_990..100_000).expect("sent"), Some(10));
        drop(near);
        let mut got = Vec::new();
        far.read_to_end(&mut got).expect("read");
        assert_eq!(got, [1; 10]);
    }

    #[test]
    fn where_pages_are_refused_they_are_copied() {
        let segment = Segment::seal(b"one two").expect("made");
        let mut pipe = SplicePipe::new().expect("made");
        pipe.into = OpenOptions::new().write(true).open("/dev/null").expect("opened").into();
        let (near, mut far) = pair();
        assert_eq!(pipe.send(&near, &segment, 4..7).expect("sent"), Some(3));
        drop(near);
        let mut got = String::new();
        far.read_to_string(&mut got).expect("read");
        assert_eq!(got, "two");
    }

    #[test]
    fn memory_comes_back() {
        let some: Vec<_> = (0..50).map(|_| Segment::seal(&[7; 100_000]).expect("made")).collect();
        let starts: Vec<_> = some.iter().map(|segment| segment.start.as_ptr()).collect();
        drop(some);
        let mapped = |start: &&*mut c_void| {
            // SAFETY: msync(2) of memory that is not mapped changes nothing and says so.
            unsafe { libc::msync(**start, 4_096, libc::MS_ASYNC) == 0 }
        };
        let others = starts.iter().filter(mapped).count();
        assert!(others < 25, "{others} of 50 are still mapped, more than other threads can have taken since");
    }
}
