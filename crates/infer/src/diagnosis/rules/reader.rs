//! The receiving program does not read fast enough.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, counted};
use crate::tcp::sender::FULL_PART;
use thalweg_model::{Cause, SlowReader};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().reader;
    if share <= 0.0 {
        return None;
    }
    let gain = facts.gain_without(facts.split.reader, 0.0);
    let (window, growth) = (&facts.sender.window, &facts.sender.observers.window_growth);
    let reader = SlowReader::Window {
        largest_bytes: window.max,
        small_part: FULL_PART,
        zero: Some(counted(&growth.closed)),
        filled: Some(counted(&growth.filled)),
    };
    Some(Judged::new(Cause::Reader(reader), share, gain, facts.capacity.map(|_| gain)))
}
