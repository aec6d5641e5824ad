//! Changes as commands for a shell.

use model::{Change, Remedy, Setting, Side};

/// The commands that apply a remedy, one a line, each with the host it is for.
pub fn apply(remedy: &Remedy) -> Vec<String> {
    remedy.changes.iter().map(|change| command(change, Some(&change.to), peer(change.side))).collect()
}

/// The commands that undo it.
pub fn undo(remedy: &Remedy) -> Vec<String> {
    remedy.changes.iter().rev().map(|change| command(change, change.from.as_deref(), peer(change.side))).collect()
}

/// The commands that apply a remedy between these ends, each `ip:port`.
pub(crate) fn between(remedy: &Remedy, client: &str, server: &str) -> Vec<String> {
    let one = |change: &Change| {
        let far = if change.side == Side::Client { server } else { client };
        command(change, Some(&change.to), address(far))
    };
    remedy.changes.iter().map(one).collect()
}

/// The address of an end such as `10.0.0.1:80` or `[fd00::1]:80`.
fn address(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(address, _)| address).trim_matches(['[', ']'])
}

const fn peer(side: Side) -> &'static str {
    match side {
        Side::Client => "SERVER_ADDRESS",
        Side::Server => "CLIENT_ADDRESS",
    }
}

fn command(change: &Change, value: Option<&str>, peer: &str) -> String {
    let host = match change.side {
        Side::Client => "client",
        Side::Server => "server",
    };
    let ip = if peer.contains(':') { "ip -6" } else { "ip" };
    // `ip route change` replaces all of a route's metrics: what `ip route show` prints goes in front.
    let found = format!("{ip} route show to match {peer} | tail -1");
    let text = match (&change.setting, value) {
        (Setting::Sysctl(name), Some(value)) => match limit(change, value) {
            // What it is is not known, so it is only ever raised.
            Some(max) => format!(
                "sysctl -w {name}=\"$(sysctl -n {name} | awk '{{ print $1, $2, ($3 > {max} ? $3 : {max}) }}')\""
            ),
            None => format!("sysctl -w {name}=\"{value}\""),
        },
        (Setting::Sysctl(name), None) => format!("sysctl -w {name}=…  (its value before is not known)"),
        (Setting::Route(name), Some("auto") | None) => {
            format!("{ip} route change $({found} | sed -E 's/ {name} (lock )?[^ ]+//')")
        }
        (Setting::Route(name), Some(value)) => {
            format!("{ip} route change $({found} | sed -E 's/ {name} (lock )?[^ ]+//') {name} {value}")
        }
        (Setting::Socket(name), Some("auto")) => format!("# in the program: do not set {}", option(name)),
        (Setting::Socket(name), Some("true")) => format!("# in the program: set {} to 1", option(name)),
        (Setting::Socket(name), Some(value)) => {
            format!("# in the program: set {} to {value}{}", option(name), bytes(name, value))
        }
        (Setting::Socket(name), None) => format!("# in the program: leave {} alone", option(name)),
    };
    format!("{text}   # on the {host}")
}

/// The last of three values, where the ones before it are not known.
fn limit<'a>(change: &Change, value: &'a str) -> Option<&'a str> {
    let mut words = value.split_whitespace();
    let max = words.nth(2).filter(|_| words.next().is_none());
    max.filter(|_| change.from.is_none())
}

/// A rate as the option takes it.
fn bytes(name: &str, value: &str) -> String {
    let rate = value.parse::<units::Rate>().ok().filter(|_| name == "max_pacing_rate");
    rate.map_or_else(String::new, |rate| format!(" ({} bytes per second)", rate.bytes_per_second()))
}

/// The kernel's name of a socket option.
fn option(name: &str) -> String {
    match name {
        "sndbuf" | "rcvbuf" | "max_pacing_rate" => format!("SO_{}", name.to_uppercase()),
        _ => format!("TCP_{}", name.to_uppercase()),
    }
}
