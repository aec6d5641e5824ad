//! Reading lines of `ip route`, and commands that would make them.

use super::Route;
use crate::catalogue::{Kind, catalogue};
use std::net::IpAddr;

/// What `ip route` prints of a route's state, which no command takes.
const STATES: [&str; 9] = [
    "linkdown",
    "dead",
    "pervasive",
    "offload",
    "rt_offload",
    "trap",
    "rt_trap",
    "offload_failed",
    "rt_offload_failed",
];

/// A line of `ip route`, or a command that would make one. Lines of next hops are part of it.
pub(super) fn route(words: &[&str]) -> Option<Route> {
    let (mut words, mut ipv6, mut command) = (words, false, false);
    if let Some(at) = words.iter().position(|word| ["change", "replace", "add", "append"].contains(word)) {
        command = words[..at].iter().any(|word| ["route", "ro", "r"].contains(word));
        ipv6 = words[..at].contains(&"-6");
        words = if command { &words[at + 1..] } else { return None };
    }
    if words.first().is_some_and(|word| ["unicast", "local", "broadcast", "multicast"].contains(word)) {
        words = &words[1..];
    }
    let (first, rest) = words.split_first()?;
    let (to, rest) = match *first {
        "default" => ("default".to_owned(), rest),
        // A command without a destination changes the default route.
        "via" | "dev" if words.contains(&"via") && words.contains(&"dev") => ("default".to_owned(), words),
        _ if rest.iter().any(|word| ["dev", "via", "nexthop", "nhid"].contains(word)) => (prefix(first)?, rest),
        _ => return None,
    };
    let mut route = read(&to, rest, command);
    let ipv6_gateway = route.via.as_ref().is_some_and(|via| via.contains(':')) && !rest.contains(&"inet6");
    // `ip` prints the preference of a router for routes of IPv6 alone.
    route.ipv6 = ipv6 || to.contains(':') || ipv6_gateway || rest.contains(&"pref");
    Some(route)
}

/// An address or a prefix, with the bits that `ip` leaves out.
fn prefix(text: &str) -> Option<String> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits: u8 = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    Some(match bits {
        0 => "default".to_owned(),
        _ => format!("{address}/{bits}"),
    })
}

/// What follows the destination.
fn read(to: &str, mut rest: &[&str], command: bool) -> Route {
    let mut route = Route { to: to.to_owned(), ..Route::default() };
    let mut words = vec![to];
    let mut is_whole = true;
    // A nexthop object has the gateway and the device, which `ip` prints, and takes in no command.
    let has_object = rest.contains(&"nhid");
    while let Some((word, after)) = rest.split_first() {
        let value = after.first().copied();
        rest = after.get(1..).unwrap_or_default();
        match *word {
            // What follows is of one of several next hops.
            "nexthop" => {
                words.push(word);
                words.extend(after.iter().filter(|word| !STATES.contains(word)));
                break;
            }
            "via" => {
                let family = value.filter(|family| ["inet", "inet6"].contains(family));
                route.via = if family.is_some() { after.get(1).copied() } else { value }.map(str::to_owned);
                rest = after.get(1 + usize::from(family.is_some())..).unwrap_or_default();
                if !has_object {
                    words.push(word);
                    words.extend(family);
                    words.extend(route.via.is_some().then(|| after[usize::from(family.is_some())]));
                }
            }
            "dev" if has_object => route.dev = value.map(str::to_owned),
            "dev" | "metric" | "tos" | "dsfield" => {
                words.push(word);
                words.extend(value);
                match *word {
                    "dev" => route.dev = value.map(str::to_owned),
                    "metric" => route.metric = value.and_then(|text| text.parse().ok()).unwrap_or(0),
                    _ => match value.and_then(|text| u8::from_str_radix(text.trim_start_matches("0x"), 16).ok()) {
                        Some(tos) => route.tos = tos,
                        None => is_whole = false,
                    },
                }
            }
            "expires" => route.expires = true,
            "encap" => is_whole = false,
            state if STATES.contains(&state) => {
                route.link_down |= ["linkdown", "dead"].contains(&state);
                rest = after;
            }
            name if is_attribute(name) => {
                let locked = value == Some("lock");
                let value = if locked { after.get(1).copied() } else { value };
                // A command that sets rto_min locks it. Source: iproute2, ip/iproute.c.
                let lock = if locked || command && name == "rto_min" { "lock " } else { "" };
                rest = after.get(1 + usize::from(locked)..).unwrap_or_default();
                route.attributes.extend(value.map(|value| (name.to_owned(), format!("{lock}{value}"))));
            }
            // Of the others some have a value and some have none; a value is never a known word.
            _ => {
                words.push(word);
                rest = after;
            }
        }
    }
    route.words = is_whole.then(|| words.join(" "));
    route
}

fn is_attribute(name: &str) -> bool {
    catalogue().entries.iter().any(|entry| entry.kind == Kind::Route && entry.name == name)
}
