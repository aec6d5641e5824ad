//! Waiting for many descriptors at once, and being woken by another thread.
//!
//! Source: epoll(7), eventfd(2).

use crate::error::{HostError, wrap};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd};
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Something that happened to a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// What the descriptor was added with.
    pub token: u64,
    /// There may be bytes, or the end, to read.
    pub readable: bool,
    /// There may be room to write.
    pub writable: bool,
    /// Both directions are over, or the connection is broken (`EPOLLHUP`, `EPOLLERR`).
    pub hung_up: bool,
}

/// A set of descriptors to wait for.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

impl AsFd for Poller {
    /// Readable when something has happened.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Most descriptors that one wait returns.
const BATCH: usize = 256;

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub fn new() -> Result<Self, HostError> {
        let epoll = wrap(epoll::create(CreateFlags::CLOEXEC).map_err(Into::into), || "make an epoll".to_owned())?;
        Ok(Self { epoll })
    }

    /// Reports `source` whenever it has become readable or writable since the last report (edge-triggered). It leaves the set
    /// when it is closed.
    ///
    /// # Errors
    /// When the kernel has no room for it.
    pub fn add_edges(&self, source: impl AsFd, token: u64) -> Result<(), HostError> {
        self.add(source, token, EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET)
    }

    /// Reports `source` for as long as it is readable (level-triggered).
    ///
    /// # Errors
    /// When the kernel has no room for it.
    pub fn add_readable(&self, source: impl AsFd, token: u64) -> Result<(), HostError> {
        self.add(source, token, EventFlags::IN)
    }

    fn add(&self, source: impl AsFd, token: u64, flags: EventFlags) -> Result<(), HostError> {
        let added = epoll::add(&self.epoll, source, EventData::new_u64(token), flags);
        wrap(added.map_err(Into::into), || "watch a descriptor".to_owned())
    }

    /// No longer reports `source`.
    ///
    /// # Errors
    /// When it is not in the set.
    pub fn remove(&self, source: impl AsFd) -> Result<(), HostError> {
        wrap(epoll::delete(&self.epoll, source).map_err(Into::into), || "stop watching a descriptor".to_owned())
    }

    /// Waits until something happens, or for `most`, rounded up to a millisecond; a signal ends the wait, too. Adds what happened to `into`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&self, most: Option<Duration>, into: &mut Vec<Ready>) -> Result<(), HostError> {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; BATCH];
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        let events = match epoll::wait(&self.epoll, &mut events, most.as_ref()) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(HostError { act: "wait for descriptors".to_owned(), source: error.into() }),
        };
        into.extend(events.iter().map(|event| {
            let flags = event.flags;
            Ready {
                token: event.data.u64(),
                readable: flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
                writable: flags.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR),
                hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR),
            }
        }));
        Ok(())
    }
}

/// Waits until one of `sources` is readable, or for `most`; a signal ends the wait, too. Returns which are. How late the thread
/// wakes is up to [`wake_on_time`].
///
/// # Errors
/// When the kernel refuses.
pub fn wait_readable<const N: usize>(
    sources: [BorrowedFd<'_>; N],
    most: Option<Duration>,
) -> Result<[bool; N], HostError> {
    let mut sources = sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN));
    let waited = wait_for(&mut sources, most)?;
    Ok(sources.map(|source| waited && !source.revents().is_empty()))
}

/// Descriptors that a thread waits for again and again.
#[derive(Debug)]
pub struct Sources<'a> {
    polled: Vec<PollFd<'a>>,
}

impl<'a> Sources<'a> {
    /// These, in this order.
    pub fn new(sources: impl IntoIterator<Item = BorrowedFd<'a>>) -> Self {
        Self { polled: sources.into_iter().map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)).collect() }
    }

    /// Waits as [`wait_readable`] does; returns which are readable, in order.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&mut self, most: Option<Duration>) -> Result<impl Iterator<Item = bool>, HostError> {
        let waited = wait_for(&mut self.polled, most)?;
        Ok(self.polled.iter().map(move |source| waited && !source.revents().is_empty()))
    }
}

/// Whether it was no signal that ended the wait.
fn wait_for(sources: &mut [PollFd<'_>], most: Option<Duration>) -> Result<bool, HostError> {
    let most = most.and_then(|most| Timespec::try_from(most).ok());
    match rustix::event::poll(sources, most.as_ref()) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(HostError { act: "wait for descriptors".to_owned(), source: error.into() }),
    }
}

/// Makes the waits of this thread end when they are due; by default the kernel may wake it 50 µs later.
///
/// Source: `PR_SET_TIMERSLACK` in prctl(2).
pub fn wake_on_time() {
    // Without it the thread is late, and reports so.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Wakes a thread that waits in a [`Poller`].
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

impl Waker {
    /// A waker, to be added with [`Poller::add_readable`].
    ///
    /// # Errors
    /// When the kernel gives no descriptor.
    pub fn new() -> Result<Self, HostError> {
        let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { fd: wrap(made.map_err(Into::into), || "make an eventfd".to_owned())? })
    }

    /// Wakes it; any number of times before it looks wake it once.
    pub fn wake(&self) {
        // It can only fail when the counter is full, and then the thread is awake.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Forgets that it was woken.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn another_thread_wakes_it_once() {
        let poller = Poller::new().expect("made");
        let waker = Arc::new(Waker::new().expect("made"));
        poller.add_readable(&*waker, 7).expect("added");
        let mut ready = Vec::new();
        poller.wait(Some(Duration::ZERO), &mut ready).expect("waited");
        assert_eq!(ready, []);
        let other = Arc::clone(&waker);
        std::thread::spawn(move || (0..3).for_each(|_| other.wake())).join().expect("woken");
        poller.wait(None, &mut ready).expect("waited");
        assert_eq!(ready, [Ready { token: 7, readable: true, writable: false, hung_up: false }]);
        waker.clear();
        ready.clear();
        poller.wait(Some(Duration::ZERO), &mut ready).expect("waited");
        assert_eq!(ready, []);
    }
}
