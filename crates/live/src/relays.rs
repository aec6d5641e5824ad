//! How many connections are passed on between the far end and this host, and for how many of them the program may still have
//! something on the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Connections passed on at a time; each takes two threads.
const RELAYS_MAX: usize = 1_000;

/// Which side a connection was accepted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The program behind the path opened it.
    Program,
    /// Somebody on this host opened it.
    Outside,
}

/// The connections of a path that are passed on.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    counts: Mutex<Counts>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections.
    open: usize,
    /// Those whose program has not ended its side, or not all of it has been passed on.
    sending: usize,
}

impl Relays {
    /// Counts a connection until the result is dropped; `None` where there are too many.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Relay> {
        let mut counts = self.counts();
        if counts.open >= RELAYS_MAX {
            return None;
        }
        counts.open += 1;
        counts.sending += 1;
        Some(Relay { of: Arc::clone(self), is_sending: AtomicBool::new(true) })
    }

    /// Waits until all that programs sent has been passed on, `until` at most.
    pub(crate) fn drain(&self, until: Instant) {
        let left = || until.checked_duration_since(Instant::now()).unwrap_or(Duration::ZERO);
        let is_sending = |counts: &mut Counts| counts.sending > 0;
        // Poisoned or late: the path ends all the same.
        let _ = self.changed.wait_timeout_while(self.counts(), left(), is_sending);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A connection that is passed on.
#[derive(Debug)]
pub(crate) struct Relay {
    of: Arc<Relays>,
    is_sending: AtomicBool,
}

impl Relay {
    /// All that the program sent on it has been passed on.
    pub(crate) fn program_ended(&self) {
        if self.is_sending.swap(false, Ordering::SeqCst) {
            self.of.counts().sending -= 1;
            self.of.changed.notify_all();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.program_ended();
        self.of.counts().open -= 1;
    }
}
