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
        are_requests: are_requests(facts, rounds.count),
        rounds,
        rtt_min_s: facts.rtt_min_s,
        receive_window_bytes: facts.sender.window.max,
    };
    let gain = facts.shows_capacity().then(|| facts.gain_without(facts.split.application, 0.0));
    Some(Judged { in_bursts: true, ..Judged::new(Cause::ApplicationWindow(cause), share, weight, gain) })
}

/// Whether the messages are requests of HTTP/1: as many as half of the `rounds`, or more, for the first amounts are smaller than the others.
fn are_requests(facts: &Facts<'_>, rounds: u64) -> bool {
    let log = &facts.connection.observers.requests;
    log.count > 0 && log.count * 2 >= rounds && log.kept().iter().all(|one| one.request().is_some())
}
