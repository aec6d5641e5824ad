//! A thread that carries frames: it hands over what is due, takes in what waits, and sleeps in between.

use crate::busy_poll::BusyPoll;
use crate::carrier::{Carrier, Turn, between, since};
use crate::frame_pool::FramePool;
use crate::site::spawn;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::poll::{self, Poller, Ready, Waker};
use thalweg_host::tun::Tun;
use thalweg_units::Span;

/// After packets have left, a thread sleeps at least this long, so that a busy link's packets leave several at a time. It is
/// a quarter of the lateness that a path is allowed.
const SPACING: Span = Span::from_micros(25);
/// What a thread's waker is reported as; devices are reported by carrier and position.
const WAKER: u64 = u64::MAX;

/// A place at a thread.
#[derive(Clone)]
pub(crate) struct Seat {
    /// Wakes the thread: it looks at all it carries for.
    pub(crate) waker: Arc<Waker>,
    /// `None` when it is dropped.
    joining: Option<Sender<Joining>>,
}

/// What comes to a thread, and who is told how it ended.
type Joining = (Box<dyn Carrier>, Sender<Result<(), HostError>>);

impl Seat {
    /// A place at a thread of its own.
    pub(crate) fn alone(name: &'static str) -> Result<Self, HostError> {
        let (joining, joined) = channel();
        let waker = Arc::new(Waker::new()?);
        let crew = Crew::new(Arc::clone(&waker), joined)?;
        spawn(name, move || crew.run())?;
        Ok(Self { waker, joining: Some(joining) })
    }

    /// Carries frames until the carrier is over.
    pub(crate) fn carry(&self, carrier: impl Carrier + 'static) -> Carried {
        let (end, ended) = channel();
        // A thread that has failed drops what it is sent, and who waits learns of that.
        let _ = self.joining.as_ref().map(|joining| joining.send((Box::new(carrier), end)));
        self.waker.wake();
        Carried { ended: Mutex::new(ended) }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("waker", &self.waker).finish_non_exhaustive()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The thread looks whether this was the last one.
        self.joining = None;
        self.waker.wake();
    }
}

/// A carrier at work.
#[derive(Debug)]
pub(crate) struct Carried {
    /// In a mutex, so that threads may share a path.
    ended: Mutex<Receiver<Result<(), HostError>>>,
}

impl Carried {
    /// Waits until it is over and uses its devices no more.
    pub(crate) fn wait(self) -> Result<(), HostError> {
        let ended = self.ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        ended.recv().unwrap_or_else(|_| Err(failed("a thread failed")))
    }
}

fn failed(why: &'static str) -> HostError {
    HostError { act: "carry packets".to_owned(), source: io::Error::other(why) }
}

/// What one thread carries.
struct Crew {
    poller: Poller,
    waker: Arc<Waker>,
    joined: Receiver<Joining>,
    /// Nobody can join any more.
    is_closed: bool,
    /// A carrier's place is what its devices are reported by.
    members: Vec<Option<Member>>,
    pool: FramePool,
    ready: Vec<Ready>,
}

struct Member {
    carrier: Box<dyn Carrier>,
    devices: Vec<Arc<Tun>>,
    readable: Vec<bool>,
    due: Option<Instant>,
    end: Sender<Result<(), HostError>>,
}

impl Member {
    fn is_next(&self, now: Instant) -> bool {
        self.readable.contains(&true) || self.due.is_some_and(|due| due <= now)
    }

    /// A turn of the carrier; how it ended where it is over. One that panics ends alone: the thread carries for others, too.
    fn turn(&mut self, pool: &mut FramePool) -> ControlFlow<Result<(), HostError>, Turn> {
        if self.carrier.is_over() {
            return ControlFlow::Break(Ok(()));
        }
        match catch_unwind(AssertUnwindSafe(|| self.carrier.turn(&mut self.readable, pool))) {
            Ok(Ok(turn)) => {
                self.due = turn.due;
                ControlFlow::Continue(turn)
            }
            Ok(Err(error)) => ControlFlow::Break(Err(error)),
            Err(_) => ControlFlow::Break(Err(failed("the path or switch panicked"))),
        }
    }
}

impl Crew {
    fn new(waker: Arc<Waker>, joined: Receiver<Joining>) -> Result<Self, HostError> {
        let poller = Poller::new()?;
        poller.add_readable(&*waker, WAKER)?;
        Ok(Self {
            poller,
            waker,
            joined,
            is_closed: false,
            members: Vec::new(),
            pool: FramePool::default(),
            ready: Vec::new(),
        })
    }

