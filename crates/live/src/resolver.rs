//! Names behind the path: the far end stands for the host's resolver.

use crate::address::{self, Family};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use thalweg_host::confined::ReplacedFile;
use thalweg_model::LiveHost;

const RESOLV_CONF: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";
const PORT: u16 = 53;

/// The first name server of this host, by /etc/resolv.conf.
pub(crate) fn of_this_host() -> Option<SocketAddr> {
    let text = fs::read_to_string(RESOLV_CONF).ok()?;
    let servers = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let mut addresses = servers.filter_map(|address| address.trim().parse::<IpAddr>().ok());
    addresses.next().map(|address| SocketAddr::new(address, PORT))
}

/// The files by which programs behind the path find names: the ends are `client` and `server`, and questions go to the far
/// end, which answers them where it has a resolver.
pub(crate) fn files(has_resolver: bool) -> Vec<ReplacedFile> {
    let ends = Family::ALL.map(|family| [(address::far(family), "server"), (address::near(family), "client")]);
    let mut files = vec![hosts(ends.into_iter().flatten())];
    if has_resolver {
        let text = fs::read_to_string(RESOLV_CONF).unwrap_or_default();
        let others = text.lines().filter(|line| !line.trim().starts_with("nameserver"));
        let mut content: String = others.flat_map(|line| [line, "\n"]).collect();
        content.push_str(&format!("nameserver {}\n", address::far(Family::V4)));
        files.push(ReplacedFile { path: RESOLV_CONF, content });
    }
    files
}

/// The files by which programs on hosts of a topology find each other by name, and nobody else.
pub(crate) fn alone(all: &[LiveHost]) -> Vec<ReplacedFile> {
    // Without a name server the C library asks 127.0.0.1, where nobody answers: a name that is not there is unknown at once.
    let nobody = ReplacedFile { path: RESOLV_CONF, content: String::new() };
    vec![hosts(all.iter().map(|host| (host.address, host.name.as_str()))), nobody]
}

/// This host's file of names, with these as well.
fn hosts<'a>(names: impl Iterator<Item = (IpAddr, &'a str)>) -> ReplacedFile {
    let own = fs::read_to_string(HOSTS).unwrap_or_default();
    let mut content = format!("{}\n", own.trim_end());
    names.for_each(|(address, name)| content.push_str(&format!("{address} {name}\n")));
    ReplacedFile { path: HOSTS, content }
}
