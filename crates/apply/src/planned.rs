//! The entries of a journal that a plan asks for, from what this host has now.

use crate::error::ApplyError;
use crate::journal::Entry;
use crate::target::Target;
use thalweg_host::route::Route;
use thalweg_model::{PlannedChange, Setting};

/// One entry per setting: what it is now, and what it is to be. Refuses what is not as the plan says it was.
///
/// # Errors
/// When a setting cannot be applied, is not there, or drifted.
pub(crate) fn entries(changes: &[PlannedChange]) -> Result<Vec<Entry>, ApplyError> {
    let mut entries: Vec<Entry> = Vec::new();
    for change in changes {
        match (&change.setting, &change.route) {
            (Setting::Socket(name), _) => {
                return Err(ApplyError::SocketOption(name.clone()));
            }
            (Setting::Route(name), None) => {
                return Err(ApplyError::Unsupported(
                    format!("the route attribute {name}"),
                    "the plan names no route for it",
                ));
            }
            (Setting::Sysctl(name), _) => {
                let target = Target::Sysctl(name.clone());
                if let Some(other) = entries.iter().find(|entry| entry.target == target) {
                    if target.same(&other.after, &change.to) {
                        continue;
                    }
                    return Err(ApplyError::Twice(name.clone()));
                }
                let before = target.read()?;
                drift(name, &before, change.from.as_deref(), |one, other| target.same(one, other))?;
                entries.push(Entry { target, before, after: change.to.clone() });
            }
            (Setting::Route(name), Some(route)) => {
                let target = Target::Route(route.clone());
                let place = entries.iter().position(|entry| entry.target == target);
                let before = place.map_or_else(|| target.read(), |place| Ok(entries[place].after.clone()))?;
                let now = Route::parse(&target.read()?).and_then(|route| route.metrics_text().remove(name));
                let now = now.unwrap_or_default();
                drift(
                    &format!("{name} of the {target}"),
                    &now,
                    Some(change.from.as_deref().unwrap_or_default()),
                    |one, other| one == other,
                )?;
                let unsupported = || {
                    ApplyError::Unsupported(
                        format!("{name} {}", change.to),
                        "no route has such an attribute, or such a value",
                    )
                };
                let changed = Route::parse(&before)
                    .and_then(|route| route.with_metric(name, &change.to))
                    .ok_or_else(unsupported)?;
                match place {
                    Some(place) => entries[place].after = changed.to_text(),
                    None => entries.push(Entry { target, before, after: changed.to_text() }),
                }
            }
        }
    }
    // What is there already is not written.
    entries.retain(|entry| !entry.target.same(&entry.before, &entry.after));
    Ok(entries)
}

fn drift(setting: &str, now: &str, then: Option<&str>, same: impl Fn(&str, &str) -> bool) -> Result<(), ApplyError> {
    match then {
        Some(then) if !same(now, then) => {
            let word = |text: &str| if text.is_empty() { "not set".to_owned() } else { text.to_owned() };
            Err(ApplyError::Drift { setting: setting.to_owned(), now: word(now), then: word(then) })
        }
        _ => Ok(()),
    }
}
