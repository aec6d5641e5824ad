//! A window above TCP holds the sender.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN, occurrences};
use thalweg_model::{ApplicationWindow, Cause};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().application;
    let (above_tcp, waits) = (facts.above_tcp?, &facts.sender.observers.stop_and_wait);
    let weight = facts.weight_of_pauses();
    if weight < MIN_GAIN {
        return None;
    }
    let rounds = if above_tcp.in_pieces {
        occurrences(waits.messages, waits.first_message.as_slice())
    } else {
        occurrences(waits.stops.count + 1, &waits.stops.first)
    };
    let cause = ApplicationWindow {
        window_bytes: above_tcp.bytes,
        in_pieces: above_tcp.in_pieces,
        rounds,
        rtt_min_s: facts.rtt_min_s,
        receive_window_bytes: facts.sender.window.max,
    };
    let gain = facts.shows_capacity().then(|| facts.gain_without(facts.split.application, 0.0));
    Some(Judged { in_bursts: true, ..Judged::new(Cause::ApplicationWindow(cause), share, weight, gain) })
}
