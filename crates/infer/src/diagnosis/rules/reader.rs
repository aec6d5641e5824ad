//! The receiving program does not read fast enough.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, occurrences};
use crate::tcp::sender::FULL_PART;
use thalweg_model::{Cause, SlowReader};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().reader;
    if share <= 0.0 {
        return None;
    }
    let gain = facts.gain_without(facts.split.reader, 0.0);
    let (window, examples) = (&facts.sender.window, &facts.sender.observers.examples);
    let reader = SlowReader::Window {
        largest_bytes: window.max,
        small_part: FULL_PART,
        zero: Some(occurrences(window.zero_windows, &examples.zero_window)),
        filled: Some(occurrences(window.full, &examples.window_full)),
    };
    Some(Judged::new(Cause::Reader(reader), share, gain, facts.capacity.map(|_| gain)))
}
