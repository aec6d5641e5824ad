//! A file of netplan. Source: netplan's YAML reference, `routes`.

use super::{attribute, by_route, header, prefix};
use std::fmt::Write;
use thalweg_model::{PlannedChange, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    text +=
        "# /etc/netplan/90-thalweg.yaml; netplan merges it with the device's own file. Try it with `netplan try`.\n";
    text += "network:\n  version: 2\n  ethernets:\n";
    for (route, attributes) in by_route(changes) {
        let dev = route.dev.as_deref().unwrap_or("DEVICE");
        let _ = write!(
            text,
            "    {dev}:\n      routes:\n        - to: {}\n",
            if route.to == "default" { "default" } else { prefix(route) }
        );
        if let Some(via) = &route.via {
            let _ = writeln!(text, "          via: {via}");
        }
        if route.metric > 0 {
            let _ = writeln!(text, "          metric: {}", route.metric);
        }
        for (name, value) in attributes {
            if let Some((key, since)) = attribute(name).and_then(|names| names.netplan) {
                let _ = writeln!(text, "          {key}: {value}  # netplan {since} and later");
            }
        }
    }
    text
}
