//! The receiving host drops packets that have reached it.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::loss_cost::LossCost;
use thalweg_model::{Cause, HostDrops, Vantage};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let arrived = arrived(facts)?;
    let cost = LossCost::of(facts);
    let cause = HostDrops { part: facts.lost_part(), repairs: cost.repairs, arrived };
    Some(Judged::new(Cause::ReceiverDrops(cause), cost.share, cost.gain, cost.known_gain))
}

/// Segments sent again that had come to a tap beside the receiver, where they are most of what was sent again. A policer of that host is a policer,
/// and a buffer that overran drops what comes behind it.
pub(super) fn arrived(facts: &Facts<'_>) -> Option<u64> {
    let pruned = facts.sender.observers.pruned.as_ref()?;
    let beside = facts.vantage == Vantage::Receiver && facts.bucket.is_none() && pruned.proofs.count == 0;
    // What is reported to have come twice was not dropped.
    let lost = facts.random_losses + facts.congested_losses > 0 && !super::are_needless(&facts.sender.losses);
    (beside && lost && pruned.refused * 2 > facts.sender.losses.total).then_some(pruned.refused)
}
