//! Changes of this host's settings that can be undone: a journal that is durable before the first write, one write per setting, reading
//! back, an effect check, and undo that restores what was read and leaves alone what somebody else changed since.
//!
//! Every act goes through a [`Watch`], by which tests fail or kill it at each step.

mod change;
mod effect;
mod error;
mod journal;
mod persist;
mod planned;
mod scope;
mod state;
mod store;
mod target;
mod undo;

pub use change::{Options, apply, confirm};
pub use error::{ApplyError, Fault};
pub use journal::{Entry, Journal, TuneLog};
pub use persist::note_persisted;
pub use state::State;
pub use store::{Locked, Store};
pub use target::Target;
pub use undo::{Outcome, TuneRollback, Undone, rollback};

use std::io;

/// A step of an application or of its undo, in the order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The journal is about to be written to a temporary file.
    BeforeJournal,
    /// It is written and not yet synchronised.
    JournalWritten,
    /// It is synchronised and has not yet its name.
    JournalSynced,
    /// It has its name, which is durable.
    JournalDurable,
    /// The timer is about to be armed.
    BeforeTimer,
    /// A setting is about to be written.
    BeforeWrite(usize),
    /// It is written.
    AfterWrite(usize),
    /// It is about to be read back.
    BeforeReadBack(usize),
    /// The effect is about to be checked.
    BeforeEffect,
    /// A setting is about to be restored.
    BeforeRestore(usize),
    /// It is restored.
    AfterRestore(usize),
}

/// Told of each step before it is made; an error stops there as if the system call had failed.
pub trait Watch {
    /// About to make, or having made, this step.
    ///
    /// # Errors
    /// What the act is to fail with.
    fn at(&mut self, step: Step) -> io::Result<()>;
}

/// Lets everything happen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn at(&mut self, _: Step) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
