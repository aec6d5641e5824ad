//! Routes: attributes that are not obeyed, or are on a route that is not taken.

use super::Look;
use super::connections::DELAYED_ACK_US;
use crate::route_command;
use crate::state::Route;
use std::collections::BTreeMap;
use thalweg_model::{TuneFinding, Weight};

/// Attributes that the kernel reads only where they are locked, and where it does. Sources: net/ipv4/tcp_metrics.c, `tcp_init_metrics`;
/// net/ipv4/tcp_output.c, `tcp_rto_min`.
const NEEDS_LOCK: [(&str, &str); 2] = [
    ("cwnd", "tcp_init_metrics reads RTAX_CWND only where the attribute is locked."),
    ("rto_min", "tcp_rto_min reads RTAX_RTO_MIN only where the attribute is locked."),
];
/// Segments that connections begin with. Source: RFC 6928, Linux `TCP_INIT_CWND`.
const USUAL_WINDOW: u64 = 10;
/// Payload of a full segment over Ethernet. Source: RFC 6928, section 2.
const SEGMENT_BYTES: u64 = 1460;
/// Packets that a device queues by default. Source: include/net/pkt_sched.h, `DEFAULT_TX_QUEUE_LEN`.
const DEVICE_QUEUE: u64 = 1000;
/// Attributes whose absence on another route goes unnoticed.
const WINDOWS: [&str; 2] = ["initcwnd", "initrwnd"];

pub(super) fn findings(look: &Look<'_>) -> Vec<TuneFinding> {
    // A command later in a text replaces the route that it names.
    let mut last: BTreeMap<String, &Route> = BTreeMap::new();
    for route in &look.state.routes {
        last.insert(route.title(), route);
    }
    let routes: Vec<&Route> = last.into_values().collect();
    let mut found = Vec::new();
    for route in &routes {
        if route.attributes.is_empty() {
            continue;
        }
        found.extend(shadowed(route, &routes));
        found.extend(unlocked(route));
        found.extend(narrow(route));
        found.extend(burst(route));
        found.extend(short_timeout(route));
    }
    found.extend(bypassed(&routes));
    found
}

fn attributes(route: &Route) -> String {
    route.attributes.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(" ")
}

fn finding(
    code: &'static str,
    weight: Weight,
    route: &Route,
    says: String,
    why: &str,
    set: Option<String>,
) -> TuneFinding {
    TuneFinding {
        code,
        weight,
        setting: format!("route {}", route.title()),
        value: attributes(route),
        line: route.line,
        says,
        why: why.to_owned(),
        set,
    }
}

/// Another route to the same destination is preferred, and lacks what this one has.
fn shadowed(route: &Route, all: &[&Route]) -> Option<TuneFinding> {
    let others = all.iter().filter(|other| {
        other.to == route.to && other.metric < route.metric && !other.link_down && other.ipv6 == route.ipv6
    });
    let (says, set) = match others.min_by_key(|other| other.metric) {
        Some(better) => {
            let lacks = |(name, _): &(&String, &String)| !better.attributes.contains_key(*name);
            let missing: Vec<(&str, &str)> =
                route.attributes.iter().filter(lacks).map(|(name, value)| (name.as_str(), value.as_str())).collect();
            // A route for when the better one is away has the same attributes.
            if missing.is_empty() {
                return None;
            }
            (format!("Packets to {} take the route {}.", route.to, better.title()), set(better, &missing))
        }
        None if route.link_down => ("Its link is down.".to_owned(), None),
        None => return None,
    };
    let why =
        "Of several routes to one destination the one with the least metric is taken, and none counts as 0 in IPv4.";
    Some(finding("route-shadowed", Weight::Trap, route, says, why, set))
}

/// The command that sets attributes of a route; `None` where it would lose a part of the route.
fn set(route: &Route, attributes: &[(&str, &str)]) -> Option<String> {
    route_command::change(&route.target(), attributes.iter().copied()).ok()
}

