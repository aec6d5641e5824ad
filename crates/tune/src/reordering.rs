//! Packets overtake each other: send so that what is taken for loss does no harm, or wait longer before anything is.

use crate::facts::{Facts, sysctl};
use crate::{advice, congestion, remedy};
use thalweg_model::{Applicability, Change, Code, Remedy};

/// What RACK's clock is off by (RFC 8985), and as many duplicates as the kernel goes to by itself
/// (`net.ipv4.tcp_max_reordering`). With the clock on, the count alone changes nothing.
const PATIENT: [(&str, &str); 2] = [("net.ipv4.tcp_recovery", "0"), ("net.ipv4.tcp_reordering", "300")];

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let code = Code::Reordering;
    let side = facts.sender();
    let changes: Vec<Change> = PATIENT.into_iter().filter_map(|(name, to)| facts.set(side, sysctl(name), to)).collect();
    let patient = remedy(
        code,
        "Or let nothing be taken for loss until 300 packets have overtaken it (3 as Linux ships), and no clock decide before."
            .to_owned(),
        changes,
        Applicability::NeedsThought,
        "Real losses: where fewer than 300 packets follow one, the timer alone finds it, 200 ms later.",
    );
    let path = "On the path: keep a flow's packets on one way, by hashing addresses and ports instead of dealing packets out \
                (bonding's xmit_hash_policy, ECMP by flow), or by a link layer that delivers in order.";
    let patient = (!patient.changes.is_empty()).then_some(patient);
    congestion::bbr(code, facts).into_iter().chain(patient).chain([advice(code, path)]).collect()
}
