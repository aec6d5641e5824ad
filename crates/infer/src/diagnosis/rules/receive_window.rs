//! The receiver's window is smaller than the path holds.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, counted, sights};
use thalweg_model::{Cause, FullWindow, PathHolds};

/// The largest window without scaling (RFC 9293 §3.1).
const UNSCALED_MAX: u64 = 65_535;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if lacks_scaling(facts) {
        return None;
    }
    judge_window(facts, Cause::ReceiveWindow)
}

/// Whether it is the missing option that keeps the window small: one that stays below half of what it could be is kept there by its buffer.
pub(super) fn lacks_scaling(facts: &Facts<'_>) -> bool {
    let window = &facts.sender.window;
    let lacks = facts.connection.opening.lacks_scaling() || window.found_scale() == Some(0);
    lacks && (UNSCALED_MAX / 2..=UNSCALED_MAX).contains(&window.max)
}

/// The finding, whatever keeps the window small.
pub(super) fn judge_window(facts: &Facts<'_>, cause: fn(FullWindow) -> Cause) -> Option<Judged> {
    let share = facts.limits().receive_window;
    if share <= 0.0 {
        return None;
    }
    let (weight, gain) = facts.weigh_bound(facts.split.receive_window);
    let (window, growth) = (&facts.sender.window, &facts.sender.observers.window_growth);
    let full = FullWindow {
        window_bytes: if growth.filled.count > 0 {
            growth.filled_sum / growth.filled.count as f64
        } else {
            window.max as f64
        },
        rtt_min_s: facts.rtt_min_s,
        largest_bytes: window.max,
        largest: growth.largest_in.map(|largest| sights(&[largest])),
        filled: Some(counted(&growth.filled)),
        path: facts.capacity.zip(facts.bdp()).filter(|_| facts.knows_capacity()).map(|(capacity, bytes)| PathHolds {
            rate_bps: capacity * 8.0,
            bytes,
            at_least: facts.blurred,
        }),
        found_scale: window.found_scale(),
    };
    Some(Judged::new(cause(full), share, weight, gain))
}
