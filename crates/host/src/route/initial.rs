//! Initial windows of the routes that are there: set, and put back.
//!
//! Source: linux/rtnetlink.h (`struct rtmsg`, `RTA_*`, `RTAX_*`); rtnetlink(7).

use super::{
    HEADER_LEN, RTA_GATEWAY, RTA_METRICS, RTA_MULTIPATH, RTA_NH_ID, RTA_OIF, RTA_TABLE, RTA_VIA, RTAX_INITCWND,
    RTAX_INITRWND, address, dump,
};
use crate::error::HostError;
use crate::netlink::{Message, Netlink, attributes, u32_at};
use std::fmt;

const RTA_CACHEINFO: u16 = 12;
/// A nexthop object has these; the kernel refuses a route that repeats them. Source: net/ipv4/fib_frontend.c, `rtm_to_fib_config`.
const OF_NEXTHOP: [u16; 4] = [RTA_OIF, RTA_GATEWAY, RTA_MULTIPATH, RTA_VIA];
const RTA_EXPIRES: u16 = 23;
/// Ticks a second of the times that the kernel reports. Source: include/asm-generic/param.h, `USER_HZ`.
const TICKS_PER_S: i32 = 100;

/// A route as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub(super) header: [u8; HEADER_LEN],
    /// By their numbers; the metrics are apart.
    pub(super) attributes: Vec<(u16, Vec<u8>)>,
    pub(super) metrics: Vec<(u16, Vec<u8>)>,
}

impl Route {
    /// The unicast routes of the main table of the current namespace that lead past the neighbours: by a gateway, or to anywhere.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn leading_away() -> Result<Vec<Self>, HostError> {
        Ok(Self::every()?.into_iter().filter(Self::leads_away).collect())
    }

    /// Every route of the current namespace, of every table and kind.
    pub(super) fn every() -> Result<Vec<Self>, HostError> {
        dump(Self::read)
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (mut header, rest) = bytes.split_first_chunk::<HEADER_LEN>().map(|(header, rest)| (*header, rest))?;
        // Flags tell of the link's state; what may be set is `onlink` alone.
        let flags = u32_at(&header, 8) & 4;
        header[8..].copy_from_slice(&flags.to_ne_bytes());
        let mut route = Self { header, attributes: Vec::new(), metrics: Vec::new() };
        for (kind, value) in attributes(rest) {
            match kind {
                RTA_METRICS => route.metrics = attributes(value).into_iter().map(|(k, v)| (k, v.to_vec())).collect(),
                RTA_CACHEINFO => {}
                _ => route.attributes.push((kind, value.to_vec())),
            }
        }
        route.attributes.sort();
        route.metrics.sort();
        Some(route)
    }

    fn leads_away(&self) -> bool {
        let has_way = [RTA_GATEWAY, RTA_MULTIPATH].iter().any(|&kind| self.attribute(kind).is_some());
        self.is_of_the_main_table() && (has_way || self.header[1] == 0)
    }

    /// Whether it is a unicast route of the main table.
    pub(super) fn is_of_the_main_table(&self) -> bool {
        let table = self.attribute(RTA_TABLE).map_or(u32::from(self.header[4]), |value| u32_at(value, 0));
        table == u32::from(libc::RT_TABLE_MAIN) && self.header[7] == libc::RTN_UNICAST
    }

    pub(super) fn attribute(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(found, _)| *found == kind).map(|(_, value)| value.as_slice())
    }

    /// The same route with these initial windows, in segments; what is `None` stays.
    pub fn with(&self, initcwnd: Option<u32>, initrwnd: Option<u32>) -> Self {
        let mut route = self.clone();
        for (kind, value) in [(RTAX_INITCWND, initcwnd), (RTAX_INITRWND, initrwnd)] {
            if let Some(value) = value {
                route.metrics.retain(|(other, _)| *other != kind);
                route.metrics.push((kind, value.to_ne_bytes().to_vec()));
            }
        }
        route.metrics.sort();
        route
    }

    /// Whether this is the other one as it was set, whatever else was measured of it since.
    pub fn is_still(&self, other: &Self) -> bool {
        let windows = |route: &Self| {
            let wanted = |(kind, _): &&(u16, Vec<u8>)| [RTAX_INITCWND, RTAX_INITRWND].contains(kind);
            route.metrics.iter().filter(wanted).cloned().collect::<Vec<_>>()
        };
        self.header == other.header && self.attributes == other.attributes && windows(self) == windows(other)
    }

    /// Puts this route in place of the one to the same destination, which keeps the time that it has left.
    ///
    /// # Errors
    /// When the kernel refuses, as it does without `CAP_NET_ADMIN`.
    pub fn replace(&self) -> Result<(), HostError> {
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
        message.raw(&self.header);
        let has_nexthop = self.attribute(RTA_NH_ID).is_some();
        for (kind, value) in self.attributes.iter().filter(|(kind, _)| !(has_nexthop && OF_NEXTHOP.contains(kind))) {
            message.attribute(*kind, value);
        }
        if let Some(seconds) = self.seconds_left()? {
            message.number(RTA_EXPIRES, seconds);
        }
        // Without any metrics the kernel takes those of another route by the same nexthop object, such as the one that is replaced. Source:
        // net/ipv4/fib_semantics.c, `fib_create_info`.
        if !self.metrics.is_empty() || has_nexthop {
            message.nest(RTA_METRICS, |metrics| {
                for (kind, value) in &self.metrics {
                    metrics.attribute(*kind, value);
                }
            });
        }
        Netlink::open()?.request(&mut message, &format!("set the metrics of the route {self}")).map(drop)
    }

    /// How long the route that is there now stays, in seconds; `None` where it does not expire.
    fn seconds_left(&self) -> Result<Option<u32>, HostError> {
        let left = |bytes: &[u8]| Some((Self::read(bytes)?, seconds_left(bytes)?));
        let is_this = |route: &Self| route.header == self.header && route.attributes == self.attributes;
        Ok(dump(left)?.into_iter().find(|(route, _)| is_this(route)).map(|(_, seconds)| seconds))
    }

    /// As a text that [`Route::parse`] reads.
    pub fn to_text(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let list = |list: &[(u16, Vec<u8>)]| {
            list.iter().map(|(kind, value)| format!(" {kind}={}", hex(value))).collect::<String>()
        };
        format!("{}{} metrics{}", hex(&self.header), list(&self.attributes), list(&self.metrics))
    }

    /// Reads what [`Route::to_text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let unhex = |text: &str| {
            let byte = |at: usize| text.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
            (0..text.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>()
        };
        let list = |words: &str| {
            let pair =
                |word: &str| word.split_once('=').and_then(|(kind, value)| Some((kind.parse().ok()?, unhex(value)?)));
            words.split_whitespace().map(pair).collect::<Option<Vec<(u16, Vec<u8>)>>>()
        };
        let (route, metrics) = text.split_once(" metrics")?;
        let (header, attributes) = route.split_once(' ').unwrap_or((route, ""));
        let header = unhex(header)?.try_into().ok()?;
        Some(Self { header, attributes: list(attributes)?, metrics: list(metrics)? })
    }
}

