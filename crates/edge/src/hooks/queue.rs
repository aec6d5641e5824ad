//! What waits for a thread to take it, bounded.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    /// Taken and not done.
    busy: usize,
    is_closed: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State { waiting: VecDeque::new(), busy: 0, is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, unless `most` wait already.
    pub(super) fn push(&self, value: T, most: usize) -> bool {
        let mut state = self.lock();
        if state.is_closed || state.waiting.len() >= most {
            return false;
        }
        state.waiting.push_back(value);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Takes the oldest one; `None` when none will come any more. What is taken is done when [`Queue::done`] says so.
    pub(super) fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(value) = state.waiting.pop_front() {
                state.busy += 1;
                return Some(value);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn done(&self) {
        self.lock().busy -= 1;
        self.changed.notify_all();
    }

    /// Drops what waits, and lets nothing in.
    pub(super) fn close(&self) -> usize {
        let mut state = self.lock();
        state.is_closed = true;
        let left = state.waiting.len();
        state.waiting.clear();
        self.changed.notify_all();
        left
    }

    /// Waits until all is done, for `within` at most, and closes. Returns how many were left.
    pub(super) fn drain(&self, within: Duration) -> usize {
        let until = Instant::now() + within;
        let mut state = self.lock();
        while state.busy > 0 || !state.waiting.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let busy = state.busy;
        drop(state);
        busy + self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_drained() {
        let queue = Queue::default();
        assert!(queue.push(1, 2) && queue.push(2, 2) && !queue.push(3, 2));
        assert_eq!(queue.pop(), Some(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                queue.done();
                assert_eq!(queue.pop(), Some(2));
                queue.done();
                assert_eq!(queue.pop(), None);
            });
            assert_eq!(queue.drain(Duration::from_secs(10)), 0);
        });
        assert!(!queue.push(4, 2));
        let queue = Queue::default();
        assert!(queue.push(1, 2) && queue.push(2, 2) && queue.pop() == Some(1));
        assert_eq!(queue.drain(Duration::from_millis(10)), 2, "one is being told, one waits");
    }
}
