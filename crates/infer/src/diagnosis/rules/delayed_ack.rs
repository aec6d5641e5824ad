//! Small writes wait for acknowledgements, most often such as the other side delays.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN, counted};
use crate::observe::nagle_delayed_ack::Waits;
use thalweg_model::{Cause, DelayedWrites};

/// Least number of such writes: a program's own timer may coincide with an acknowledgement once, and with the next by chance.
const MIN_WRITES: u64 = 3;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let held = facts.held;
    let is_delayed = held.delayed.time >= held.prompt.time;
    let Waits { seen: waits, time } = if is_delayed { &held.delayed } else { &held.prompt };
    if waits.count < MIN_WRITES || facts.phase_s <= 0.0 {
        return None;
    }
    // A program that goes on writing by itself sends as much, only later; one that answers is asked again so much later.
    if !is_delayed && facts.connection.observers.requests.count * 2 < waits.count {
        return None;
    }
    let waited_s = *time as f64 / 1e9;
    let share = (waited_s / facts.phase_s).min(1.0);
    let gain = 1.0 / (1.0 - share).max(1e-3);
    if gain < MIN_GAIN {
        return None;
    }
    let writes = DelayedWrites { writes: counted(waits), waited_s, by_round_trips: !is_delayed };
    let judged = Judged::new(Cause::DelayedAck(writes), share, gain, Some(gain));
    Some(Judged { in_bursts: true, ..judged })
}
