//! The queue in front of the bottleneck is far longer than the path needs.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::estimate::partition::LimitShare;
use thalweg_model::{AckWait, Cause, Code, FullQueue};

/// What waits on average, in round trips without a queue. One is all that a window halved by a loss can use (Appenzeller et al., Sizing
/// router buffers, SIGCOMM 2004), so a queue of one and a half, kept full, has more than half of a round trip to spare.
const MIN_WAIT_ROUND_TRIPS: f64 = 1.6;
/// And in seconds: what people notice in a call is from 150 ms on (ITU-T G.114), of which this leaves little.
const MIN_WAIT_S: f64 = 0.08;
/// Part of the time at the path's rate from which on that holds a transfer rather than the wait of its acknowledgements.
const PATH_RATE_SHARE: f64 = 0.3;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if let Some(wait_s) = facts.ack_wait_s {
        return other_way(facts, wait_s);
    }
    let wait_s = facts.rtt_mean_s - facts.rtt_min_s;
    let share = facts.limits().path_rate;
    if wait_s < MIN_WAIT_S || wait_s < MIN_WAIT_ROUND_TRIPS * facts.rtt_min_s || share < PATH_RATE_SHARE {
        return None;
    }
    let queue = FullQueue { wait_s, rtt_mean_s: facts.rtt_mean_s, rtt_min_s: facts.rtt_min_s, acks: None };
    // This connection would be no faster with a shorter queue.
    let judged = Judged::new(Cause::Bufferbloat(queue), share, 1.0, None);
    Some(Judged { depends_on: Some(Code::PathRate), ..judged })
}

/// The same in the other direction: what waits there are this one's acknowledgements.
fn other_way(facts: &Facts<'_>, wait_s: f64) -> Option<Judged> {
    let split = &facts.split;
    if facts.limits().path_rate >= PATH_RATE_SHARE {
        return None;
    }
    let (sender, application) = (facts.sender, split.application);
    let by_round_trips =
        [split.slow_start, split.congestion_window, split.receive_window, split.send_buffer, split.loss_recovery];
    let mut held = by_round_trips.into_iter().fold(LimitShare::default(), LimitShare::and);
    let known = facts.shows_capacity();
    // Waits for acknowledgements look like a program's pauses: at the sender where they come in bunches, elsewhere all do. A program that writes
    // evenly would show no more.
    let waits = if sender.is_exact() {
        sender.observers.sndbuf_wakeups.had_more()
    } else {
        known || facts.blurred || !sender.is_set_off_by_the_program()
    };
    if waits {
        held = held.and(application);
    }
    let part = (wait_s / facts.rtt_mean_s.max(1e-9)).min(1.0);
    let at_capacity = facts.capacity.filter(|_| known).map_or(0.0, |capacity| held.bytes / capacity);
    let left = (held.seconds * (1.0 - part)).max(at_capacity);
    let gain = facts.phase_s / (facts.phase_s - held.seconds + left).min(facts.phase_s).max(facts.phase_s * 1e-3);
    let queue = FullQueue {
        wait_s,
        rtt_mean_s: facts.rtt_mean_s,
        rtt_min_s: facts.rtt_min_s,
        acks: Some(AckWait { rtt_without_s: facts.rtt_mean_s - wait_s }),
    };
    let share = held.seconds / facts.phase_s * part;
    Some(Judged::new(Cause::Bufferbloat(queue), share, gain, known.then_some(gain)))
}
