//! Changing metrics of a route that is there.

use super::{
    FEATURES, METRIC_NAMES, RTA_DST, RTA_PRIORITY, RTAX_CC_ALGO, RTAX_CWND, RTAX_FEATURES, RTAX_LOCK, RTAX_RTO_MIN,
    RTAX_SSTHRESH, Route, address,
};
use crate::error::HostError;
use crate::netlink::u32_at;
use std::collections::BTreeMap;

impl Route {
    /// The unicast routes of the main table to `to`, which is `default` or an address and the bits of its prefix, with the
    /// preference `metric`; of the family of `ipv6`. More than one differ in their type of service or their next hops.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn find(to: &str, metric: u64, ipv6: bool) -> Result<Vec<Self>, HostError> {
        let is = |route: &Self| {
            route.is_of_the_main_table()
                && route.is_ipv6() == ipv6
                && route.preference() == metric
                && route.destination() == to
        };
        Ok(Self::every()?.into_iter().filter(is).collect())
    }

    fn preference(&self) -> u64 {
        self.attribute(RTA_PRIORITY).map_or(0, |value| u64::from(u32_at(value, 0)))
    }

    /// Whether it is a route of IPv6.
    pub fn is_ipv6(&self) -> bool {
        i32::from(self.header[0]) == libc::AF_INET6
    }

    /// Type of service of the packets that take it; zero is any.
    pub const fn type_of_service(&self) -> u8 {
        self.header[3]
    }

    /// `default`, or an address and the bits of its prefix.
    pub fn destination(&self) -> String {
        let address = self.attribute(RTA_DST).and_then(address);
        address.map_or_else(|| "default".to_owned(), |address| format!("{address}/{}", self.header[1]))
    }

    /// The same route with a metric by its `ip route` name; a value that begins with `lock ` is locked, and so are those that the
    /// kernel reads only then. A value of 0 takes the metric and its lock off, as the kernel keeps none of 0 (net/ipv4/metrics.c,
    /// `ip_metrics_convert`). `None` where there is no such metric, or its value is none.
    pub fn with_metric(&self, name: &str, value: &str) -> Option<Self> {
        let (locked, value) = value.strip_prefix("lock ").map_or((false, value), |value| (true, value));
        let mut route = self.clone();
        if value == "0" {
            let (kind, _) = METRIC_NAMES.iter().find(|(kind, known)| *known == name && *kind != RTAX_LOCK)?;
            route.take_off(*kind);
            return Some(route);
        }
        if name == "congctl" {
            let mut bytes = value.as_bytes().to_vec();
            bytes.push(0);
            // Source: include/net/tcp.h, `TCP_CA_NAME_MAX`.
            return (!value.is_empty() && bytes.len() <= 16).then(|| {
                route.put(RTAX_CC_ALGO, bytes);
                route
            });
        }
        let (kind, _) = METRIC_NAMES.iter().find(|(kind, known)| *known == name && *kind != RTAX_LOCK)?;
        let number: u32 = match *kind {
            RTAX_RTO_MIN => value.trim_end_matches("ms").parse().ok()?,
            RTAX_FEATURES => {
                let bit = |word: &str| FEATURES.iter().find(|(feature, _)| feature.name() == word).map(|(_, bit)| *bit);
                value.split_whitespace().map(bit).try_fold(0, |all, bit| Some(all | bit?))?
            }
            _ => value.parse().ok()?,
        };
        route.put(*kind, number.to_ne_bytes().to_vec());
        if locked || [RTAX_RTO_MIN, RTAX_CWND, RTAX_SSTHRESH].contains(kind) {
            let locks =
                route.metrics.iter().find(|(known, _)| *known == RTAX_LOCK).map_or(0, |(_, value)| u32_at(value, 0));
            route.put(RTAX_LOCK, (locks | 1 << kind).to_ne_bytes().to_vec());
        }
        Some(route)
    }

    /// Its metrics by their `ip route` names; times in milliseconds. A locked one's value begins with `lock `.
    pub fn metrics_text(&self) -> BTreeMap<String, String> {
        let mut message = crate::netlink::Message::new(0, 0);
        for (kind, value) in &self.metrics {
            message.attribute(*kind, value);
        }
        super::metrics_with_locks(message.body())
    }

    fn put(&mut self, kind: u16, value: Vec<u8>) {
        self.metrics.retain(|(known, _)| *known != kind);
        self.metrics.push((kind, value));
        self.metrics.sort();
    }

    fn take_off(&mut self, kind: u16) {
        let bit = 1u32.checked_shl(u32::from(kind)).unwrap_or_default();
        for (known, value) in &mut self.metrics {
            if *known == RTAX_LOCK {
                *value = (u32_at(value, 0) & !bit).to_ne_bytes().to_vec();
            }
        }
        self.metrics.retain(|(known, value)| *known != kind && !(*known == RTAX_LOCK && u32_at(value, 0) == 0));
    }

    /// The same route, whatever its metrics, as it is now.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn now(&self) -> Result<Option<Self>, HostError> {
        let is_this = |route: &Self| route.header == self.header && route.attributes == self.attributes;
        Ok(Self::find(&self.destination(), self.preference(), self.is_ipv6())?.into_iter().find(is_this))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::{inside, ip};

    #[test]
    fn a_route_that_expires_keeps_its_time_and_a_nexthop_object_its_route() {
        inside("route::change::tests::a_route_that_expires_keeps_its_time_and_a_nexthop_object_its_route", || {
            for line in [
                "link add v0 type veth peer name v1",
                "address add 10.0.0.1/24 dev v0",
                "address add 2001:db8:1::2/64 dev v0 nodad",
                "link set v0 up",
                "link set v1 up",
                "-6 route add default via 2001:db8:1::1 dev v0 proto ra pref high metric 5 expires 1800",
                "nexthop add id 10 via 10.0.0.254 dev v0",
                "route add 10.80.0.0/16 nhid 10",
            ] {
                ip(line);
            }
            let route = Route::find("default", 5, true).expect("read").pop().expect("there");
            let changed = route.with_metric("initcwnd", "40").expect("a metric");
            for (route, has) in [(&changed, true), (&route, false)] {
                route.replace().expect("replaced");
                let now = ip("-6 route show default");
                assert_eq!((now.contains("initcwnd 40"), now.lines().count()), (has, 1), "{now}");
                let seconds = now.split("expires ").nth(1).and_then(|rest| rest.split("sec").next()?.parse().ok());
                assert!(seconds.is_some_and(|seconds: u32| (1700..=1800).contains(&seconds)), "{now}");
            }
            let route = Route::find("10.80.0.0/16", 0, false).expect("read").pop().expect("there");
            route.with_metric("initcwnd", "40").expect("a metric").replace().expect("replaced");
            let now = ip("route show 10.80.0.0/16");
            assert!(now.contains("nhid 10") && now.contains("initcwnd 40"), "{now}");
            route.replace().expect("put back");
            assert!(!ip("route show 10.80.0.0/16").contains("initcwnd"));
        });
    }

    #[test]
    fn a_metric_of_zero_goes_with_its_lock() {
        inside("route::change::tests::a_metric_of_zero_goes_with_its_lock", || {
            for line in [
                "link add v0 type veth peer name v1",
                "address add 10.0.0.1/24 dev v0",
                "link set v0 up",
                "link set v1 up",
                "route add default via 10.0.0.254 cwnd lock 60 mtu 1400",
            ] {
                ip(line);
            }
            let route = Route::find("default", 0, false).expect("read").pop().expect("there");
            let changed = route.with_metric("cwnd", "0").expect("a metric");
            changed.replace().expect("replaced");
            let now = ip("route show default");
            assert!(!now.contains("cwnd") && !now.contains("lock") && now.contains("mtu 1400"), "{now}");
            assert_eq!(changed.now().expect("read").as_ref(), Some(&changed), "it reads back as it was written");
            route.replace().expect("put back");
            assert!(ip("route show default").contains("cwnd lock 60"));
        });
    }

    #[test]
    fn metrics_are_changed_one_route_at_a_time() {
        inside("route::change::tests::metrics_are_changed_one_route_at_a_time", || {
            for line in [
                "link add v0 type veth peer name v1",
                "address add 10.0.0.1/24 dev v0",
                "link set v0 up",
                "link set v1 up",
                "route add default via 10.0.0.254 metric 100 mtu 1400",
                "route add default via 10.0.0.253 metric 200",
            ] {
                ip(line);
            }
            // A veth has its carrier a moment after it is up.
            let routes = || ip("route show").replace("linkdown ", "");
            let before = routes();
            let route = Route::find("default", 100, false).expect("read").pop().expect("there");
            assert_eq!(Route::find("default", 300, false).expect("read"), Vec::new());
            let changed =
                [("initcwnd", "30"), ("cwnd", "lock 40"), ("rto_min", "5ms"), ("congctl", "reno"), ("features", "ecn")]
                    .iter()
                    .fold(route.clone(), |route, (name, value)| route.with_metric(name, value).expect(name));
            changed.replace().expect("replaced");
            let now = ip("route show default");
            for part in ["mtu 1400", "initcwnd 30", "cwnd lock 40", "rto_min lock 5ms", "congctl reno", "features ecn"]
            {
                assert_eq!(now.matches(part).count(), 1, "{part}: {now}");
            }
            assert_eq!(route.now().expect("read").as_ref(), Some(&changed));
            route.replace().expect("put back");
            assert_eq!(routes(), before);
            for (name, value) in
                [("speed", "9"), ("initcwnd", "many"), ("lock", "1"), ("features", "x"), ("congctl", "")]
            {
                assert_eq!(route.with_metric(name, value), None, "{name} {value}");
            }
        });
    }
}
