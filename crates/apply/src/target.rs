//! A setting of this host that can be read, written, and compared.

use crate::error::ApplyError;
use host::HostError;
use host::route::Route;
use model::{PlannedChange, RouteTarget, Setting};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A setting of this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A sysctl, by its dotted name.
    Sysctl(String),
    /// All metrics of a route; its values are the whole route, as text.
    Route(RouteTarget),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl(name) => f.write_str(name),
            Self::Route(route) => {
                let dev = route.dev.as_ref().map(|dev| format!(" dev {dev}")).unwrap_or_default();
                write!(f, "route {}{dev}", route.to)
            }
        }
    }
}

impl Target {
    /// What it is now.
    ///
    /// # Errors
    /// When it cannot be read, or is not there.
    pub fn read(&self) -> Result<String, ApplyError> {
        match self {
            Self::Sysctl(name) => host::sysctl::read(name).map_err(ApplyError::Read),
            Self::Route(route) => Ok(find(route)?.to_text()),
        }
    }

    /// Writes a value that was read, or made by [`entries`].
    pub(crate) fn write(&self, value: &str) -> Result<(), HostError> {
        match self {
            Self::Sysctl(name) => host::sysctl::write(name, value).map(drop),
            Self::Route(_) => {
                let broken = || HostError {
                    act: format!("set the {self}"),
                    source: std::io::Error::new(std::io::ErrorKind::InvalidData, "the journal's route cannot be read"),
                };
                Route::parse(value).ok_or_else(broken)?.replace()
            }
        }
    }

    /// Whether two of its values are the same.
    pub(crate) fn same(&self, one: &str, other: &str) -> bool {
        match self {
            Self::Sysctl(_) => one.split_whitespace().eq(other.split_whitespace()),
            Self::Route(_) => Route::parse(one) == Route::parse(other),
        }
    }
}

fn is_ipv6(route: &RouteTarget) -> bool {
    route.to.contains(':') || route.via.as_ref().is_some_and(|via| via.contains(':'))
}

fn find(target: &RouteTarget) -> Result<Route, ApplyError> {
    let found = Route::find(&target.to, target.metric, is_ipv6(target)).map_err(ApplyError::Read)?;
    found.ok_or_else(|| {
        let metric = if target.metric > 0 { format!(" metric {}", target.metric) } else { String::new() };
        ApplyError::Vanished(format!("{}{metric}", target.to))
    })
}

/// One entry per setting: what it is now, and what it is to be. Refuses what is not as the plan says it was.
///
/// # Errors
/// When a setting cannot be applied, is not there, or drifted.
pub(crate) fn entries(changes: &[PlannedChange]) -> Result<Vec<crate::Entry>, ApplyError> {
    let mut entries: Vec<crate::Entry> = Vec::new();
    for change in changes {
        match (&change.setting, &change.route) {
            (Setting::Socket(name), _) => {
                return Err(ApplyError::Unsupported(
                    format!("the socket option {name}"),
                    "the program that has the socket sets it",
                ));
            }
            (Setting::Route(name), None) => {
                return Err(ApplyError::Unsupported(
                    format!("the route attribute {name}"),
                    "the plan names no route for it",
                ));
            }
            (Setting::Sysctl(name), _) => {
                let target = Target::Sysctl(name.clone());
                let before = target.read()?;
                drift(name, &before, change.from.as_deref(), |one, other| target.same(one, other))?;
                entries.push(crate::Entry { target, before, after: change.to.clone() });
            }
            (Setting::Route(name), Some(route)) => {
                let target = Target::Route(route.clone());
                let place = entries.iter().position(|entry| entry.target == target);
                let before = place.map_or_else(|| target.read(), |place| Ok(entries[place].after.clone()))?;
                let then = host::route::list().map_err(ApplyError::Read)?;
                let listed = then.iter().find(|one| one.to == route.to && u64::from(one.metric) == route.metric);
                let now = listed.and_then(|one| one.metrics.get(name)).cloned().unwrap_or_default();
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
                    None => entries.push(crate::Entry { target, before, after: changed.to_text() }),
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
