//! A route as `ip route` takes it.
//!
//! Source: ip-route(8); linux/rtnetlink.h (`RTA_*`, `struct rtnexthop`).

use super::{
    RTA_DST, RTA_GATEWAY, RTA_MULTIPATH, RTA_NH_ID, RTA_OIF, RTA_PRIORITY, RTA_TABLE, RTA_VIA, Route, address,
};
use crate::netlink::{attributes, u32_at};
use std::net::IpAddr;

const RTA_PREFSRC: u16 = 7;
const RTA_PREF: u16 = 20;
/// `struct rtnexthop` up to its attributes.
const NEXTHOP_LEN: usize = 8;
/// Source: linux/rtnetlink.h, `RTNH_F_ONLINK`.
const ONLINK: u32 = 4;
/// What `ip route` gives a route unless a command says otherwise. Source: linux/rtnetlink.h, `RTPROT_BOOT`.
const BOOT: u8 = 3;
/// Source: linux/rtnetlink.h, `RTPROT_*`; iproute2 takes other numbers as they are.
const PROTOCOLS: [(u8, &str); 4] = [(2, "kernel"), (4, "static"), (9, "ra"), (16, "dhcp")];
/// Source: linux/rtnetlink.h, `RT_SCOPE_*`; iproute2 takes other numbers as they are.
const SCOPES: [(u8, &str); 3] = [(0, "global"), (253, "link"), (254, "host")];
/// Source: linux/icmpv6.h, `ICMPV6_ROUTER_PREF_*`.
const PREFERENCES: [(u8, &str); 2] = [(1, "high"), (3, "low")];

impl Route {
    /// The route without its metrics as words of an `ip route` command: destination, next hops, and all that a command which replaces
    /// the route has to repeat. `None` where it has a part that is not written, such as an encapsulation.
    pub fn words(&self) -> Option<String> {
        let written = [RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC, RTA_MULTIPATH, RTA_TABLE, RTA_VIA];
        let is_written = |kind: &u16| written.contains(kind) || [RTA_PREF, RTA_NH_ID].contains(kind);
        if !self.attributes.iter().all(|(kind, _)| is_written(kind)) {
            return None;
        }
        let [_, _, _, tos, _, protocol, scope, ..] = self.header;
        let mut words = vec![self.destination()];
        if tos != 0 {
            words.push(format!("tos {tos:#x}"));
        }
        let nexthop = self.attribute(RTA_NH_ID).map(|id| u32_at(id, 0));
        match nexthop {
            // The object has the gateway and the device.
            Some(id) => words.push(format!("nhid {id}")),
            None => words.extend(way(self.attributes.iter().map(|(kind, value)| (*kind, value.as_slice())))?),
        }
        if protocol != BOOT {
            words.push(format!("proto {}", named(&PROTOCOLS, protocol)));
        }
        if scope != 0 {
            words.push(format!("scope {}", named(&SCOPES, scope)));
        }
        if let Some(source) = self.attribute(RTA_PREFSRC) {
            words.push(format!("src {}", address(source)?));
        }
        if let Some(metric) = self.attribute(RTA_PRIORITY) {
            words.push(format!("metric {}", u32_at(metric, 0)));
        }
        if let Some(&[preference]) = self.attribute(RTA_PREF)
            && preference != 0
        {
            words.push(format!("pref {}", named(&PREFERENCES, preference)));
        }
        if u32_at(&self.header, 8) & ONLINK != 0 && nexthop.is_none() {
            words.push("onlink".to_owned());
        }
        if let Some(hops) = self.attribute(RTA_MULTIPATH).filter(|_| nexthop.is_none()) {
            words.extend(nexthops(hops)?);
        }
        Some(words.join(" "))
    }
}

/// Gateway and device of a route, or of one of its next hops.
fn way<'a>(attributes: impl Iterator<Item = (u16, &'a [u8])>) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for (kind, value) in attributes {
        match kind {
            RTA_GATEWAY => words.push(format!("via {}", address(value)?)),
            RTA_VIA => words.push(format!("via {}", other_family(value)?)),
            RTA_OIF => words.push(format!("dev {}", crate::link::name(u32_at(value, 0))?)),
            _ => {}
        }
    }
    // The gateway comes first, as in `ip route`.
    words.sort_by_key(|word| word.starts_with("dev"));
    Some(words)
}

