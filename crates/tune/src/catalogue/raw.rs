//! The catalogue's files, as they are written.

use super::Catalogue;
use super::entry::{Entry, Kind, Outside, Removed, Scope, Shape, Vendor};
use serde::Deserialize;
use std::collections::BTreeMap;
use thalweg_model::Code;
use thalweg_model::since::{self, Release};

const FILES: [&str; 8] = [
    include_str!("../../catalogue/tcp.toml"),
    include_str!("../../catalogue/core.toml"),
    include_str!("../../catalogue/ip.toml"),
    include_str!("../../catalogue/mptcp.toml"),
    include_str!("../../catalogue/netfilter.toml"),
    include_str!("../../catalogue/routes.toml"),
    include_str!("../../catalogue/sockets.toml"),
    include_str!("../../catalogue/devices.toml"),
];
const NAMES: &str = include_str!("../../catalogue/vendor.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: Kind,
    prefix: String,
    source: String,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    optional: Option<String>,
    setting: Vec<Line>,
}

/// An entry; what it leaves out is the file's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    #[serde(default)]
    kind: Option<Kind>,
    about: String,
    #[serde(default)]
    unit: Option<String>,
    shape: Shape,
    #[serde(default)]
    range: Option<[i64; 2]>,
    #[serde(default)]
    bits: Option<u64>,
    #[serde(default)]
    ordered: bool,
    #[serde(default)]
    default: Option<String>,
    #[serde(default)]
    defaults: BTreeMap<String, String>,
    #[serde(default)]
    varies: Option<String>,
    #[serde(default)]
    scope: Scope,
    #[serde(default)]
    host_before: Option<String>,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    no_effect: Option<(String, String)>,
    #[serde(default)]
    optional: Option<String>,
    #[serde(default)]
    scenario: Option<String>,
    read_by: String,
    #[serde(default)]
    cost: Option<String>,
    #[serde(default)]
    verdicts: Vec<Code>,
    #[serde(default)]
    source: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    name: Vec<Vendor>,
    removed: Vec<Removed>,
    outside: Vec<Outside>,
}

/// Reads the files.
pub(super) fn read() -> Result<Catalogue, String> {
    let mut entries = Vec::new();
    for text in FILES {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        for line in &file.setting {
            entries.push(entry(line, &file)?);
        }
    }
    let names: Names = toml::from_str(NAMES).map_err(|error| error.to_string())?;
    Ok(Catalogue { entries, vendors: names.name, removed: names.removed, outside: names.outside })
}

fn entry(line: &Line, file: &File) -> Result<Entry, String> {
    let release = |text: &String| since::release(text).ok_or_else(|| format!("{}: no release: {text}", line.name));
    let optional = |text: Option<&String>| text.map(release).transpose();
    let mut defaults: BTreeMap<Release, String> = line.default.iter().map(|value| ((0, 0), value.clone())).collect();
    for (first, value) in &line.defaults {
        defaults.insert(release(first)?, value.clone());
    }
    let no_effect = match &line.no_effect {
        Some((from, why)) => Some((release(from)?, why.clone())),
        None => None,
    };
    Ok(Entry {
        kind: line.kind.unwrap_or(file.kind),
        name: format!("{}{}", file.prefix, line.name),
        about: line.about.clone(),
        unit: line.unit.clone(),
        shape: line.shape,
        range: line.range,
        bits: line.bits,
        ordered: line.ordered,
        defaults,
        varies: line.varies.clone(),
        scope: line.scope,
        host_before: optional(line.host_before.as_ref())?,
        since: optional(line.since.as_ref().or(file.since.as_ref()))?,
        no_effect,
        optional: line.optional.clone().or_else(|| file.optional.clone()),
        scenario: line.scenario.clone(),
        read_by: line.read_by.clone(),
        cost: line.cost.clone(),
        verdicts: line.verdicts.clone(),
        source: line.source.clone().unwrap_or_else(|| file.source.clone()),
    })
}
