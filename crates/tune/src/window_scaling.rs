//! The handshake left the window scale out: allow it again.

use crate::facts::{Facts, sysctl};
use crate::remedy;
use thalweg_model::{Applicability, Change, Code, Remedy, Side};

const SYSCTL: &str = "net.ipv4.tcp_window_scaling";

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let handshake = &facts.handshake;
    let off = |side: &Side| match facts.sysctl(*side, SYSCTL) {
        Some(value) => value == "0",
        // A server may only answer the option (RFC 7323 §2.2): where the client left it out, the server's is no sign.
        None => match side {
            Side::Client => handshake.wscale_client.is_none(),
            Side::Server => handshake.wscale_client.is_some() && handshake.wscale_server.is_none(),
        },
    };
    let changes: Vec<Change> = [Side::Client, Side::Server]
        .into_iter()
        .filter(off)
        .filter_map(|side| facts.set(side, sysctl(SYSCTL), "1"))
        .collect();
    if changes.is_empty() {
        return Vec::new();
    }
    vec![remedy(
        Code::WindowScalingMissing,
        "Allow window scaling (RFC 7323 §2): without it no window passes 65,535 bytes, whatever the buffer.".to_owned(),
        changes,
        Applicability::Safe,
        "Paths on which a middlebox strips the option from the SYN, and connections already open: the scale is agreed in the \
         handshake.",
    )]
}