    /// Carries until nobody can join and nothing is left to carry.
    ///
    /// # Errors
    /// When the kernel lets the thread wait no more; those who wait for an end learn of it as their senders are dropped.
    fn run(mut self) -> Result<(), HostError> {
        poll::wake_on_time();
        let mut busy_poll = BusyPoll::default();
        let epoch = Instant::now();
        // Nothing more is handed over before this time.
        let mut earliest = Span::ZERO;
        let mut is_woken = true;
        loop {
            if is_woken {
                self.admit();
            }
            let turn = self.turns(is_woken);
            if self.is_over() {
                return Ok(());
            }
            is_woken = false;
            let now = || since(epoch);
            if turn.has_released {
                earliest = now() + SPACING;
            }
            let due = turn.due.map(|due| between(epoch, due).max(earliest));
            if self.any_readable() || due.is_some_and(|due| due <= now()) {
                continue;
            }
            busy_poll.wait(due, now, |most| {
                let [has_come] = poll::wait_readable([self.poller.as_fd()], most)?;
                if has_come {
                    is_woken |= self.look()?;
                }
                Ok(has_come)
            })?;
        }
    }

    fn is_over(&self) -> bool {
        self.is_closed && self.members.iter().all(Option::is_none)
    }

    fn any_readable(&self) -> bool {
        self.members.iter().flatten().any(|member| member.readable.contains(&true))
    }

    /// Takes in those who wait to be carried for.
    fn admit(&mut self) {
        loop {
            match self.joined.try_recv() {
                Ok((carrier, end)) => self.join(carrier, end),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.is_closed = true;
                    return;
                }
            }
        }
    }

    fn join(&mut self, carrier: Box<dyn Carrier>, end: Sender<Result<(), HostError>>) {
        let devices = carrier.devices();
        let place = self.members.iter().position(Option::is_none).unwrap_or(self.members.len());
        for (at, device) in devices.iter().enumerate() {
            if let Err(error) = self.poller.add_readable(&**device, token(place, at)) {
                // The starter may have gone.
                let _ = end.send(Err(error));
                devices[..at].iter().for_each(|device| drop(self.poller.remove(&**device)));
                return;
            }
        }
        let member = Member { carrier, readable: vec![true; devices.len()], devices, due: None, end };
        if place == self.members.len() {
            self.members.push(None);
        }
        self.members[place] = Some(member);
    }

    /// One turn of each carrier that is due, has something to read, or may have been changed; what they did, and what is next of all.
    fn turns(&mut self, is_woken: bool) -> Turn {
        let now = Instant::now();
        let mut all = Turn::default();
        for place in &mut self.members {
            let Some(member) = place else { continue };
            if !is_woken && !member.is_next(now) {
                all = all.and(Turn { has_released: false, due: member.due });
                continue;
            }
            match member.turn(&mut self.pool) {
                ControlFlow::Continue(turn) => all = all.and(turn),
                ControlFlow::Break(result) => {
                    member.devices.iter().for_each(|device| drop(self.poller.remove(&**device)));
                    let end = member.end.clone();
                    // Whoever waits may close the devices then.
                    *place = None;
                    let _ = end.send(result);
                }
            }
        }
        all
    }

    /// Sees which devices are readable; returns whether the thread was woken.
    fn look(&mut self) -> Result<bool, HostError> {
        let mut is_woken = false;
        self.poller.wait(Some(Duration::ZERO), &mut self.ready)?;
        for ready in self.ready.drain(..) {
            if ready.token == WAKER {
                self.waker.clear();
                is_woken = true;
            } else if let Some(Some(member)) = self.members.get_mut((ready.token >> 32) as usize) {
                member.readable[ready.token as u32 as usize] = true;
            }
        }
        Ok(is_woken)
    }
}

/// What a device of a carrier is reported as.
fn token(place: usize, device: usize) -> u64 {
    (place as u64) << 32 | device as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many turns, then panics or is over.
    struct Counted {
        turns: u32,
        panics: bool,
    }

    impl Carrier for Counted {
        fn devices(&self) -> Vec<Arc<Tun>> {
            Vec::new()
        }

        fn is_over(&self) -> bool {
            self.turns == 0 && !self.panics
        }

        fn turn(&mut self, _: &mut [bool], _: &mut FramePool) -> Result<Turn, HostError> {
            assert_ne!(self.turns, 0, "the panic that this test makes");
            self.turns -= 1;
            Ok(Turn { has_released: false, due: Some(Instant::now()) })
        }
    }

    #[test]
    fn a_carrier_that_panics_ends_alone() {
        let seat = Seat::alone("crew test").expect("a thread");
        let [sound, panics, later] =
            [(1_000, false), (10, true), (2_000, false)].map(|(turns, panics)| seat.carry(Counted { turns, panics }));
        let error = panics.wait().expect_err("it panicked");
        assert!(error.to_string().contains("panicked"), "{error}");
        sound.wait().expect("it goes on");
        later.wait().expect("it goes on");
        seat.carry(Counted { turns: 3, panics: false }).wait().expect("the thread takes others in");
    }
}
