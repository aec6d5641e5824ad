//! Names and values: whose they are, whether this kernel takes them.

use super::Look;
use crate::catalogue::{Entry, Known, Scope, Shape, known};
use crate::state::Sysctl;
use std::collections::HashSet;
use thalweg_model::since::Release;
use thalweg_model::{TuneFinding, Weight};

const REFUSED: &str = "The kernel answers with 'Invalid argument', and the value before stays.";

pub(super) fn findings(look: &Look<'_>) -> Vec<TuneFinding> {
    let mut found = Vec::new();
    let mut idle = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    // The last of several holds.
    for line in look.state.sysctls.iter().rev() {
        if !seen.insert(&line.name) {
            continue;
        }
        match known(&line.name) {
            Known::Setting(entry) => {
                found.extend(twice(look, line));
                found.extend(value(look, entry, line));
                if let Some((from, _)) = &entry.no_effect
                    && look.kernel.is_none_or(|kernel| kernel >= *from)
                {
                    idle.push((entry, line));
                }
            }
            known => found.extend(stranger(look, line, known)),
        }
    }
    found.extend(without_effect(look, idle));
    found.extend(mixture(look));
    found
}

fn twice(look: &Look<'_>, last: &Sysctl) -> Option<TuneFinding> {
    let earlier = look.state.sysctls.iter().find(|other| other.name == last.name && other.value != last.value)?;
    let place = earlier.line.map(|line| format!(" on line {line}")).unwrap_or_default();
    let says = format!("It has another value{place}, {}; the last one holds.", earlier.value);
    let why = "sysctl -p writes line by line, and each write replaces the one before.".to_owned();
    let set = Some(format!("leave out the line with {}", earlier.value));
    Some(look.find("set-twice", Weight::Trap, &last.name, says, why, set))
}

fn value(look: &Look<'_>, entry: &Entry, line: &Sysctl) -> Option<TuneFinding> {
    let name = &line.name;
    if let (Some(since), Some((major, minor))) = (entry.since.filter(|_| !entry.is_on(look.kernel)), look.kernel) {
        let says = format!("Linux {major}.{minor} does not have it.");
        let why = format!("Linux {} is the first that has it.", release(since));
        return Some(look.find("not-in-this-kernel", Weight::Trap, name, says, why, Some("leave it out".to_owned())));
    }
    if entry.scope == Scope::ReadOnly || line.value.is_empty() {
        return None;
    }
    if let Some(reason) = entry.refuses(&line.value, look.kernel) {
        let why = if entry.is_written(&line.value) {
            "The kernel takes it: numbers that are missing stay as they were, and bits without a meaning have no effect."
        } else {
            REFUSED
        };
        let why = why.to_owned();
        return Some(look.find("out-of-range", Weight::Trap, name, format!("{reason}."), why, None));
    }
    let numbers = entry.numbers(&line.value)?;
    if entry.ordered && !numbers.is_sorted() {
        let says = "Its numbers fall where none may be less than the one before it.".to_owned();
        // Source: net/ipv4/sysctl_net_ipv4.c, `ipv4_local_port_range`.
        let why = if entry.shape == Shape::Pair {
            REFUSED
        } else {
            "The kernel takes them as they are: a socket begins above its limit, or auto-tuning has no room."
        };
        let why = why.to_owned();
        return Some(look.find("falling-numbers", Weight::Trap, name, says, why, look.mended(name)));
    }
    None
}

