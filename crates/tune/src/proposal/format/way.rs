//! The parts of a route that files of network configuration have names for.

use super::Format;
use crate::route_command::words;
use thalweg_model::RouteTarget;

/// The way of a route: what a file has to repeat of it.
pub(super) struct Way<'a> {
    /// Destination as a prefix.
    pub(super) to: &'a str,
    /// Device.
    pub(super) dev: &'a str,
    /// Gateway.
    pub(super) via: Option<&'a str>,
    /// Preference.
    pub(super) metric: u64,
    /// Source address of packets.
    pub(super) src: Option<&'a str>,
    /// The gateway is reached directly, whatever the addresses of the device.
    pub(super) onlink: bool,
}

/// The way of a route, for a file of `format`.
///
/// # Errors
/// A sentence that says what the file cannot repeat.
pub(super) fn way(route: &RouteTarget, format: Format) -> Result<Way<'_>, String> {
    let to = match (route.to.as_str(), route.ipv6) {
        ("default", true) => "::/0",
        ("default", false) => "0.0.0.0/0",
        (to, _) => to,
    };
    let mut way = Way { to, dev: "", via: None, metric: route.metric, src: None, onlink: false };
    let text = words(route).map_err(|unwritten| unwritten.why().to_owned())?;
    let mut rest = text.split(' ').skip(1);
    while let Some(word) = rest.next() {
        let has_no_name = || format!("{} has no name for '{word}' of the route.", format.name());
        match word {
            "onlink" => way.onlink = true,
            "via" => way.via = Some(rest.next().filter(|via| !via.starts_with("inet")).ok_or_else(has_no_name)?),
            "dev" => way.dev = rest.next().unwrap_or_default(),
            "src" => way.src = rest.next(),
            // Who made the route, and what follows from its gateway and its kind.
            "proto" | "scope" | "metric" => _ = rest.next(),
            "pref" if rest.next() == Some("medium") => {}
            _ => return Err(has_no_name()),
        }
    }
    if way.dev.is_empty() {
        return Err("The device of the route is not known.".to_owned());
    }
    Ok(way)
}