/// How long a route stays, in seconds, such as one that a router announced; `None` where it does not expire.
///
/// Source: linux/rtnetlink.h, `struct rta_cacheinfo`; net/ipv6/route.c, `rt6_fill_node`.
pub(super) fn seconds_left(bytes: &[u8]) -> Option<u32> {
    let all = attributes(bytes.get(HEADER_LEN..)?);
    let (_, info) = all.iter().find(|(kind, _)| *kind == RTA_CACHEINFO)?;
    let ticks = u32_at(info, 8) as i32;
    // Zero is none; a route that is overdue has its last second.
    (ticks != 0).then(|| u32::try_from(ticks / TICKS_PER_S).unwrap_or(0).max(1))
}

/// As `ip route` prints it, as far as that distinguishes routes.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.destination())?;
        if let Some(gateway) = self.attribute(RTA_GATEWAY).and_then(address) {
            write!(f, " via {gateway}")?;
        }
        match self.attribute(RTA_OIF).map(|value| crate::link::name(u32_at(value, 0))) {
            Some(Some(name)) => write!(f, " dev {name}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::{inside, ip, routes};

    #[test]
    fn routes_are_as_they_were_afterwards() {
        inside("route::initial::tests::routes_are_as_they_were_afterwards", || {
            for line in [
                "link set lo up",
                "link add v0 type veth peer name v1",
                "address add 10.0.0.1/24 dev v0",
                "address add fd00::1/64 dev v0 nodad",
                "link set v0 up",
                "link set v1 up",
                "route add default via 10.0.0.254 metric 100 mtu 1400",
                "route add 192.0.2.0/24 via 10.0.0.253 initcwnd 20 rto_min 50ms",
                "route add 198.51.100.0/24 nexthop via 10.0.0.251 nexthop via 10.0.0.252",
                "-6 route add default via fd00::fe metric 50",
            ] {
                ip(line);
            }
            let before = routes();
            let own = Route::leading_away().expect("read");
            let mut names: Vec<String> = own.iter().map(ToString::to_string).collect();
            names.sort();
            let wanted = [
                "192.0.2.0/24 via 10.0.0.253 dev v0",
                "198.51.100.0/24",
                "default via 10.0.0.254 dev v0",
                "default via fd00::fe dev v0",
            ];
            assert_eq!(names, wanted);
            let raised: Vec<Route> = own.iter().map(|route| route.with(Some(30), Some(40))).collect();
            raised.iter().for_each(|route| route.replace().expect("replaced"));
            let [four, six] = routes();
            for metric in ["initcwnd 30", "initrwnd 40"] {
                assert_eq!((four.matches(metric).count(), six.matches(metric).count()), (3, 1), "{four}{six}");
            }
            assert!(
                four.contains("mtu 1400") && four.contains("rto_min lock 50ms") && !four.contains("initcwnd 20"),
                "{four}"
            );
            let now = Route::leading_away().expect("read");
            assert!(raised.iter().all(|route| now.iter().any(|other| other.is_still(route))));
            assert!(!own.iter().any(|route| now.iter().any(|other| other.is_still(route))));
            for route in &own {
                let read = Route::parse(&route.to_text()).expect("read");
                assert_eq!(&read, route);
                read.replace().expect("put back");
            }
            assert_eq!(routes(), before);
        });
    }

    #[test]
    fn odd_texts_are_no_routes() {
        for odd in ["", "metrics", "00 metrics", "0200 1=zz metrics", "020000000000000000000000 1=0 metrics x"] {
            assert_eq!(Route::parse(odd), None, "{odd}");
        }
    }
}
