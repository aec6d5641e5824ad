//! Routes and their metrics.
//!
//! Source: linux/rtnetlink.h (`RTAX_*`).

mod change;
mod initial;
mod listing;
mod words;

pub use initial::Route;
pub use listing::{Listed, list};

use crate::error::{HostError, wrap};
use crate::netlink::{Message, Netlink, attributes, u32_at};
use crate::netns::NetNs;
use crate::refusal::explain;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use thalweg_model::{HostSettings, RouteFeature, RouteSettings};

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_NH_ID: u16 = 30;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_SSTHRESH: u16 = 6;
const RTAX_CWND: u16 = 7;
const RTAX_ADVMSS: u16 = 8;
const RTAX_INITCWND: u16 = 11;
const RTAX_FEATURES: u16 = 12;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_INITRWND: u16 = 14;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;
const FEATURES: [(RouteFeature, u32); 2] = [(RouteFeature::Ecn, 1 << 0), (RouteFeature::TcpUsecTs, 1 << 4)];

/// Names `ip route` gives the metrics, by number.
const METRIC_NAMES: [(u16, &str); 16] = [
    (1, "lock"),
    (2, "mtu"),
    (3, "window"),
    (4, "rtt"),
    (5, "rttvar"),
    (6, "ssthresh"),
    (7, "cwnd"),
    (8, "advmss"),
    (9, "reordering"),
    (10, "hoplimit"),
    (11, "initcwnd"),
    (12, "features"),
    (13, "rto_min"),
    (14, "initrwnd"),
    (15, "quickack"),
    (17, "fastopen_no_cookie"),
];

/// Length of `struct rtmsg`.
const HEADER_LEN: usize = 12;

/// What `read` makes of the routes of the current namespace, of both families; it is given a `struct rtmsg` and its attributes.
fn dump<T>(read: impl Fn(&[u8]) -> Option<T>) -> Result<Vec<T>, HostError> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut message = Message::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP);
        let mut header = [0; HEADER_LEN];
        header[0] = family as u8;
        message.raw(&header);
        let answers = Netlink::open()?.request(&mut message, "read the routes")?;
        found.extend(answers.iter().filter_map(|answer| read(answer)));
    }
    Ok(found)
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value).ok().map(|four| Ipv4Addr::from(four).into()),
        16 => <[u8; 16]>::try_from(value).ok().map(|sixteen| Ipv6Addr::from(sixteen).into()),
        _ => None,
    }
}

/// Adds a route of the current namespace to a network, given by its address and the bits of its prefix, by way of
/// `gateway`.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn add(network: Ipv4Addr, bits: u8, gateway: Ipv4Addr, settings: &RouteSettings) -> Result<(), HostError> {
    let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    message.raw(&route_header(bits)).attribute(RTA_DST, &network.octets()).attribute(RTA_GATEWAY, &gateway.octets());
    if *settings != RouteSettings::default() {
        message.nest(RTA_METRICS, |metrics| fill(metrics, settings));
    }
    let result = Netlink::open()?.request(&mut message, &format!("add the route to {network}/{bits} via {gateway}"));
    let given = HostSettings { route: settings.clone(), ..HostSettings::default() }.given();
    result.map(drop).map_err(|error| given.iter().fold(error, |error, (setting, value)| explain(error, setting, value)))
}

/// Sends everything of the current namespace that has no other route out of device `index`, IPv4 and IPv6.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn add_default(index: u32) -> Result<(), HostError> {
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = route_header(0);
        header[0] = family as u8;
        let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        message.raw(&header).number(RTA_OIF, index);
        Netlink::open()?.request(&mut message, &format!("add the default route by device {index}"))?;
    }
    Ok(())
}

