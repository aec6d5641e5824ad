//! A setting of this host that can be read, written, and compared.

use crate::error::ApplyError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use thalweg_host::HostError;
use thalweg_host::route::Route;
use thalweg_model::RouteTarget;

/// A setting of this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
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
            Self::Sysctl(name) => thalweg_host::sysctl::read(name).map_err(ApplyError::Read),
            Self::Route(route) => Ok(find(route)?.to_text()),
        }
    }

    /// From what to what it is changed: the value of a sysctl, or the attributes of a route that differ.
    pub fn difference(&self, before: &str, after: &str) -> String {
        if matches!(self, Self::Sysctl(_)) {
            return format!("{before} → {after}");
        }
        let [before, after] =
            [before, after].map(|text| Route::parse(text).map(|route| route.metrics_text()).unwrap_or_default());
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let value = |metrics: &BTreeMap<String, String>, name: &str| {
            metrics.get(name).cloned().unwrap_or_else(|| "not set".to_owned())
        };
        let differs = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
        let list: Vec<String> =
            differs.map(|name| format!("{name} {} → {}", value(&before, name), value(&after, name))).collect();
        if list.is_empty() { "another way".to_owned() } else { list.join(", ") }
    }

    /// Writes a value that was read, or made by [`entries`].
    pub(crate) fn write(&self, value: &str) -> Result<(), HostError> {
        match self {
            Self::Sysctl(name) => thalweg_host::sysctl::write(name, value).map(drop),
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

/// The one route of a target.
fn find(target: &RouteTarget) -> Result<Route, ApplyError> {
    let ipv6 = target.ipv6 || target.to.contains(':');
    let mut found = Route::find(&target.to, target.metric, ipv6).map_err(ApplyError::Read)?;
    found.retain(|route| route.type_of_service() == target.tos);
    if found.len() > 1 {
        return Err(ApplyError::Ambiguous(title(target)));
    }
    found.pop().ok_or_else(|| ApplyError::Vanished(title(target)))
}

fn title(target: &RouteTarget) -> String {
    let metric = if target.metric > 0 { format!(" metric {}", target.metric) } else { String::new() };
    format!("{}{metric}", target.to)
}
