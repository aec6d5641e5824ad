//! Descriptor tables. Threads of a process share one, unless a thread gets its own: the limit of descriptors
//! (`RLIMIT_NOFILE`) counts for each table alone.
//!
//! Source: unshare(2) `CLONE_FILES`, close_range(2), getrlimit(2).

use crate::error::{HostError, check, wrap};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Raises this process's limit of descriptors to the most it may have; what that is, for each table.
///
/// # Errors
/// When the kernel refuses.
pub fn raise_limit() -> Result<u64, HostError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        wrap(raised.map_err(Into::into), || "raise RLIMIT_NOFILE".to_owned())?;
    }
    Ok(maximum.unwrap_or(u64::MAX))
}

/// Gives the calling thread a table of its own. Of the present one it has the standard streams and `keep`, under the same
/// numbers; all others it must not use, nor drop: open what it needs after this. What it opens is for this thread alone.
///
/// Signal handlers use descriptors of the table they were made in, so no signal is handled in this thread any more.
///
/// # Errors
/// When the kernel refuses (close_range(2) came with 5.9); the thread goes on with the table it had.
pub fn own(keep: &[BorrowedFd<'_>]) -> Result<(), HostError> {
    let mut kept: Vec<u32> = [0, 1, 2].into_iter().chain(keep.iter().map(|fd| fd.as_raw_fd() as u32)).collect();
    kept.sort_unstable();
    let mut before = std::mem::MaybeUninit::uninit();
    // SAFETY: both sets are this function's, and the first is filled before it is used.
    let blocked = unsafe {
        let mut all = std::mem::MaybeUninit::uninit();
        libc::sigfillset(all.as_mut_ptr());
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr())
    };
    if blocked != 0 {
        let source = std::io::Error::from_raw_os_error(blocked);
        return Err(HostError { act: "block signals in a thread".to_owned(), source });
    }
    let last = kept.last().map_or(0, |last| last + 1);
    let act = || "give a thread a descriptor table of its own".to_owned();
    // The table is copied without what is closed at once.
    if let Err(error) = close(last, u32::MAX, libc::CLOSE_RANGE_UNSHARE, act) {
        // SAFETY: the set was filled above.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
        return Err(error);
    }
    for pair in kept.windows(2).filter(|pair| pair[1] > pair[0] + 1) {
        close(pair[0] + 1, pair[1] - 1, 0, act)?;
    }
    Ok(())
}

fn close(first: u32, last: u32, flags: libc::c_uint, act: impl FnOnce() -> String) -> Result<(), HostError> {
    // SAFETY: no pointers. Without CLOSE_RANGE_UNSHARE it is called where the table is this thread's alone; what it closes there is
    // a copy, and stays open for its owner. That the thread uses none of it is the promise in `own`; a number used in spite of it
    // names no descriptor, or another one of this thread's.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } as libc::c_int, act).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Poller, Waker};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Descriptors of the calling thread's table.
    fn count() -> usize {
        // One is the folder's own.
        std::fs::read_dir("/proc/thread-self/fd").expect("listed").count() - 1
    }

    #[test]
    fn a_thread_has_its_own_and_is_still_woken() {
        let elsewhere: Vec<File> = (0..20).map(|_| File::open("/dev/null").expect("opened")).collect();
        let waker = Arc::new(Waker::new().expect("made"));
        let (tell, told) = channel();
        let shared = Arc::clone(&waker);
        let thread = std::thread::spawn(move || {
            own(&[shared.as_fd()]).expect("a table");
            let at_first = count();
            let poller = Poller::new().expect("made");
            poller.add_readable(&*shared, 1).expect("added");
            let mine: Vec<File> = (0..100).map(|_| File::open("/dev/zero").expect("opened")).collect();
            tell.send((at_first, count())).expect("told");
            let mut ready = Vec::new();
            poller.wait(Some(Duration::from_secs(10)), &mut ready).expect("waited");
            shared.clear();
            (mine.len(), ready.len())
        });
        let (at_first, then) = told.recv().expect("told");
        assert_eq!((at_first, then), (4, 105));
        waker.wake();
        assert_eq!(thread.join().expect("well"), (100, 1));
        for file in &elsewhere {
            assert!(file.metadata().is_ok(), "what others have stays open");
        }
    }

    #[test]
    fn no_signal_is_handled_there() {
        let blocked = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").expect("read");
            let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).expect("a mask").to_owned();
            u64::from_str_radix(&line, 16).expect("hexadecimal")
        };
        let before = blocked();
        let there = std::thread::spawn(move || own(&[]).map(|()| blocked())).join().expect("well").expect("a table");
        let bit = |signal: i32| 1u64 << (signal - 1);
        assert!(there & bit(libc::SIGTERM) != 0 && there & bit(libc::SIGHUP) != 0 && there & bit(libc::SIGSEGV) == 0);
        assert_eq!(blocked(), before);
    }

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        let most = raise_limit().expect("raised");
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), most);
    }
}
