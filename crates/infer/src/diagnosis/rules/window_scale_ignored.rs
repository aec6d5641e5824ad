//! A middlebox drops what lies beyond the window field, which it does not scale.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use thalweg_model::{Cause, UnscaledEdge};

/// Times that data ended there. A sender that dies with data beyond the field out has one at most; each further one takes a repair and new data.
/// `a_middlebox_that_ignores_window_scaling_is_named` holds it.
const MIN_STOPS: u64 = 3;
/// Timeouts or fast retransmissions that repaired it. `a_middlebox_that_ignores_window_scaling_is_named` holds it.
const MIN_REPAIRS: usize = 2;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let sender = facts.sender;
    let unscaled = &sender.observers.unscaled_window;
    let (stops, field_bytes, window_bytes) = (unscaled.stops(), unscaled.field_max, sender.window.max);
    let repairs = sender.losses.episodes.len();
    if stops < MIN_STOPS || repairs < MIN_REPAIRS || window_bytes <= field_bytes {
        return None;
    }
    let (share, weight) = facts.weigh_repair();
    let cause = Cause::WindowScaleIgnored(UnscaledEdge { field_bytes, window_bytes, stops });
    Some(Judged::new(cause, share, weight, None))
}
