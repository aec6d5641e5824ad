//! A policer discards what is over its rate.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::gain::weight_of_time;
use crate::diagnosis::loss_cost::LossCost;
use thalweg_model::{BucketFit, Cause, PolicedRate};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let losses = &facts.sender.losses;
    // Where timers repair most of it the bucket is fitted to their silences.
    let silent = facts.limits().timeout > 0.5 && losses.timer * 2 > losses.total;
    let bucket = facts.bucket.filter(|_| !silent)?;
    let limits = facts.limits();
    // What the bucket lets through is the plateau: its time is the policer's, too, as is the silence after a burst was discarded whole.
    let share = (limits.loss_recovery + limits.congestion_window + limits.path_rate + limits.timeout).min(1.0);
    // What a sender has that stays below the rate: its losses, and what it took to repair them, are gone.
    let split = &facts.split;
    let policed = split.loss_recovery.and(split.congestion_window).and(split.path_rate).and(split.timeout);
    let gain = facts.gain_without(policed, 0.0);
    let cause = PolicedRate {
        rate_bps: bucket.rate * 8.0,
        burst_bytes: bucket.burst,
        repairs: LossCost::of(facts).repairs,
        fit: BucketFit {
            losses: bucket.losses as u64,
            empty_part: bucket.explained.0,
            held_part: bucket.explained.1,
            delayed_part: bucket.delayed.max(0.0),
        },
    };
    Some(Judged::new(Cause::Policer(cause), share, weight_of_time(share), Some(gain)))
}
