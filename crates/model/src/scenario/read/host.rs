//! The `[client]` and `[server]` of a scenario.

use crate::document::{DocumentError, Section};
use crate::settings::{HostSettings, RouteSettings, SocketSettings};

pub(super) fn read(section: &Section<'_>) -> Result<HostSettings, DocumentError> {
    let mut host = HostSettings::default();
    if let Some(sysctl) = section.section("sysctl")? {
        for (key, node) in sysctl.entries() {
            let fine = key.starts_with("net.")
                && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
            if !fine || key.contains("..") {
                return Err(node.error(
                    format!("'{key}' is no network sysctl"),
                    Some("quote the whole name: sysctl.\"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"".to_owned()),
                ));
            }
            host.sysctl.insert(key.clone(), sysctl.require(key, sysctl.text(key)?)?.to_owned());
        }
    }
    if let Some(route) = section.section("route")? {
        host.route = RouteSettings {
            initcwnd: route.quantity("initcwnd")?,
            initrwnd: route.quantity("initrwnd")?,
            rto_min: route.quantity("rto_min")?,
            quickack: route.flag("quickack")?,
            congctl: route.text("congctl")?.map(str::to_owned),
        };
        route.finish()?;
    }
    if let Some(socket) = section.section("socket")? {
        host.socket = SocketSettings {
            congestion: socket.text("congestion")?.map(str::to_owned),
            sndbuf: socket.quantity("sndbuf")?,
            rcvbuf: socket.quantity("rcvbuf")?,
            notsent_lowat: socket.quantity("notsent_lowat")?,
            nodelay: socket.flag("nodelay")?,
            max_pacing_rate: socket.quantity("max_pacing_rate")?,
        };
        socket.finish()?;
    }
    section.finish()?;
    Ok(host)
}
