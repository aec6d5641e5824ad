//! What losses cost, whichever kind they are: the part the two loss rules share.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{fact, seen};
use crate::diagnosis::words;
use crate::event::RetransmitKind;
use thalweg_model::Evidence;

/// Time, packets and round trips of a flow's losses, those a timer repaired left out.
pub(super) struct LossCost {
    /// Share of the data phase.
    pub(super) share: f64,
    /// How many times faster without them; a bound where the capacity is not known.
    pub(super) gain: f64,
    /// The same where the capacity is known.
    pub(super) known_gain: Option<f64>,
    /// Part of the data packets that was sent again.
    pub(super) rate: f64,
    /// Mean smoothed round trip before them, in seconds, of those before which any was measured.
    pub(super) rtt_before_s: Option<f64>,
    pub(super) sent_again: Evidence,
    pub(super) behind_a_queue: Evidence,
}

impl LossCost {
    pub(super) fn of(facts: &Facts<'_>) -> Self {
        let limits = facts.limits();
        // What followed a timer's firing is the timer's.
        let part = 1.0 - facts.timer_part();
        let spent = facts.split.loss_recovery.and(facts.split.congestion_window).part(part);
        let gain = facts.gain_without(spent, 0.0);
        let losses = &facts.sender.losses;
        let episodes = &losses.episodes;
        let fast = episodes.iter().filter(|loss| loss.kind == RetransmitKind::Fast);
        let first: Vec<(u64, u64)> = fast.take(3).map(|loss| (loss.number, loss.at)).collect();
        let before: Vec<f64> = episodes.iter().map(|loss| loss.rtt_before).filter(|&nanos| nanos > 0.0).collect();
        let (random, congested) = (facts.random_losses, facts.congested_losses);
        let sent_again = format!(
            "{} sent again in {}; the first",
            words::count(losses.total, "packet"),
            words::count(episodes.len() as u64, "episode")
        );
        Self {
            share: part * (limits.loss_recovery + limits.congestion_window),
            gain,
            known_gain: facts.capacity.map(|_| gain),
            rate: facts.lost_part(),
            rtt_before_s: (!before.is_empty()).then(|| before.iter().sum::<f64>() / before.len() as f64 / 1e9),
            sent_again: seen(sent_again, &first),
            behind_a_queue: fact(format!(
                "{congested} of {} episodes came behind a standing queue",
                random + congested
            )),
        }
    }
}
