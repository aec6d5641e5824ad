//! Whether what was set has its effect: on a fresh connection over loopback for sysctls, in the kernel's own look-up for routes.

use crate::journal::Entry;
use crate::target::Target;
use std::net::{IpAddr, Ipv4Addr};
use thalweg_host::route::Route;
use thalweg_host::socket::probe;

/// An address for documentation, which every default route leads to. Source: RFC 5737.
const SOMEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// Checks every entry; what has no effect that can be seen from here passes.
///
/// # Errors
/// A sentence that says what has no effect.
pub(crate) fn check(entries: &[Entry]) -> Result<(), String> {
    let mut fresh = None;
    for entry in entries {
        match &entry.target {
            Target::Sysctl(name) => {
                if !probe::SEEN.contains(&name.as_str()) {
                    continue;
                }
                let connection = match &fresh {
                    Some(connection) => connection,
                    None => match probe::connection() {
                        Ok(connection) => fresh.insert(connection),
                        // A namespace without a loopback device that is up has no fresh connection to look at.
                        Err(_) => continue,
                    },
                };
                if let Some(seen) = connection.get(name.as_str())
                    && !has_effect(name, seen, &entry.after)
                {
                    return Err(format!("{name} was set to '{}', and a fresh connection has '{seen}'", entry.after));
                }
            }
            Target::Route(target) => route(target, &entry.after)?,
        }
    }
    Ok(())
}

fn has_effect(name: &str, seen: &str, set: &str) -> bool {
    let words: Vec<&str> = set.split_whitespace().collect();
    match name {
        "net.ipv4.tcp_congestion_control" => seen == set,
        // A socket's buffer begins at the second number.
        _ if words.len() == 3 => seen == words[1],
        // 1 and 2 are both on.
        _ => (seen == "0") == (set == "0"),
    }
}

/// The kernel's look-up of an address behind the route has the route's metrics.
fn route(target: &thalweg_model::RouteTarget, after: &str) -> Result<(), String> {
    let address = match target.to.split('/').next().map(str::parse::<IpAddr>) {
        Some(Ok(IpAddr::V4(address))) => address,
        _ if target.to == "default" && !target.ipv6 => SOMEWHERE,
        // The look-up here is for IPv4.
        _ => return Ok(()),
    };
    let found = thalweg_host::route::metrics(address).map_err(|error| error.to_string())?;
    let listed = Route::parse(after).and_then(|route| route.now().ok().flatten());
    let wanted = listed.map(|route| route.metrics_text()).unwrap_or_default();
    for (name, value) in wanted {
        let value = value.trim_start_matches("lock ");
        if found.get(&name).is_none_or(|seen| seen != value) {
            let seen = found.get(&name).cloned().unwrap_or_else(|| "none".to_owned());
            return Err(format!(
                "the route {} has {name} {value}, and packets to {address} take one with {name} {seen}: another route is preferred",
                target.to
            ));
        }
    }
    Ok(())
}
