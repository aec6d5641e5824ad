//! Routes and their metrics.
//!
//! Source: linux/rtnetlink.h (`RTAX_*`).

use crate::error::HostError;
use crate::netlink::{Message, Netlink, attributes, u32_at};
use model::RouteSettings;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const RTA_DST: u16 = 1;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTAX_LOCK: u16 = 1;
const RTAX_INITCWND: u16 = 11;
const RTAX_RTO_MIN: u16 = 13;
const RTAX_INITRWND: u16 = 14;
const RTAX_QUICKACK: u16 = 15;
const RTAX_CC_ALGO: u16 = 16;

/// Names `ip route` gives the metrics, by number.
const METRIC_NAMES: [(u16, &str); 15] = [
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
];

/// Adds a route of the current namespace to the /24 network of `to`, by way of `gateway`.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn add(to: Ipv4Addr, gateway: Ipv4Addr, settings: &RouteSettings) -> Result<(), HostError> {
    let network = Ipv4Addr::from(u32::from(to) & 0xffff_ff00);
    let mut message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
    message.raw(&route_header(24)).attribute(RTA_DST, &network.octets()).attribute(RTA_GATEWAY, &gateway.octets());
    if *settings != RouteSettings::default() {
        message.nest(RTA_METRICS, |metrics| {
            let numbers = [
                (RTAX_INITCWND, settings.initcwnd),
                (RTAX_INITRWND, settings.initrwnd),
                (RTAX_QUICKACK, settings.quickack.map(u32::from)),
            ];
            for (kind, value) in numbers {
                if let Some(value) = value {
                    metrics.number(kind, value);
                }
            }
            if let Some(span) = settings.rto_min {
                // `ip route` locks it too: without the lock the kernel ignores it.
                metrics.number(RTAX_LOCK, 1 << RTAX_RTO_MIN);
                metrics.number(RTAX_RTO_MIN, u32::try_from(span.as_micros().div_ceil(1000)).unwrap_or(u32::MAX));
            }
            if let Some(name) = &settings.congctl {
                metrics.text(RTAX_CC_ALGO, name);
            }
        });
    }
    Netlink::open()?.request(&mut message, &format!("add the route to {network}/24 via {gateway}")).map(drop)
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
            if kind != RTA_METRICS {
                continue;
            }
            for (kind, value) in attributes(value) {
                if kind == RTAX_CC_ALGO {
                    let text = String::from_utf8_lossy(value);
                    found.insert("congctl".to_owned(), text.trim_end_matches('\0').to_owned());
                } else if let Some((_, name)) = METRIC_NAMES.iter().find(|(number, _)| *number == kind)
                    && *name != "lock"
                {
                    let number = u32_at(value, 0);
                    let text = if kind == RTAX_RTO_MIN { format!("{number}ms") } else { number.to_string() };
                    found.insert((*name).to_owned(), text);
                }
            }
        }
    }
    Ok(found)
}

/// `struct rtmsg`: IPv4, main table, static, universe, unicast.
const fn route_header(dst_len: u8) -> [u8; 12] {
    [libc::AF_INET as u8, dst_len, 0, 0, libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, 0, libc::RTN_UNICAST, 0, 0, 0, 0]
}
