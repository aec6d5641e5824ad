//! The send buffer holds less than the path: raise what it may grow to.

use crate::{Facts, human, round_up};
use model::{Applicability, Change, Code, Remedy, Setting};

/// The kernel sizes a send buffer for twice the congestion window, overhead included, and the overhead of a packet can be
/// as much as its payload. Source: net/ipv4/tcp_input.c, `tcp_sndbuf_expand`.
const TIMES_BDP: u64 = 4;
/// Where the path's rate is not known: so many times the limit there is, then measure again.
const STEP: u64 = 4;

pub(crate) fn plan(facts: &Facts<'_>) -> Option<Remedy> {
    let side = facts.sender();
    let limit = facts.sysctl(side, "net.ipv4.tcp_wmem")?.split_whitespace().nth(2)?.parse::<u64>().ok()?;
    let (needed, why) = match facts.bdp() {
        Some(bdp) => (
            round_up(bdp.get() * TIMES_BDP),
            format!(
                "the path holds {}, and every byte in flight stays in the buffer until it is acknowledged",
                human(bdp)
            ),
        ),
        None => (
            round_up(limit * STEP),
            "the path's rate is not known: four times the limit, then measure again".to_owned(),
        ),
    };
    let mut changes: Vec<Change> = facts.raise(side, "net.ipv4.tcp_wmem", needed).into_iter().collect();
    if facts.fixed_buffers.contains(&(side, "sndbuf")) {
        changes.push(Change {
            side,
            setting: Setting::Socket("sndbuf".to_owned()),
            from: Some("set by the program".to_owned()),
            to: "auto".to_owned(),
        });
    }
    if changes.is_empty() {
        return None;
    }
    Some(Remedy {
        code: Code::SendBuffer,
        reason: format!("Let the send buffer grow to {needed}: {why}."),
        changes,
        applicability: Applicability::Safe,
        wont_help:
            "Connections whose program sets SO_SNDBUF itself (that ends auto-tuning), and a program that has nothing \
                    to send."
                .to_owned(),
    })
}
