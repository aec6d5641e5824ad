//! This host's settings, as its kernel reports them.

use crate::failure::Failure;
use thalweg_model::since;
use thalweg_tune::catalogue::{Kind, catalogue};
use thalweg_tune::state::{HostState, Route, Sysctl};

/// Reads what the catalogue knows of; a sysctl that this kernel or namespace does not have is left out.
pub(super) fn read() -> Result<HostState, Failure> {
    let osrelease = thalweg_host::sysctl::read("kernel.osrelease").map_err(Failure::host)?;
    let one = |name: &str| {
        let value = thalweg_host::sysctl::read(name).ok()?;
        Some(Sysctl { name: name.to_owned(), value, line: None })
    };
    let entries = catalogue().entries.iter().filter(|entry| entry.kind == Kind::Sysctl);
    let routes = thalweg_host::route::list().map_err(Failure::host)?;
    Ok(HostState {
        kernel: since::release(&osrelease),
        sysctls: entries.filter_map(|entry| one(&entry.name)).collect(),
        routes: routes.into_iter().map(route).collect(),
        sockets: Vec::new(),
        qdiscs: Vec::new(),
        memory_bytes: memory(),
    })
}

fn route(listed: thalweg_host::route::Listed) -> Route {
    Route {
        to: listed.to,
        metric: listed.metric.into(),
        via: listed.via.map(|via| via.to_string()),
        dev: listed.dev,
        tos: listed.tos,
        ipv6: listed.ipv6,
        link_down: listed.link_down,
        expires: listed.expires,
        words: listed.words,
        attributes: listed.metrics,
        line: None,
    }
}

/// Memory of the host, in bytes.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}
