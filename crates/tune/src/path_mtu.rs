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
        let fault = "The fault itself is the filter that drops ICMP \"fragmentation needed\", or the tunnel that sends none.";
        noted(probing, &[fault])
    });
    let seen = facts.measured.delivered_segment_bytes;
    let payload = if (SHORTEST..facts.segment()).contains(&seen) { seen } else { BASE };
    let mtu = if facts.ipv6 { (payload + HEADERS[1]).max(LEAST_IPV6) } else { payload + HEADERS[0] };
    let change = facts.set(facts.sender(), route("mtu"), mtu.to_string()).filter(|_| payload < facts.segment());
    let shorter = change.map(|change| {
        remedy(
            code,
            format!(
                "Or send packets of at most {mtu} bytes on that route, which needs no timer to find. A router on the way can see \
                 to it for all connections (TCPMSS in iptables, maxseg in nftables)."
            ),
            vec![change],
            Applicability::NeedsThought,
            "Data in the other direction; connections already open.",
        )
    });
    probing.into_iter().chain(shorter).collect()
}
