//! Commands of `ip route`. Source: ip-route(8).

use super::{by_route, header};
use std::fmt::Write;
use thalweg_model::{PlannedChange, RouteTarget, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    text += "# They are gone at the next boot. `ip route change` replaces the whole route: add its src and proto where it has them.\n";
    for (route, attributes) in by_route(changes) {
        let kept = route.keep.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let kept = kept.filter(|(name, _)| !attributes.iter().any(|(other, _)| other == name));
        let all = kept.chain(attributes.iter().copied());
        let attributes: Vec<String> = all.map(|(name, value)| format!("{name} {value}")).collect();
        let _ = writeln!(text, "{} route change {} {}", ip(route), way(route), attributes.join(" "));
    }
    text
}

fn ip(route: &RouteTarget) -> &'static str {
    if route.to.contains(':') || route.via.as_ref().is_some_and(|via| via.contains(':')) { "ip -6" } else { "ip" }
}

fn way(route: &RouteTarget) -> String {
    let via = route.via.as_ref().map(|via| format!(" via {via}")).unwrap_or_default();
    let dev = route.dev.as_ref().map(|dev| format!(" dev {dev}")).unwrap_or_default();
    let metric = if route.metric > 0 { format!(" metric {}", route.metric) } else { String::new() };
    format!("{}{via}{dev}{metric}", route.to)
}
