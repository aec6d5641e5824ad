//! Packets longer than the path carries vanish: find the length that passes, or agree on a shorter one.

use crate::facts::{Facts, route, sysctl};
use crate::{noted, remedy};
use thalweg_model::{Applicability, Code, Remedy};

/// What the kernel's probing falls back to. Source: Linux `TCP_BASE_MSS`, include/net/tcp.h.
const BASE: u64 = 1024;
/// Shorter ones tell nothing of the path: no link's MTU is below 576 (RFC 791).
const SHORTEST: u64 = 500;
/// Headers of IPv4 and IPv6 and TCP's, with timestamps.
const HEADERS: [u64; 2] = [52, 72];
/// IPv6 has no shorter packets (RFC 8200 §5).
const LEAST_IPV6: u64 = 1280;

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let code = Code::PathMtuBlackHole;
    let probing = facts.set(facts.sender(), sysctl("net.ipv4.tcp_mtu_probing"), "1").map(|change| {
        let probing = remedy(
            code,
            "Let the sender look for the length that passes (RFC 4821) once its timer has run out: it goes on with 1024 bytes \
             and tries longer ones from there."
                .to_owned(),
            vec![change],
            // It acts on connections alone that would hang otherwise.
            Applicability::Safe,
            "The first seconds of each connection, until the timer has told of the hole several times, and the slow growth \
             after that.",
        );
        let error = if facts.ipv6 { "packet too big" } else { "fragmentation needed" };
        let fault = format!("The fault itself is the filter that drops ICMP \"{error}\", or the tunnel that sends none.");
        noted(probing, &[&fault])
    });
    let shorter = shorter(facts);
    probing.into_iter().chain(shorter).collect()
}

/// Packets that are short enough from the start: as short as a router asked for, else as those that arrived where these are longer than
/// [`BASE`]. A shorter one may be the end of a response, whose length says nothing of the path.
fn shorter(facts: &Facts<'_>) -> Option<Remedy> {
    let headers = HEADERS[usize::from(facts.ipv6)];
    let told = facts.measured.link_mtu_bytes.map(u64::from).filter(|&mtu| mtu >= SHORTEST);
    let seen = facts.measured.delivered_segment_bytes;
    let payload = if (BASE..facts.segment()).contains(&seen) { seen } else { BASE };
    let mtu = told.unwrap_or(payload + headers);
    let mtu = if facts.ipv6 { mtu.max(LEAST_IPV6) } else { mtu };
    let change =
        facts.set(facts.sender(), route("mtu"), mtu.to_string()).filter(|_| mtu < facts.segment() + headers)?;
    let reason = if told.is_some() {
        format!(
            "Or send packets of at most {mtu} bytes on that route, as the router asks: something on the sender keeps the ICMP \
             errors from its kernel, a firewall rule most likely. Let type 3 code 4 (IPv6: type 2) in."
        )
    } else {
        format!(
            "Or send packets of at most {mtu} bytes on that route, which needs no timer to find. A router on the way can see \
             to it for all connections (TCPMSS in iptables, maxseg in nftables)."
        )
    };
    Some(remedy(
        Code::PathMtuBlackHole,
        reason,
        vec![change],
        Applicability::NeedsThought,
        "Data in the other direction; connections already open.",
    ))
}
