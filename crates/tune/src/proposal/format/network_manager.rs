//! Commands of NetworkManager's `nmcli`. Source: nm-settings-nmcli(5), `ipv4.routes`.

use super::{attribute, by_route, header, prefix};
use std::fmt::Write;
use thalweg_model::{PlannedChange, TunePlan};

pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    text += "# CONNECTION is the profile's name: nmcli -f NAME,DEVICE connection show --active\n";
    for (route, attributes) in by_route(changes) {
        let family = if prefix(route).contains(':') { "ipv6" } else { "ipv4" };
        let mut words = vec![prefix(route).to_owned()];
        words.extend(route.via.clone());
        if route.metric > 0 {
            words.push(route.metric.to_string());
        }
        for (name, value) in attributes {
            let Some(known) = attribute(name).and_then(|names| names.network_manager) else { continue };
            match value.strip_prefix("lock ") {
                Some(value) => words.extend([format!("{known}={value}"), format!("lock-{known}=true")]),
                None if name == "quickack" => {
                    words.push(format!("{known}={}", if value == "1" { "true" } else { "false" }))
                }
                None => words.push(format!("{known}={}", value.trim_end_matches("ms"))),
            }
        }
        let _ = writeln!(text, "nmcli connection modify CONNECTION +{family}.routes \"{}\"", words.join(" "));
        let dev = route.dev.as_deref().unwrap_or("DEVICE");
        let _ = writeln!(text, "nmcli device reapply {dev}");
    }
    text
}
