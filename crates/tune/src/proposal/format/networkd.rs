//! A drop-in of systemd-networkd. Source: systemd.network(5), section `[Route]`.

use super::way::Way;
use super::{Format, attribute, by_way, header, networkd_key};
use std::fmt::Write;
use thalweg_model::{PlannedChange, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    for (way, attributes) in by_way(changes, Format::Networkd) {
        let dev = way.dev;
        let _ = writeln!(
            text,
            "# /etc/systemd/network/50-{dev}.network.d/thalweg.conf, for the .network file of {dev}; then networkctl reload"
        );
        if let Some(needs) = newest(&attributes) {
            let _ = writeln!(text, "# needs systemd {needs}");
        }
        text += &section(&way, &attributes);
    }
    text
}

/// The newest release of systemd that these need.
fn newest<'a>(attributes: &[(&str, &'a str)]) -> Option<&'a str> {
    let releases = attributes.iter().filter_map(|(name, _)| attribute(name)?.networkd.map(|(_, since)| since));
    releases.max_by_key(|since| since.parse::<u32>().unwrap_or(0))
}

/// A `[Route]` section.
pub(super) fn section(way: &Way<'_>, attributes: &[(&str, &str)]) -> String {
    let mut text = format!("[Route]\nDestination={}\n", way.to);
    if let Some(via) = way.via {
        let _ = writeln!(text, "Gateway={via}");
    }
    if way.onlink {
        text += "GatewayOnLink=yes\n";
    }
    if let Some(src) = way.src {
        let _ = writeln!(text, "PreferredSource={src}");
    }
    if way.metric > 0 {
        let _ = writeln!(text, "Metric={}", way.metric);
    }
    for (name, value) in attributes {
        let value = value.trim_start_matches("lock ");
        let value = match *name {
            "quickack" => {
                if value == "1" {
                    "yes"
                } else {
                    "no"
                }
            }
            _ => value,
        };
        if let Some(key) = networkd_key(name) {
            let _ = writeln!(text, "{key}={value}");
        }
    }
    text
}