fn fill(metrics: &mut Message, settings: &RouteSettings) {
    let rto_min = settings.rto_min.map(|span| u32::try_from(span.as_micros().div_ceil(1000)).unwrap_or(u32::MAX));
    let bits = |feature: &RouteFeature| FEATURES.iter().find(|line| line.0 == *feature).map_or(0, |line| line.1);
    let features = settings.features.iter().map(bits).fold(0, |all, bit| all | bit);
    // Locked as `ip route` can lock them: without the lock the kernel ignores rto_min and cwnd, and learns ssthresh again.
    let locked = [(RTAX_RTO_MIN, rto_min), (RTAX_CWND, settings.cwnd), (RTAX_SSTHRESH, settings.ssthresh)];
    let lock = locked.iter().filter(|(_, value)| value.is_some()).fold(0, |all, (kind, _)| all | 1 << kind);
    let free = [
        (RTAX_LOCK, (lock != 0).then_some(lock)),
        (RTAX_MTU, settings.mtu),
        (RTAX_ADVMSS, settings.advmss),
        (RTAX_INITCWND, settings.initcwnd),
        (RTAX_INITRWND, settings.initrwnd),
        (RTAX_QUICKACK, settings.quickack.map(u32::from)),
        (RTAX_FEATURES, (features != 0).then_some(features)),
    ];
    for (kind, value) in free.into_iter().chain(locked) {
        if let Some(value) = value {
            metrics.number(kind, value);
        }
    }
    if let Some(name) = &settings.congctl {
        metrics.text(RTAX_CC_ALGO, name);
    }
}

/// Makes each of two hosts know the other's TCP metrics by one connection that ends, from `client` to `server` at `to`.
///
/// The kernel takes `cwnd` and `ssthresh` of a route only from its cache of metrics, where a host comes when a connection to
/// it ends: without this, the first connection would ignore them. Done before the path has its delay, so that what the kernel
/// remembers of round-trip times bounds nothing later. Source: net/ipv4/tcp_metrics.c, `tcp_init_metrics`,
/// `tcp_update_metrics`.
///
/// # Errors
/// When there is no way from one to the other.
pub fn learn(server: &NetNs, client: &NetNs, to: Ipv4Addr) -> Result<(), HostError> {
    let act = || format!("learn the metrics of {to}");
    let listener = wrap(server.run(|| Ok(TcpListener::bind((to, 0))))?, act)?;
    let address = wrap(listener.local_addr(), act)?;
    let near = wrap(client.run(|| Ok(TcpStream::connect(address)))?, act)?;
    let (far, _) = wrap(listener.accept(), act)?;
    // The server's round-trip time is known from the handshake, so it may be the first to close.
    for (one, other) in [(&far, &near), (&near, &far)] {
        wrap(one.shutdown(Shutdown::Write), act)?;
        let mut end: &TcpStream = other;
        wrap(end.read(&mut [0; 1]), act)?;
    }
    Ok(())
}

/// Reads the metrics of the route the current namespace takes to `to`, by their `ip route` names; times in milliseconds.
///
/// # Errors
/// When there is no such route.
pub fn metrics(to: Ipv4Addr) -> Result<BTreeMap<String, String>, HostError> {
    let mut message = Message::new(libc::RTM_GETROUTE, 0);
    message.raw(&route_header(32)).attribute(RTA_DST, &to.octets());
    let answers = Netlink::open()?.request(&mut message, &format!("read the route to {to}"))?;
    let mut found = BTreeMap::new();
    for answer in &answers {
        for (kind, value) in attributes(answer.get(12..).unwrap_or_default()) {
            if kind == RTA_METRICS {
                found.extend(metric_texts(value));
            }
        }
    }
    Ok(found)
}

/// Metrics by their `ip route` names; times in milliseconds. Locks are left out.
fn metric_texts(bytes: &[u8]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (kind, value) in attributes(bytes) {
        if kind == RTAX_CC_ALGO {
            let text = String::from_utf8_lossy(value);
            found.insert("congctl".to_owned(), text.trim_end_matches('\0').to_owned());
        } else if let Some((_, name)) = METRIC_NAMES.iter().find(|(number, _)| *number == kind)
            && *name != "lock"
        {
            let number = u32_at(value, 0);
            let text = match kind {
                RTAX_RTO_MIN => format!("{number}ms"),
                RTAX_FEATURES => {
                    let set = FEATURES.iter().filter(|(_, bit)| number & bit != 0);
                    set.map(|(feature, _)| feature.name()).collect::<Vec<_>>().join(" ")
                }
                _ => number.to_string(),
            };
            found.insert((*name).to_owned(), text);
        }
    }
    found
}

/// Metrics by their `ip route` names; times in milliseconds. A locked one's value begins with `lock `.
fn metrics_with_locks(bytes: &[u8]) -> BTreeMap<String, String> {
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

/// `struct rtmsg`: IPv4, main table, static, universe, unicast.
const fn route_header(dst_len: u8) -> [u8; 12] {
    [libc::AF_INET as u8, dst_len, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, 0, libc::RTN_UNICAST, 0, 0, 0, 0]
}
