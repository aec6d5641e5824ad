//! The path's own rate is used up.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::estimate::partition::hides_queues;
use thalweg_model::{Cause, UsedPath};

/// Nothing is gained beyond the path's rate, so another cause comes first where its own gain is larger than this. A gain beside a full
/// path errs by as much: the plateau is known to within 15 % (`PLATEAU`), the rate of trains to 9 %.
pub(crate) const GAIN_ERROR: f64 = 0.25;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let limits = facts.limits();
    let plateau = facts.plateau?;
    // Where packets lack silence tells nothing, so neither does a rate between pauses, unless round trips show a queue.
    let is_guessed = facts.lacks_packets() && !facts.sender.rtt.is_of_data();
    if limits.path_rate <= 0.0 || is_guessed {
        return None;
    }
    let share = limits.path_rate;
    let path = UsedPath::Connection {
        rate_bps: plateau * 8.0,
        mean_bps: facts.rate() * 8.0,
        rtt_mean_s: facts.rtt_mean_s,
        rtt_min_s: facts.rtt_min_s,
        trains_bps: facts.sender.observers.train_rate().map(|trains| trains * 8.0),
        or_paced: hides_queues(facts.sender),
    };
    Some(Judged::new(Cause::PathRate(path), share, 1.0 + GAIN_ERROR * share, None))
}
