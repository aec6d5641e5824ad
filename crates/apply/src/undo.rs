//! Undoing an application: what was read is restored, and what somebody else changed since is left alone.

use crate::error::ApplyError;
use crate::journal::Journal;
use crate::scope::{boot_id, namespace};
use crate::state::State;
use crate::store::Locked;
use crate::{Step, Watch};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;

/// The document of `thalweg tune rollback --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TuneRollback {
    /// `thalweg.tune-rollback/1`.
    pub schema: &'static str,
    /// The application that was undone.
    pub id: String,
    /// What became of its settings, a line each.
    #[serde(flatten)]
    pub undone: Undone,
}

/// What became of the settings of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Undone {
    /// Restored.
    pub restored: Vec<String>,
    /// As they were already.
    pub untouched: Vec<String>,
    /// Left alone, each with the reason.
    pub refused: Vec<String>,
}

/// An application that was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its journal.
    pub journal: Journal,
    /// What became of its settings.
    pub undone: Undone,
}

/// Undoes an application, the newest open one where none is named. With `unless_confirmed`, one that was confirmed is left alone, and
/// `None` comes back.
///
/// # Errors
/// When there is none, or it was undone already, or it was made in another namespace of this boot.
pub fn rollback(
    id: Option<&str>,
    unless_confirmed: bool,
    locked: &Locked,
    watch: &mut impl Watch,
) -> Result<Option<Outcome>, ApplyError> {
    let mut journal = locked.store().journal(id)?;
    match journal.state {
        _ if unless_confirmed && !journal.state.is_open() => return Ok(None),
        State::RolledBack => return Err(ApplyError::State { id: journal.id, state: journal.state }),
        _ => {}
    }
    if journal.boot_id != boot_id()? {
        journal.notes.push("this host was started again since, which ended what is not persistent".to_owned());
    } else if journal.namespace != namespace()? {
        return Err(ApplyError::OtherNamespace(journal.id));
    }
    let undone = undo(&mut journal, watch);
    locked.save(&journal, watch)?;
    Ok(Some(Outcome { journal, undone }))
}

/// Restores every entry, the last first, and sets the journal's state.
pub(crate) fn undo(journal: &mut Journal, watch: &mut impl Watch) -> Undone {
    let mut undone = Undone::default();
    for (place, entry) in journal.entries.iter().enumerate().rev() {
        let target = &entry.target;
        let name = target.to_string();
        let now = match target.read() {
            Ok(now) => now,
            Err(error) => {
                undone.refused.push(format!("{name}: {error}"));
                continue;
            }
        };
        if target.same(&now, &entry.before) {
            undone.untouched.push(name);
            continue;
        }
        if !target.same(&now, &entry.after) {
            undone.refused.push(format!(
                "{name}: somebody changed it since; back to before it is {}",
                target.difference(&now, &entry.before)
            ));
            continue;
        }
        match restore(place, entry, watch) {
            Ok(()) => undone.restored.push(name),
            Err(error) => undone.refused.push(format!("{name}: {error}")),
        }
    }
    journal.state = if undone.refused.is_empty() { State::RolledBack } else { State::PartlyRolledBack };
    journal.notes.extend(undone.refused.iter().cloned());
    undone
}

fn restore(place: usize, entry: &crate::Entry, watch: &mut impl Watch) -> io::Result<()> {
    watch.at(Step::BeforeRestore(place))?;
    entry.target.write(&entry.before).map_err(|error| io::Error::new(error.source.kind(), error.to_string()))?;
    watch.at(Step::AfterRestore(place))?;
    match entry.target.read() {
        Ok(now) if entry.target.same(&now, &entry.before) => Ok(()),
        Ok(now) => Err(io::Error::other(format!("it reads back as '{now}'"))),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}
