//! What losses cost, whichever kind they are: the part that the rules of losses share.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::occurrences;
use crate::event::RetransmitKind;
use thalweg_model::{Losses, Repairs};

/// Time and packets of a flow's losses, those a timer repaired left out.
pub(super) struct LossCost {
    /// Share of the data phase.
    pub(super) share: f64,
    /// How many times faster without them; a bound where the capacity is not known.
    pub(super) gain: f64,
    /// The same where the capacity is known.
    pub(super) known_gain: Option<f64>,
    pub(super) repairs: Repairs,
    /// Mean smoothed round trip before them, in seconds, of those before which any was measured.
    rtt_before_s: Option<f64>,
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
        Self {
            share: part * (limits.loss_recovery + limits.congestion_window),
            gain,
            known_gain: facts.capacity.map(|_| gain),
            repairs: Repairs {
                packets_again: occurrences(losses.total, &first),
                episodes: Some(episodes.len() as u64),
            },
            rtt_before_s: (!before.is_empty()).then(|| before.iter().sum::<f64>() / before.len() as f64 / 1e9),
        }
    }

    /// The losses as a cause shows them, with the round trip just before them where that is known better than on average.
    pub(super) fn losses(self, facts: &Facts<'_>, just_before_s: Option<f64>) -> Losses {
        // Without a round trip of data nothing tells what stood before a loss.
        let is_told = facts.sender.times_data();
        let (random, congested) = if is_told { (facts.random_losses, facts.congested_losses) } else { (0, 0) };
        Losses {
            part: facts.lost_part(),
            repairs: self.repairs,
            queued_episodes: Some(congested as u64),
            judged_episodes: Some((random + congested) as u64),
            rtt_before_s: just_before_s.or(self.rtt_before_s).filter(|_| is_told),
            rtt_min_s: facts.rtt_min_s,
        }
    }
}
