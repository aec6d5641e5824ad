//! Applying a plan, and confirming it.

use crate::error::{ApplyError, Fault};
use crate::journal::Journal;
use crate::planned::entries;
use crate::scope::{boot_id, namespace};
use crate::state::State;
use crate::store::Locked;
use crate::target::Target;
use crate::undo::undo;
use crate::{Step, Watch, effect};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use thalweg_model::TunePlan;

/// How a plan is applied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Undone after this many seconds unless it is confirmed.
    pub confirm_within_s: Option<u64>,
}

/// Applies a plan: the journal, the timer, each write, reading back, the effect. `arm` arms a timer that does not die with this process,
/// and is called before the first write.
///
/// # Errors
/// When anything fails; then what was written is undone, as far as nobody else changed it.
pub fn apply(
    plan: &TunePlan,
    options: Options,
    locked: &Locked,
    arm: impl FnOnce(&Journal) -> io::Result<()>,
    watch: &mut impl Watch,
) -> Result<Journal, ApplyError> {
    if let Some(open) = locked.store().all()?.into_iter().find(|journal| journal.state.is_open()) {
        return Err(ApplyError::Unfinished(open.id));
    }
    let entries = entries(&plan.changes)?;
    if entries.is_empty() {
        return Err(ApplyError::Empty);
    }
    let at_s = now_s();
    let mut journal = Journal {
        schema: Journal::SCHEMA.to_owned(),
        id: format!("{at_s:x}-{:x}", std::process::id()),
        purpose: plan.purpose.clone(),
        at_s,
        deadline_s: options.confirm_within_s.map(|seconds| at_s.saturating_add(seconds)),
        boot_id: boot_id()?,
        namespace: namespace()?,
        state: State::Applying,
        entries,
        notes: Vec::new(),
        persisted: Vec::new(),
    };
    if let Err(error) = locked.save(&journal, watch) {
        // It may have its name already: then it says of no write that was made, and is closed.
        close_unwritten(&mut journal, locked);
        return Err(error);
    }
    if options.confirm_within_s.is_some() {
        let armed = watch.at(Step::BeforeTimer).and_then(|()| arm(&journal));
        if let Err(error) = armed {
            return Err(give_up(&mut journal, locked, format!("cannot arm the timer: {error}"), Fault::Host, watch));
        }
    }
    if let Err(failure) = write_all(&journal, watch) {
        return Err(give_up(&mut journal, locked, failure.text, failure.fault, watch));
    }
    journal.state = if options.confirm_within_s.is_some() { State::Unconfirmed } else { State::Confirmed };
    if let Err(error) = locked.save(&journal, watch) {
        return Err(give_up(&mut journal, locked, error.to_string(), Fault::Host, watch));
    }
    Ok(journal)
}

/// What went wrong in the writes.
struct Failure {
    text: String,
    fault: Fault,
}

fn write_all(journal: &Journal, watch: &mut impl Watch) -> Result<(), Failure> {
    let stopped = |error: io::Error| Failure { text: format!("cannot go on: {error}"), fault: Fault::Host };
    for (place, entry) in journal.entries.iter().enumerate() {
        watch.at(Step::BeforeWrite(place)).map_err(stopped)?;
        entry.target.write(&entry.after).map_err(|error| Failure {
            fault: match (error.source.kind(), &entry.target) {
                (io::ErrorKind::PermissionDenied, Target::Sysctl(name)) if thalweg_host::sysctl::is_read_only(name) => {
                    Fault::Namespace
                }
                (io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem, _) => Fault::Host,
                _ => Fault::Value,
            },
            text: error.to_string(),
        })?;
        watch.at(Step::AfterWrite(place)).map_err(stopped)?;
    }
    for (place, entry) in journal.entries.iter().enumerate() {
        watch.at(Step::BeforeReadBack(place)).map_err(stopped)?;
        let read = entry.target.read().map_err(|error| Failure { text: error.to_string(), fault: Fault::Host })?;
        if !entry.target.same(&read, &entry.after) {
            let text = format!("{} was set to '{}' and reads back as '{read}'", entry.target, entry.after);
            return Err(Failure { text, fault: Fault::Value });
        }
    }
    watch.at(Step::BeforeEffect).map_err(stopped)?;
    effect::check(&journal.entries).map_err(|text| Failure { text, fault: Fault::Value })
}

/// Undoes what was written, and says what became of it.
fn give_up(journal: &mut Journal, locked: &Locked, cause: String, fault: Fault, watch: &mut impl Watch) -> ApplyError {
    let undone = undo(journal, watch);
    journal.notes.push(cause.clone());
    let closed = locked
        .save(journal, watch)
        .map_err(|error| format!(" ({error}; thalweg tune rollback {} closes it)", journal.id));
    let undone = match undone.refused.as_slice() {
        [] => "everything is as it was".to_owned(),
        refused => format!("not restored: {}", refused.join("; ")),
    };
    ApplyError::Failed { cause, undone: undone + &closed.err().unwrap_or_default(), fault }
}

/// Closes a journal before whose writes something failed.
fn close_unwritten(journal: &mut Journal, locked: &Locked) {
    let there = locked.store().all().is_ok_and(|all| all.iter().any(|other| other.id == journal.id));
    if there {
        journal.state = State::RolledBack;
        journal.notes.push("it was broken off before its first write".to_owned());
        let _ = locked.save(journal, &mut crate::Unwatched);
    }
}

/// Lets an application stay.
///
/// # Errors
/// When it is not one that waits for that.
pub fn confirm(id: Option<&str>, locked: &Locked, watch: &mut impl Watch) -> Result<Journal, ApplyError> {
    let mut journal = locked.store().journal(id)?;
    if journal.state != State::Unconfirmed {
        return Err(ApplyError::State { id: journal.id, state: journal.state });
    }
    journal.state = State::Confirmed;
    locked.save(&journal, watch)?;
    Ok(journal)
}

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
