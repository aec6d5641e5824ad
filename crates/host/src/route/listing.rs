//! The routes of the main table, with the metrics that bear on TCP.
//!
//! Source: linux/rtnetlink.h (`struct rtmsg`, `RTA_*`, `RTAX_*`); rtnetlink(7).

use super::initial::seconds_left;
use super::{HEADER_LEN, RTA_GATEWAY, RTA_OIF, RTA_PRIORITY, Route, address, dump};
use crate::error::HostError;
use crate::netlink::u32_at;
use std::collections::BTreeMap;
use std::net::IpAddr;

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
    /// Type of service of the packets that take it; 0 is any.
    pub tos: u8,
    /// It is of IPv6.
    pub ipv6: bool,
    /// Its link is down.
    pub link_down: bool,
    /// It goes away by itself, as those that a router announced.
    pub expires: bool,
    /// The route without its metrics as words of an `ip route` command; see [`Route::words`].
    pub words: Option<String>,
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
    let route = Route::read(bytes)?;
    route.is_of_the_main_table().then(|| Listed {
        to: route.destination(),
        metric: route.attribute(RTA_PRIORITY).map_or(0, |value| u32_at(value, 0)),
        via: route.attribute(RTA_GATEWAY).and_then(address),
        dev: route.attribute(RTA_OIF).and_then(|value| crate::link::name(u32_at(value, 0))),
        tos: route.type_of_service(),
        ipv6: route.is_ipv6(),
        link_down: bytes.get(..HEADER_LEN).is_some_and(|header| u32_at(header, 8) & LINK_DOWN != 0),
        expires: seconds_left(bytes).is_some(),
        words: route.words(),
        metrics: route.metrics_text(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::{inside, ip};
    use std::net::Ipv4Addr;

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
                ip(line);
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
