//! Commands of NetworkManager's `nmcli`. Source: nm-settings-nmcli(5), `ipv4.routes`.

use super::{Format, attribute, by_way, header};
use std::fmt::Write;
use thalweg_model::{PlannedChange, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    text += "# CONNECTION is the profile's name: nmcli -f NAME,DEVICE connection show --active\n";
    for (way, attributes) in by_way(changes, Format::NetworkManager) {
        let family = if way.to.contains(':') { "ipv6" } else { "ipv4" };
        let mut words = vec![way.to.to_owned()];
        words.extend(way.via.map(str::to_owned));
        if way.metric > 0 {
            words.push(way.metric.to_string());
        }
        words.extend(way.src.map(|src| format!("src={src}")));
        if way.onlink {
            words.push("onlink=true".to_owned());
        }
        for (name, value) in attributes.into_iter().filter(|(_, value)| *value != "0") {
            let Some(known) = attribute(name).and_then(|names| names.network_manager) else { continue };
            match value.strip_prefix("lock ") {
                // NetworkManager locks it by itself, and has no attribute for it. Source: NetworkManager,
                // src/libnm-platform/nm-linux-platform.c, `ip_route_get_lock_flag`.
                Some(value) if name == "rto_min" => words.push(format!("{known}={}", value.trim_end_matches("ms"))),
                Some(value) => words.extend([format!("{known}={value}"), format!("lock-{known}=true")]),
                None if name == "quickack" => {
                    words.push(format!("{known}={}", if value == "1" { "true" } else { "false" }))
                }
                None => words.push(format!("{known}={}", value.trim_end_matches("ms"))),
            }
        }
        let _ = writeln!(text, "nmcli connection modify CONNECTION +{family}.routes \"{}\"", words.join(" "));
        let _ = writeln!(text, "nmcli device reapply {}", way.dev);
    }
    text
}
