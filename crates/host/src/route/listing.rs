//! The routes of the main table, with the metrics that bear on TCP.
//!
//! Source: linux/rtnetlink.h (`struct rtmsg`, `RTA_*`, `RTAX_*`); rtnetlink(7).

use super::{HEADER_LEN, METRIC_NAMES, RTA_DST, RTA_GATEWAY, RTA_METRICS, RTAX_LOCK, dump, metric_texts};
use crate::error::HostError;
use crate::netlink::{attributes, u32_at};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const RTA_OIF: u16 = 4;
const RTA_PRIORITY: u16 = 6;
const RTA_TABLE: u16 = 15;
/// Source: linux/rtnetlink.h, `RTNH_F_DEAD`, `RTNH_F_LINKDOWN`.
const LINK_DOWN: u32 = 1 | 16;

/// A route as the kernel reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// `default`, or an address and the bits of its prefix.
    pub to: String,
    /// Preference: of several routes to one destination the one with the least is taken.
    pub metric: u32,
    /// Gateway.
    pub via: Option<IpAddr>,
    /// Name of the device.
    pub dev: Option<String>,
    /// Its link is down.
    pub link_down: bool,
    /// Metrics by their `ip route` names; a locked one's value begins with `lock `.
    pub metrics: BTreeMap<String, String>,
}

/// The unicast routes of the main table of the current namespace, of both families.
///
/// # Errors
/// When the kernel does not tell.
pub fn list() -> Result<Vec<Listed>, HostError> {
    dump(read)
}

fn read(bytes: &[u8]) -> Option<Listed> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let mut table = u32::from(header[4]);
    let mut route =
        Listed { link_down: u32_at(header, 8) & LINK_DOWN != 0, to: "default".to_owned(), ..Listed::default() };
    for (kind, value) in attributes(rest) {
        match kind {
            RTA_TABLE => table = u32_at(value, 0),
            RTA_PRIORITY => route.metric = u32_at(value, 0),
            RTA_GATEWAY => route.via = address(value),
            RTA_OIF => route.dev = crate::link::name(u32_at(value, 0)),
            RTA_DST => route.to = address(value).map(|to| format!("{to}/{}", header[1]))?,
            RTA_METRICS => route.metrics = metrics(value),
            _ => {}
        }
    }
    (table == u32::from(libc::RT_TABLE_MAIN) && header[7] == libc::RTN_UNICAST).then_some(route)
}

/// Metrics with their locks.
fn metrics(bytes: &[u8]) -> BTreeMap<String, String> {
    let all = attributes(bytes);
    let locks = all.iter().find(|(kind, _)| *kind == RTAX_LOCK).map_or(0, |(_, value)| u32_at(value, 0));
    let mut texts = metric_texts(bytes);
    for (kind, name) in METRIC_NAMES.iter().filter(|(kind, _)| locks & 1 << kind != 0) {
        // The kernel also lists locked metrics that have no value.
        if *kind != RTAX_LOCK
            && let Some(text) = texts.get_mut(*name)
        {
            *text = format!("lock {text}");
        }
    }
    texts
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value).ok().map(|four| Ipv4Addr::from(four).into()),
        16 => <[u8; 16]>::try_from(value).ok().map(|sixteen| Ipv6Addr::from(sixteen).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::inside;
    use std::process::Command;

    #[test]
    fn routes_are_listed_as_ip_route_has_them() {
        inside("route::listing::tests::routes_are_listed_as_ip_route_has_them", || {
            for line in [
                "link set lo up",
                "link add v0 type veth peer name v1",
                "address add 10.0.0.1/24 dev v0",
                "link set v0 up",
                "link set v1 up",
                "route add default via 10.0.0.254 metric 100 initcwnd 20",
                "route add 192.0.2.0/24 via 10.0.0.253 rto_min 50ms cwnd lock 30",
            ] {
                let status = Command::new("ip").args(line.split(' ')).status().expect("ip");
                assert!(status.success(), "{line}");
            }
            let all = list().expect("listed");
            let of = |to: &str| all.iter().find(|route| route.to == to).unwrap_or_else(|| panic!("{to}: {all:?}"));
            let default = of("default");
            assert_eq!((default.metric, default.metrics["initcwnd"].as_str()), (100, "20"));
            assert_eq!((default.via, default.dev.as_deref()), (Some(Ipv4Addr::new(10, 0, 0, 254).into()), Some("v0")));
            let far = of("192.0.2.0/24");
            assert_eq!((far.metrics["rto_min"].as_str(), far.metrics["cwnd"].as_str()), ("lock 50ms", "lock 30"));
            assert_eq!(of("10.0.0.0/24").metrics, BTreeMap::new());
        });
    }
}
