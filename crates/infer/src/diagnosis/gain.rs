//! What the removal of a limit would gain, and how much that weighs.

use crate::diagnosis::facts::Facts;
use crate::estimate::partition::LimitShare;

/// Part of the time at the path's rate, or repairing losses, from which on the rate seen is the path's.
const MIN_FULL_PATH_SHARE: f64 = 0.05;
/// And from which on that is the rate without a program's pauses too.
const MIN_FULL_PATH_SHARE_WITH_PAUSES: f64 = 0.5;
/// How many times the mean rate data came at for the path to be known to be faster: trains' rates are 9 % apart, and what one fast train of
/// acknowledgements tells errs by as much again.
pub(crate) const MIN_CAPACITY_RATIO: f64 = 1.25;

impl Facts<'_> {
    /// How many times faster the phase would be, had what `spent` covers gone at the path's rate with `round_trips` to begin.
    pub(crate) fn gain_without(&self, spent: LimitShare, round_trips: f64) -> f64 {
        let at_capacity = self.capacity.map_or(0.0, |capacity| spent.bytes / capacity);
        let instead = at_capacity + round_trips * self.rtt_low_s;
        let phase = (self.phase_s - spent.seconds + instead).max(self.rtt_low_s).max(self.phase_s * 1e-3);
        let gain = (self.phase_s / phase).max(1.0);
        // Bytes are charged when they are acknowledged, which may be just after the time that is taken away.
        self.faster_than_mean().map_or(gain, |capacity| gain.min(capacity / self.rate()))
    }

    /// Whether data came clearly faster than it does on average, so that the path's rate is known to be more than the mean. A program that always
    /// sends as slowly shows no more of the path than it uses.
    pub(crate) fn shows_capacity(&self) -> bool {
        !self.blurred && self.faster_than_mean().is_some()
    }

    /// The capacity, where data came at clearly more than the mean rate.
    fn faster_than_mean(&self) -> Option<f64> {
        self.capacity.filter(|&capacity| capacity > MIN_CAPACITY_RATIO * self.rate())
    }

    /// What it weighs that one of the hosts' bounds is gone, and how many times faster the phase would be, where that is known: what
    /// stands at a bound with neither queue nor loss shows no more of the path than it uses, as often as not.
    pub(crate) fn weigh_bound(&self, spent: LimitShare) -> (f64, Option<f64>) {
        let gain = self.gain_without(spent, 0.0);
        if self.knows_capacity() {
            // Bytes are charged when they are acknowledged, in part just after what held them.
            return (gain, self.capacity.map(|capacity| gain.min((capacity / self.rate()).max(1.0))));
        }
        (gain.max(weight_of_time(spent.seconds / self.phase_s)), None)
    }

    /// The share of the time in which losses are repaired, by a timer or without, and what it weighs that nothing is lost.
    pub(crate) fn weigh_repair(&self) -> (f64, f64) {
        let (limits, split) = (self.limits(), &self.split);
        let share = limits.timeout + limits.loss_recovery;
        let gain = self.gain_without(split.timeout.and(split.loss_recovery), 0.0);
        (share, gain.max(weight_of_time(share)))
    }

    /// Whether the rate that was seen is the path's: data came faster than on average, or the path was full at times.
    pub(crate) fn knows_capacity(&self) -> bool {
        let limits = self.limits();
        self.shows_capacity() || limits.path_rate + limits.loss_recovery > MIN_FULL_PATH_SHARE
    }

    /// The weight of the program's pauses: where the path's rate is not known, only that their time would go.
    pub(crate) fn weight_of_pauses(&self) -> f64 {
        let gain = self.gain_without(self.split.application, 0.0);
        let known = self.shows_capacity() || self.limits().path_rate >= MIN_FULL_PATH_SHARE_WITH_PAUSES;
        if known { gain } else { gain.max(weight_of_time(self.limits().application)) }
    }
}

/// The weight of removing a limit whose next one is not known: its time vanishes.
pub(crate) fn weight_of_time(share: f64) -> f64 {
    1.0 / (1.0 - share.min(0.99))
}
