//! After each pause the congestion window is reset: keep it.

use crate::facts::{Facts, sysctl};
use crate::{noted, remedy};
use thalweg_model::{Applicability, Code, Remedy};

pub(crate) fn plan(facts: &Facts<'_>) -> Vec<Remedy> {
    let kept = facts.set(facts.sender(), sysctl("net.ipv4.tcp_slow_start_after_idle"), "0");
    let kept = kept.map(|change| {
        let kept = remedy(
            Code::IdleRestart,
            "Keep the congestion window over pauses: the path that carried the last burst is taken to carry the next one."
                .to_owned(),
            vec![change],
            // What was measured before the pause may hold no longer (RFC 7661 §1), and a whole window leaves at once.
            Applicability::NeedsThought,
            "The first burst of a connection.",
        );
        let pace = "Over a short queue a whole window at once is dropped in part: pace it, by the fq queueing discipline or BBR.";
        noted(kept, &[pace])
    });
    kept.into_iter().collect()
}
