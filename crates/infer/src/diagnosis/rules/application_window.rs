//! A window above TCP holds the sender.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN, occurrences};
use crate::observe::stop_and_wait::Release;
use thalweg_model::{ApplicationWindow, Cause};

/// Segments of the least window, the initial congestion window (RFC 6928 §2): smaller amounts are messages of a program that asks and answers.
const MIN_SEGMENTS: u64 = 10;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().application;
    let (window_bytes, waits) = (amount(facts, Release::Message)?, &facts.sender.observers.stop_and_wait);
    let weight = facts.weight_of_pauses();
    if window_bytes < MIN_SEGMENTS * facts.sender.space.mss || weight < MIN_GAIN {
        return None;
    }
    let cause = ApplicationWindow {
        window_bytes,
        rounds: occurrences(waits.stops.count + 1, &waits.stops.first),
        rtt_min_s: facts.rtt_min_s,
        receive_window_bytes: facts.sender.window.max,
    };
    let gain = facts.shows_capacity().then(|| facts.gain_without(facts.split.application, 0.0));
    Some(Judged { in_bursts: true, ..Judged::new(Cause::ApplicationWindow(cause), share, weight, gain) })
}

/// The amount after which the sender stops until this lets it go on, where that is what most of its pauses are.
pub(super) fn amount(facts: &Facts<'_>, release: Release) -> Option<u64> {
    let waits = &facts.sender.observers.stop_and_wait;
    let (amount, by) = waits.habit()?;
    (by == release && waits.waited as f64 / 1e9 >= facts.phase_s * MIN_PART_WAITED).then_some(amount)
}

/// Part of the data phase that the stops must take: less is not what holds the transfer.
const MIN_PART_WAITED: f64 = 0.5;
