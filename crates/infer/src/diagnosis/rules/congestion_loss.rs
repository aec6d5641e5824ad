//! A full queue drops packets.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::loss_cost::LossCost;
use thalweg_model::{Cause, CongestionLosses, QueueMarks};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let (random, congested) = (facts.random_losses, facts.congested_losses);
    if super::explains_losses(facts) {
        return None;
    }
    if random + congested == 0 {
        return marked(facts);
    }
    if congested <= random {
        return None;
    }
    let cost = LossCost::of(facts);
    let (share, gain, known_gain) = (cost.share, cost.gain, cost.known_gain);
    let losses = CongestionLosses::Dropped(cost.losses(facts, facts.loss_peak_s));
    Some(Judged::new(Cause::CongestionLoss(losses), share, gain, known_gain))
}

/// The same where the queue marks what it would drop.
fn marked(facts: &Facts<'_>) -> Option<Judged> {
    let ecn = facts.marks()?;
    let share = facts.limits().congestion_window;
    if share <= 0.0 {
        return None;
    }
    let gain = facts.gain_without(facts.split.congestion_window, 0.0);
    let marks = CongestionLosses::Marked(QueueMarks { reductions: ecn.reductions, echoes: ecn.echoes });
    Some(Judged::new(Cause::CongestionLoss(marks), share, gain, facts.capacity.map(|_| gain)))
}
