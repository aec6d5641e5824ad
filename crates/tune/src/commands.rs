//! Changes as commands for a shell.

use model::{Change, Remedy, Setting, Side};

/// The commands that apply a remedy, one a line, each with the host it is for.
pub fn apply(remedy: &Remedy) -> Vec<String> {
    remedy.changes.iter().map(|change| command(change, Some(&change.to))).collect()
}

/// The commands that undo it.
pub fn undo(remedy: &Remedy) -> Vec<String> {
    remedy.changes.iter().rev().map(|change| command(change, change.from.as_deref())).collect()
}

fn command(change: &Change, value: Option<&str>) -> String {
    let (host, peer) = match change.side {
        Side::Client => ("client", "SERVER_ADDRESS"),
        Side::Server => ("server", "CLIENT_ADDRESS"),
    };
    let text = match (&change.setting, value) {
        (Setting::Sysctl(name), Some(value)) => format!("sysctl -w {name}=\"{value}\""),
        (Setting::Sysctl(name), None) => format!("sysctl -w {name}=…  (its value before is not known)"),
        // `ip route change` replaces all of a route's metrics: what `ip route show` prints goes in front.
        (Setting::Route(name), Some(value)) => {
            format!("ip route change $(ip route show to match {peer} | tail -1) {name} {value}")
        }
        (Setting::Route(name), None) => {
            format!("ip route change $(ip route show to match {peer} | tail -1 | sed 's/ {name} [^ ]*//')")
        }
        (Setting::Socket(name), Some("auto")) => format!("# in the program: do not set SO_{}", name.to_uppercase()),
        (Setting::Socket(name), Some(value)) => format!("# in the program: set {name} to {value}"),
        (Setting::Socket(name), None) => format!("# in the program: leave {name} alone"),
    };
    format!("{text}   # on the {host}")
}
