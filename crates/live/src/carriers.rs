//! Threads that slow paths share, one for each processor.
//!
//! What a slow path costs is waking its thread: one of 100 Mb/s has a packet each 120 µs. A shared thread wakes once for the packets of all its paths.

use crate::crew::Seat;
use std::sync::{Arc, Mutex, PoisonError};
use thalweg_host::HostError;

/// Threads that paths share. They start when they are needed, and end when this and the paths have.
#[derive(Debug, Clone, Default)]
pub struct Carriers {
    shared: Arc<Mutex<Vec<Seat>>>,
}

impl Carriers {
    /// A place at the shared thread with the fewest carriers; a new thread as long as there are fewer than processors.
    pub(crate) fn seat(&self) -> Result<Seat, HostError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        // Each carrier has the thread's waker, and so have the thread and this.
        let emptiest = shared.iter().min_by_key(|seat| Arc::strong_count(&seat.waker));
        match emptiest.filter(|seat| shared.len() >= processors || Arc::strong_count(&seat.waker) <= 2) {
            Some(seat) => Ok(seat.clone()),
            None => {
                let seat = Seat::alone("paths")?;
                shared.push(seat.clone());
                Ok(seat)
            }
        }
    }
}