/// A name that is no setting of this catalogue.
fn stranger(look: &Look<'_>, line: &Sysctl, what: Known) -> Option<TuneFinding> {
    let name = &line.name;
    let fails = "sysctl answers 'No such file or directory' for it on a mainline kernel, and nothing is set.";
    let leave = Some("leave it out".to_owned());
    Some(match what {
        Known::Vendor(vendor) => {
            let says = format!("No mainline kernel has it: it is a name of {}, where it {}.", vendor.of, vendor.about);
            look.find("vendor-name", Weight::Trap, name, says, fails.to_owned(), Some(vendor.instead.clone()))
        }
        Known::Removed(removed) if !removed.still_there => {
            let there = look.kernel.is_some_and(|kernel| kernel < removed.gone());
            let weight = if there { Weight::Note } else { Weight::Trap };
            let says = format!("Linux {} removed it: {}.", removed.until, removed.why);
            let why = if there { "This kernel still has it.".to_owned() } else { fails.to_owned() };
            look.find("removed-setting", weight, name, says, why, Some(removed.instead.clone()))
        }
        Known::Mistyped(entry) => {
            let says = format!("There is no such setting; {} is one letter or two away.", entry.name);
            look.find(
                "mistyped-setting",
                Weight::Trap,
                name,
                says,
                fails.to_owned(),
                Some(format!("{} = {}", entry.name, line.value)),
            )
        }
        Known::Unknown
            if name.starts_with("net.ipv4.tcp_") || name.starts_with("net.core.") || name.starts_with("net.mptcp.") =>
        {
            let says = "No kernel is known that has it.".to_owned();
            let why = "It is neither a mainline setting since Linux 4.4 nor a vendor's name that is known.".to_owned();
            look.find("unknown-setting", Weight::Trap, name, says, why, leave)
        }
        _ => return None,
    })
}

/// Settings that are there and do nothing: each by itself where somebody set it, together where they are at their defaults.
fn without_effect(look: &Look<'_>, idle: Vec<(&'static Entry, &Sysctl)>) -> Vec<TuneFinding> {
    let (default, set): (Vec<_>, Vec<_>) =
        idle.into_iter().partition(|(entry, line)| look.is_default(entry, &line.value));
    let mut found: Vec<TuneFinding> = set
        .iter()
        .filter_map(|(entry, line)| {
            let (from, why) = entry.no_effect.as_ref()?;
            let says = format!("It does nothing since Linux {}.", release(*from));
            let why = format!("There, {why}.");
            Some(look.find("without-effect", Weight::Trap, &line.name, says, why, Some("leave it out".to_owned())))
        })
        .collect();
    if let Some((_, first)) = default.last() {
        let mut names: Vec<&str> = default.iter().map(|(_, line)| line.name.as_str()).collect();
        names.sort_unstable();
        let says = format!("These do nothing on current kernels: {}.", names.join(", "));
        let why = "Their files are left so that old lists can still be read.".to_owned();
        found.push(look.find("without-effect", Weight::Note, &first.name, says, why, None));
    }
    found
}

/// Names that were never together in one mainline release: the list is of a patched kernel, or of several hosts.
fn mixture(look: &Look<'_>) -> Option<TuneFinding> {
    let lines = || look.state.sysctls.iter().filter(|line| line.line.is_some());
    let (since, later) = lines().filter_map(|line| Some((came(line)?, line))).max_by_key(|(since, _)| *since)?;
    let (gone, earlier) = lines().filter_map(|line| Some((went(line)?, line))).min_by_key(|(gone, _)| *gone)?;
    if since < gone {
        return None;
    }
    let says = format!("No mainline kernel has both {} and {}.", earlier.name, later.name);
    let why = format!(
        "Linux {} removed the one, and Linux {} brought the other: the list is of a patched kernel, or was gathered from several.",
        release(gone),
        release(since)
    );
    Some(look.find("kernel-mixture", Weight::Note, &earlier.name, says, why, None))
}

/// The first release that had it, where that is after 4.4.
fn came(line: &Sysctl) -> Option<Release> {
    match known(&line.name) {
        Known::Setting(entry) => entry.since,
        Known::Removed(removed) => removed.since.as_deref().and_then(thalweg_model::since::release),
        _ => None,
    }
}

/// The first release that has it no more.
fn went(line: &Sysctl) -> Option<Release> {
    match known(&line.name) {
        Known::Removed(removed) if !removed.still_there => Some(removed.gone()),
        _ => None,
    }
}

fn release((major, minor): Release) -> String {
    format!("{major}.{minor}")
}
