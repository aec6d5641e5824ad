//! A value that one thread replaces whole and many read without a lock, unless it has changed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A shared value with a version.
#[derive(Debug)]
pub struct Cell<T> {
    version: AtomicU64,
    value: Mutex<Arc<T>>,
}

impl<T> Cell<T> {
    /// A cell with its first value.
    pub fn new(value: T) -> Self {
        Self { version: AtomicU64::new(1), value: Mutex::new(Arc::new(value)) }
    }

    /// The version and the value.
    pub fn get(&self) -> (u64, Arc<T>) {
        let value = self.lock();
        (self.version.load(Ordering::Acquire), Arc::clone(&value))
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        *self.lock() = Arc::new(value);
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// Derives a new value, where there is one, and an answer from the present one; nobody replaces it meanwhile.
    pub fn change<R>(&self, derive: impl FnOnce(&T) -> (Option<T>, R)) -> R {
        let mut value = self.lock();
        let (new, answer) = derive(&value);
        if let Some(new) = new {
            *value = Arc::new(new);
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        answer
    }

    // A panic elsewhere leaves a whole value: it is only ever replaced.
    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader's own hold on a cell's value.
#[derive(Debug)]
pub struct View<T> {
    version: u64,
    value: Arc<T>,
}

impl<T> View<T> {
    /// The present value.
    pub fn of(cell: &Cell<T>) -> Self {
        let (version, value) = cell.get();
        Self { version, value }
    }

    /// The present value; takes the cell's lock only when there is a newer one, and says whether there was.
    pub fn refresh(&mut self, cell: &Cell<T>) -> bool {
        if cell.version.load(Ordering::Acquire) == self.version {
            return false;
        }
        (self.version, self.value) = cell.get();
        true
    }

    /// The value held.
    pub fn value(&self) -> &Arc<T> {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_sees_what_is_newest_once() {
        let cell = Cell::new(1);
        let mut view = View::of(&cell);
        assert!(!view.refresh(&cell) && **view.value() == 1);
        cell.set(2);
        assert!(view.refresh(&cell) && !view.refresh(&cell));
        assert_eq!(cell.change(|value| (Some(value + 1), "changed")), "changed");
        assert!(view.refresh(&cell) && **view.value() == 3);
        cell.change(|_| (None, ()));
        assert!(!view.refresh(&cell));
    }
}
