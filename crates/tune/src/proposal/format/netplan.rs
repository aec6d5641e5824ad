//! A file of netplan. Source: netplan's YAML reference, `routes`.

use super::{Format, attribute, by_way, header};
use std::fmt::Write;
use thalweg_model::{PlannedChange, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    text +=
        "# /etc/netplan/90-thalweg.yaml; netplan merges it with the device's own file. Try it with `netplan try`.\n";
    text += "network:\n  version: 2\n  ethernets:\n";
    for (way, attributes) in by_way(changes, Format::Netplan) {
        let to = if way.to == "0.0.0.0/0" { "default" } else { way.to };
        let _ = write!(text, "    {}:\n      routes:\n        - to: {to}\n", way.dev);
        if let Some(via) = way.via {
            let _ = writeln!(text, "          via: {via}");
        }
        if let Some(src) = way.src {
            let _ = writeln!(text, "          from: {src}");
        }
        if way.onlink {
            text += "          on-link: true\n";
        }
        if way.metric > 0 {
            let _ = writeln!(text, "          metric: {}", way.metric);
        }
        for (name, value) in attributes {
            if let Some((key, since)) = attribute(name).and_then(|names| names.netplan) {
                let _ = writeln!(text, "          {key}: {value}  # netplan {since} and later");
            }
        }
    }
    text
}
