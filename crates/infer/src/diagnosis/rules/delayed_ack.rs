//! Small writes wait for acknowledgements that the other side delays.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN, counted};
use thalweg_model::{Cause, DelayedWrites};

/// Least number of such writes: a program's own timer may coincide with an acknowledgement once, and with the next by chance.
const MIN_WRITES: u64 = 3;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let held = facts.held;
    if held.waits.count < MIN_WRITES || facts.phase_s <= 0.0 {
        return None;
    }
    let waited_s = held.time as f64 / 1e9;
    let share = (waited_s / facts.phase_s).min(1.0);
    let gain = 1.0 / (1.0 - share).max(1e-3);
    if gain < MIN_GAIN {
        return None;
    }
    let writes = DelayedWrites { writes: counted(&held.waits), waited_s };
    let judged = Judged::new(Cause::DelayedAck(writes), share, gain, Some(gain));
    Some(Judged { in_bursts: true, ..judged })
}
