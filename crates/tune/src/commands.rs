//! Changes as commands for a shell.

use std::net::IpAddr;
use thalweg_model::{Change, Setting, Side};

/// The commands that apply changes, one a line, each with the host it is for.
pub fn apply(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| command(change, Some(&change.to), peer(change.side))).collect()
}

/// The commands that undo them.
pub fn undo(changes: &[Change]) -> Vec<String> {
    let one = |change: &Change| match change.setting {
        // The route was made for it.
        Setting::Route(_) => {
            let (peer, host) = (peer(change.side), change.side.as_str());
            format!("{} route del {peer}   # on the {host}", ip(peer))
        }
        _ => command(change, change.from.as_deref(), peer(change.side)),
    };
    changes.iter().rev().map(one).collect()
}

/// The commands that apply changes between these ends, each `ip:port`.
pub fn between(changes: &[Change], client: &str, server: &str) -> Vec<String> {
    let one = |change: &Change| {
        let (own, far) = if change.side == Side::Client { (client, server) } else { (server, client) };
        let (own, far) = (address(own), address(far));
        if matches!(change.setting, Setting::Route(_)) && is_translated(far, own) {
            return format!(
                "# no command: {far} is a private address, which {own} sees translated to another   # on the {}",
                change.side.as_str()
            );
        }
        command(change, Some(&change.to), far)
    };
    changes.iter().map(one).collect()
}

/// The address of an end such as `10.0.0.1:80` or `[fd00::1]:80`.
fn address(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(address, _)| address).trim_matches(['[', ']'])
}

/// Whether `own` cannot know a peer by this address: it is private, and `own` is not (RFC 1918, RFC 4193, RFC 6598).
fn is_translated(peer: &str, own: &str) -> bool {
    let is_private = |address: &str| {
        address.parse::<IpAddr>().is_ok_and(|address| match address.to_canonical() {
            IpAddr::V4(address) => {
                let [first, second, ..] = address.octets();
                address.is_private() || address.is_link_local() || (first == 100 && second & 0xc0 == 64)
            }
            IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
        })
    };
    is_private(peer) && !is_private(own)
}

const fn peer(side: Side) -> &'static str {
    match side {
        Side::Client => "SERVER_ADDRESS",
        Side::Server => "CLIENT_ADDRESS",
    }
}

fn command(change: &Change, value: Option<&str>, peer: &str) -> String {
    let host = change.side.as_str();
    let text = match (&change.setting, value) {
        (Setting::Sysctl(name), Some(value)) => match limit(change, value) {
            // What it is is not known, so it is only ever raised.
            Some(max) => format!(
                "sysctl -w {name}=\"$(sysctl -n {name} | awk '{{ print $1, $2, ($3 > {max} ? $3 : {max}) }}')\""
            ),
            None => format!("sysctl -w {name}=\"{value}\""),
        },
        (Setting::Sysctl(name), None) => format!("sysctl -w {name}=…  (its value before is not known)"),
        (Setting::Socket(name), Some("auto")) => format!("# in the program: do not set {}", option(name)),
        (Setting::Socket(name), value) if name == "fastopen" => {
            fast_open(change.side, value.is_some_and(|value| value != "false"))
        }
        (Setting::Socket(name), Some("true")) => format!("# in the program: set {} to 1", option(name)),
        (Setting::Socket(name), Some(value)) => {
            format!("# in the program: set {} to {value}{}", option(name), bytes(name, value))
        }
        (Setting::Route(name), value) => route(name, value, peer),
        (Setting::Socket(name), None) => format!("# in the program: leave {} alone", option(name)),
    };
    format!("{text}   # on the {host}")
}

/// A route of the peer's own with the metric: by where its packets go now. The route that leads there now is most often that of all others,
/// too, and is left as it is. With no value, a route of its own without the metric.
fn route(name: &str, value: Option<&str>, peer: &str) -> String {
    if peer.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback()) {
        return format!("# no command: {peer} is the host itself, to which no route is set");
    }
    let ip = ip(peer);
    let way = format!("{ip} route get {peer} | grep -oE '(via( inet6)?|dev) [^ ]+' | xargs");
    match value {
        Some("auto") | None => format!("{ip} route replace {peer} $({way})"),
        Some(value) => format!("{ip} route replace {peer} $({way}) {name} {value}"),
    }
}

fn ip(peer: &str) -> &'static str {
    if peer.contains(':') { "ip -6" } else { "ip" }
}

/// The last of three values, where the ones before it are not known.
fn limit<'a>(change: &Change, value: &'a str) -> Option<&'a str> {
    let mut words = value.split_whitespace();
    let max = words.nth(2).filter(|_| words.next().is_none());
    max.filter(|_| change.from.is_none())
}

/// Fast Open has another option on each side. Source: Linux 4.11, `TCP_FASTOPEN_CONNECT`, include/uapi/linux/tcp.h.
fn fast_open(side: Side, on: bool) -> String {
    match (side, on) {
        (Side::Client, true) => "# in the program: set TCP_FASTOPEN_CONNECT to 1".to_owned(),
        (Side::Server, true) => {
            "# in the program: set TCP_FASTOPEN to the length of its queue, such as 1024".to_owned()
        }
        (Side::Client, false) => "# in the program: do not set TCP_FASTOPEN_CONNECT".to_owned(),
        (Side::Server, false) => "# in the program: do not set TCP_FASTOPEN".to_owned(),
    }
}

/// A rate as the option takes it.
fn bytes(name: &str, value: &str) -> String {
    let rate = value.parse::<thalweg_units::Rate>().ok().filter(|_| name == "max_pacing_rate");
    rate.map_or_else(String::new, |rate| format!(" ({} bytes per second)", rate.bytes_per_second()))
}

/// The kernel's name of a socket option.
fn option(name: &str) -> String {
    match name {
        "sndbuf" | "rcvbuf" | "max_pacing_rate" => format!("SO_{}", name.to_uppercase()),
        _ => format!("TCP_{}", name.to_uppercase()),
    }
}