fn unlocked(route: &Route) -> Vec<TuneFinding> {
    let one = |(name, why): &(&str, &str)| {
        let value = route.attributes.get(*name).filter(|value| !value.starts_with("lock "))?;
        let says = format!("The kernel ignores {name} {value}, which is not locked.");
        let set = set(route, &[(name, &format!("lock {value}"))]);
        Some(finding("attribute-not-locked", Weight::Trap, route, says, why, set))
    };
    NEEDS_LOCK.iter().filter_map(one).collect()
}

/// A bound below the window that connections begin with.
fn narrow(route: &Route) -> Option<TuneFinding> {
    let number = |name: &str| route.attributes.get(name)?.trim_start_matches("lock ").parse::<u64>().ok();
    // An unlocked cwnd is not obeyed, which is said by itself.
    let cwnd = number("cwnd").filter(|cwnd| *cwnd < USUAL_WINDOW && route.attributes["cwnd"].starts_with("lock "));
    let window = number("window").filter(|window| (1..USUAL_WINDOW * SEGMENT_BYTES).contains(window));
    let (what, whose) = match (cwnd, window) {
        (Some(cwnd), _) => (format!("cwnd {cwnd}"), "Connections over this route send"),
        (None, Some(window)) => (format!("window {window}"), "Peers of connections over this route send"),
        _ => return None,
    };
    let says = format!("{whose} no more than {what} a round trip.");
    let why = "Connections begin with ten segments (RFC 6928): the bound is below that, and never grows.";
    Some(finding("window-below-initial", Weight::Trap, route, says, why, None))
}

fn burst(route: &Route) -> Option<TuneFinding> {
    let window: u64 = route.attributes.get("initcwnd")?.trim_start_matches("lock ").parse().ok()?;
    if window <= DEVICE_QUEUE {
        return None;
    }
    let says = format!("Every connection begins with a burst of {window} segments.");
    let why = "A device queues 1,000 packets by default (txqueuelen): the host itself drops what is beyond them.";
    Some(finding("initial-window-burst", Weight::Trap, route, says, why, None))
}

fn short_timeout(route: &Route) -> Option<TuneFinding> {
    let text = route.attributes.get("rto_min")?.strip_prefix("lock ")?;
    let least_ms: u64 = text.trim_end_matches("ms").parse().ok()?;
    if least_ms.saturating_mul(1000) >= DELAYED_ACK_US {
        return None;
    }
    let says = format!("{least_ms} ms is below the 40 ms that a Linux peer may delay an acknowledgement.");
    let why = "Unless peers acknowledge sooner (quickack on their route) the timeout fires in vain, and cuts the congestion window.";
    Some(finding("rto-below-delayed-ack", Weight::Note, route, says, why, None))
}

/// The default route has an initial window, and longer prefixes through the same devices have none.
fn bypassed(routes: &[&Route]) -> Option<TuneFinding> {
    let has = |route: &Route| WINDOWS.iter().any(|name| route.attributes.contains_key(*name));
    let default = routes.iter().find(|route| route.to == "default" && has(route))?;
    let taken = |route: &&&Route| {
        let better =
            routes.iter().any(|other| other.to == route.to && other.ipv6 == route.ipv6 && other.metric < route.metric);
        route.to != "default" && !better && !route.link_down && !has(route) && !is_own(route)
    };
    let others: Vec<String> = routes.iter().filter(taken).map(|route| route.title()).collect();
    if others.is_empty() {
        return None;
    }
    let says = format!("Peers behind these routes begin with the kernel's own window: {}.", others.join("; "));
    let why = "The longest prefix is taken, and attributes are not inherited from the default route.";
    Some(finding("initial-window-bypassed", Weight::Note, default, says, why, None))
}

/// Loopback and the like.
fn is_own(route: &Route) -> bool {
    route.dev.as_deref() == Some("lo")
        || route.to.starts_with("127.")
        || route.to.starts_with("fe80")
        || route.to.starts_with("ff")
}
