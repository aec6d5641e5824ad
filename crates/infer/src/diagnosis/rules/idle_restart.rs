//! After each pause the congestion window restarts.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, occurrences};
use thalweg_model::{Cause, RestartTiming, Restarts};

/// Bursts that must have restarted and lost nothing: one may be chance.
const MIN_RESTARTS: u64 = 2;
/// How much faster they must be with the window kept for that to outweigh the pauses between them, which are the program's own.
const MIN_GAIN_IN_BURST: f64 = 1.3;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let restarts = &facts.sender.observers.idle_restarts;
    if restarts.whole < MIN_RESTARTS || restarts.whole * 2 < restarts.bursts {
        return None;
    }
    let seconds = restarts.time as f64 / 1e9;
    let at_capacity_s = facts.capacity.map_or(0.0, |capacity| restarts.bytes as f64 / capacity);
    let kept_s = restarts.whole as f64 * facts.rtt_low_s + at_capacity_s;
    let gain = seconds / kept_s.max(1e-9);
    if gain < MIN_GAIN_IN_BURST {
        return None;
    }
    let share = (seconds / facts.phase_s.max(1e-9)).min(1.0);
    let (bursts, bytes) = (restarts.bursts, restarts.bytes);
    let cause = Restarts {
        restarted: occurrences(restarts.whole, &restarts.restarted.first),
        timing: Some(RestartTiming { bursts, bytes, seconds, kept_s, rtt_s: facts.rtt_low_s }),
    };
    let judged = Judged::new(Cause::IdleRestart(cause), share, gain, Some(gain));
    Some(Judged { in_bursts: true, ..judged })
}