/// A gateway of the other family: `struct rtvia`.
fn other_family(value: &[u8]) -> Option<String> {
    let gateway = address(value.get(2..)?)?;
    Some(format!("{} {gateway}", if matches!(gateway, IpAddr::V4(_)) { "inet" } else { "inet6" }))
}

/// The next hops of a multipath route: an array of `struct rtnexthop` with attributes.
fn nexthops(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut words = Vec::new();
    while bytes.len() >= NEXTHOP_LEN {
        let len = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let own = attributes(bytes.get(NEXTHOP_LEN..len)?);
        if !own.iter().all(|(kind, _)| [RTA_GATEWAY, RTA_VIA].contains(kind)) {
            return None;
        }
        words.push("nexthop".to_owned());
        words.extend(way(own.into_iter())?);
        words.push(format!("dev {}", crate::link::name(u32_at(bytes, 4))?));
        words.push(format!("weight {}", u32::from(bytes[3]) + 1));
        if u32::from(bytes[2]) & ONLINK != 0 {
            words.push("onlink".to_owned());
        }
        bytes = &bytes[len.next_multiple_of(4).min(bytes.len())..];
    }
    Some(words)
}

fn named(names: &[(u8, &str)], number: u8) -> String {
    names.iter().find(|(known, _)| *known == number).map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::listing::list;
    use crate::namespaces::{inside, ip, routes};

    /// Each route is replaced by the command that its words make, and is as it was.
    #[test]
    fn the_words_of_a_route_make_the_same_route() {
        inside("route::words::tests::the_words_of_a_route_make_the_same_route", || {
            for line in [
                "link set lo up",
                "link add v0 type veth peer name v1",
                "address add 10.9.0.2/24 dev v0",
                "address add 2001:db8:1::2/64 dev v0 nodad",
                "link set v0 up",
                "link set v1 up",
                "route add default via 10.9.0.1 dev v0 proto static src 10.9.0.2 metric 100 mtu lock 1400",
                "route add 10.20.0.0/16 via 10.9.0.1 dev v0 proto 186",
                "route add 10.30.0.0/16 tos 0x10 via 10.9.0.1 dev v0",
                "route add 10.40.0.0/16 via 10.250.0.1 dev v0 onlink",
                "route add 10.50.0.0/16 metric 7 nexthop via 10.9.0.3 dev v0 weight 2 nexthop via inet6 2001:db8:1::4 dev v0",
                "nexthop add id 10 via 10.9.0.1 dev v0",
                "route add 10.80.0.0/16 nhid 10",
                "route add 10.81.0.0/16 via inet6 2001:db8:1::1 dev v0",
                "-6 route add default via 2001:db8:1::1 dev v0 proto static pref high metric 5",
                "-6 route add 2001:db8:50::/48 metric 9 nexthop via 2001:db8:1::3 dev v0 nexthop via 2001:db8:1::4 dev v0",
                "-6 route add 2001:db8:77::/48 via 2001:db8:1::1 dev v0 src 2001:db8:1::2",
            ] {
                ip(line);
            }
            let listed = || routes().concat();
            let before = listed();
            let mut count = 0;
            for route in list().expect("listed").iter().filter(|route| !route.to.starts_with("fe80")) {
                let words = route.words.as_deref().unwrap_or_else(|| panic!("{route:?}"));
                let family = if route.ipv6 { "-6 " } else { "" };
                let metrics: String = route.metrics.iter().map(|(name, value)| format!(" {name} {value}")).collect();
                ip(&format!("{family}route change {words}{metrics}"));
                // Of several routes with one destination `ip` lists the changed one at another place.
                let sorted = |text: &str| {
                    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                    lines.sort();
                    lines
                };
                assert_eq!(sorted(&listed()), sorted(&before), "{words}");
                count += 1;
            }
            assert!(count >= 12, "{count} routes");
        });
    }
}
