//! Whether something on the path is never idle, however fast it is at the time.

use crate::estimate::view::View;
use crate::tcp::sender::Sender;

/// How many times the least round trip one is that waits, and the part of the open time that must be so.
pub(super) const QUEUED_RTT_RATIO: f64 = 1.5;
const MIN_QUEUED_SHARE: f64 = 0.7;
/// The part of a connection that must be open: neither the program nor a window holds it then.
const MIN_OPEN_SHARE: f64 = 0.5;
/// A queue grows and drains a packet at a time: from one sample to the next, milliseconds later, it changed by 0.002 to 0.035 of its mean in our
/// lab, on paths whose rate varies by ten times; delays that are drawn for each packet by 0.05 and more.
const MAX_STEP_PART: f64 = 0.04;
/// How many times the shorter round trips the longer ones are, at least: a route that became longer adds the same to all.
const MIN_RTT_SPREAD: f64 = 1.3;
/// Samples to judge by: of fewer than ten none is at nine tenths.
/// `a_few_round_trips_are_no_queue` holds it.
const MIN_SAMPLES: usize = 10;

/// Whether a round trip is so long that its packets waited.
pub(super) fn waits(rtt: f64, sender: &Sender) -> bool {
    rtt >= QUEUED_RTT_RATIO * sender.rtt.min.unwrap_or(0) as f64
}

/// Whether a queue stands nearly all the time and grows and shrinks: what is behind it delivers all it can then, though that may change from one
/// moment to the next, as radio's does. No flow with losses is asked: they say more.
pub(super) fn is_busy(views: &[View], sender: &Sender) -> bool {
    let Some(min) = sender.rtt.min.filter(|_| !sender.losses.any()) else { return false };
    // Of most connections none ever waited.
    if !waits(sender.rtt.max as f64, sender) {
        return false;
    }
    let exit = sender.observers.slow_start.exit.map_or(0, |(at, _)| at);
    let held = || views.iter().filter(|view| view.at >= exit && view.windowed <= 0.5 && view.slice.open > 0);
    let open = |view: &View| view.slice.open as f64;
    let all: f64 = held().map(open).sum();
    let waited: f64 = held().filter(|view| waits(view.rtt, sender)).map(open).sum();
    if all <= 0.0 || all < MIN_OPEN_SHARE * sender.observers.time.total() as f64 || waited < MIN_QUEUED_SHARE * all {
        return false;
    }
    let sampled = held().filter(|view| view.slice.rtt_count > 0).map(|view| view.rtt);
    grows_and_drains(sampled.collect(), min as f64)
}

/// Whether these round trips, one after the other, are those of a queue that does both; `least` is that of an empty one.
fn grows_and_drains(mut sampled: Vec<f64>, least: f64) -> bool {
    if sampled.len() < MIN_SAMPLES {
        return false;
    }
    let changed: f64 = sampled.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum();
    let waits: f64 = sampled.iter().map(|rtt| rtt - least).sum();
    sampled.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| sampled[(sampled.len() as f64 * part) as usize];
    changed <= MAX_STEP_PART * waits && at(0.9) >= MIN_RTT_SPREAD * at(0.25)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_round_trips_are_no_queue() {
        let queue = |count: usize| (0..count).map(|n| 40.0 + n as f64).collect::<Vec<f64>>();
        assert!(grows_and_drains(queue(40), 10.0));
        assert!(!grows_and_drains(queue(9), 10.0));
        assert!(!grows_and_drains(Vec::new(), 10.0), "no data was timed while it was open");
        assert!(!grows_and_drains(vec![60.0; 40], 10.0), "a longer route");
        let drawn = (0..40).map(|n| if n % 3 == 0 { 60.0 } else { 30.0 }).collect();
        assert!(!grows_and_drains(drawn, 10.0), "drawn for each packet");
    }
}
