//! The queue in front of the bottleneck is far longer than the path needs.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact};
use crate::diagnosis::words;
use crate::estimate::partition::LimitShare;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::Bufferbloat, judge };

/// What waits on average, in round trips without a queue. One is all that a window halved by a loss can use (Appenzeller et al., Sizing
/// router buffers, SIGCOMM 2004), so a queue of one and a half, kept full, has more than half of a round trip to spare.
const TOO_LONG: f64 = 1.6;
/// And in seconds: what people notice in a call is from 150 ms on (ITU-T G.114), of which this leaves little.
const NOTICED_S: f64 = 0.08;
/// Part of the time at the path's rate from which on that holds a transfer rather than the wait of its acknowledgements.
const USES_THE_PATH: f64 = 0.3;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if let Some(wait_s) = facts.ack_wait_s {
        return other_way(facts, wait_s);
    }
    let waits = facts.rtt_mean_s - facts.rtt_min_s;
    let limits = facts.limits();
    if waits < NOTICED_S || waits < TOO_LONG * facts.rtt_min_s || limits.path_rate < 0.3 {
        return None;
    }
    let claim = format!(
        "The queue in front of the bottleneck holds packets for {} on average, {:.1} round trips' worth: the line is full either way, and everything else that passes it waits as long.",
        words::time(waits),
        waits / facts.rtt_min_s.max(1e-6),
    );
    let evidence = vec![fact(format!(
        "the round trip is {} on average, {} at best",
        words::time(facts.rtt_mean_s),
        words::time(facts.rtt_min_s)
    ))];
    // This connection would be no faster with a shorter queue.
    Some(Judged { share: limits.path_rate, weight: 1.0, gain: None, claim, evidence, depends_on: Some(Code::PathRate) })
}

/// The same in the other direction: what waits there are this one's acknowledgements.
fn other_way(facts: &Facts<'_>, wait_s: f64) -> Option<Judged> {
    let split = &facts.split;
    if facts.limits().path_rate >= USES_THE_PATH {
        return None;
    }
    let (sender, application) = (facts.sender, split.application);
    let by_round_trips =
        [split.slow_start, split.congestion_window, split.receive_window, split.send_buffer, split.loss_recovery];
    let mut held = by_round_trips.into_iter().fold(LimitShare::default(), LimitShare::and);
    let known = facts.shows_capacity();
    // Waits for acknowledgements look like a program's pauses: at the sender where they come in bunches, elsewhere all do. A program that writes
    // evenly would show no more.
    let waits = if sender.times_acks {
        sender.observers.sndbuf_wakeups.had_more()
    } else {
        known || facts.blurred || !sender.remote.triggers.are_the_programs()
    };
    if waits {
        held = held.and(application);
    }
    let part = (wait_s / facts.rtt_mean_s.max(1e-9)).min(1.0);
    let at_capacity = facts.capacity.filter(|_| known).map_or(0.0, |capacity| held.bytes / capacity);
    let left = (held.seconds * (1.0 - part)).max(at_capacity);
    let gain = facts.phase_s / (facts.phase_s - held.seconds + left).min(facts.phase_s).max(facts.phase_s * 1e-3);
    let least_s = facts.rtt_mean_s - wait_s;
    let claim = format!(
        "Acknowledgements wait {} on average in a queue of the other direction, which what is sent that way fills: a round trip takes {:.1} times as long, and this transfer grows and repairs its losses by round trips.",
        words::time(wait_s),
        facts.rtt_mean_s / least_s.max(1e-6),
    );
    let evidence = vec![fact(format!(
        "the round trip is {} on average, {} at best, and the clock in their timestamps tells that it is the acknowledgements that come later",
        words::time(facts.rtt_mean_s),
        words::time(least_s.min(facts.rtt_min_s)),
    ))];
    let share = held.seconds / facts.phase_s * part;
    Some(Judged { share, weight: gain, gain: known.then_some(gain), claim, evidence, depends_on: None })
}
