//! Random loss keeps the congestion window down.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::loss_cost::LossCost;
use thalweg_model::Cause;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let (random, congested) = (facts.random_losses, facts.congested_losses);
    if super::explains_losses(facts) {
        return None;
    }
    if random + congested == 0 || congested > random {
        return None;
    }
    let cost = LossCost::of(facts);
    let (share, gain, known_gain) = (cost.share, cost.gain, cost.known_gain);
    Some(Judged::new(Cause::RandomLoss(cost.losses(facts, None)), share, gain, known_gain))
}
