//! The transfer was over before the congestion window had grown.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, sights};
use crate::estimate::view::QUEUE_PART;
use crate::observe::slow_start::Exit;
use thalweg_model::{Cause, FirstFlight, SlowStartExit, SlowStartSeen, WindowGrowth};

/// Part of the bytes that must have moved in slow start for a flow that is paced by its application afterwards to be judged by
/// its start: a burst smaller than a tenth of a stream is not what its user waits for. Without this and the next a program's pauses are blamed on
/// the start (`verdicts_on_the_labelled_set_are_right`, held-out transfer 1300081).
const MIN_BURST_SHARE: f64 = 0.1;
/// And this many times faster than the rest it must have moved, for all that slow start is slow (`verdicts_on_the_labelled_set_are_right`).
const MIN_BURST_PACE_RATIO: f64 = 1.5;
/// How many times faster the time between pauses must get for the start to come before the pauses.
const MIN_GAIN_IN_BURST: f64 = 1.5;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    // Where the capture begins later, what looks like slow start is not the connection's.
    if facts.has_beginning() { grown(facts) } else { None }
}

/// What the congestion window's growth costs, from wherever it begins.
pub(crate) fn grown(facts: &Facts<'_>) -> Option<Judged> {
    let limits = facts.limits();
    let sender = facts.sender;
    // A flight never larger than the first one: no growth was needed.
    if sender.totals.flight_max <= sender.observers.slow_start.initial_bytes + sender.space.mss {
        return None;
    }
    // Growth after a slow start that ended without loss is the same lack of a larger window.
    let mut spent = facts.split.slow_start;
    let mut share = limits.slow_start;
    if facts.grows_without_loss() {
        spent = spent.and(facts.split.congestion_window);
        share += limits.congestion_window;
    }
    if share <= 0.0 {
        return None;
    }
    // Each burst needs a round trip of its own, however large the window.
    let bursts = sender.totals.bursts.max(1) as f64;
    let gain = facts.gain_without(spent, bursts.min(spent.seconds / facts.rtt_min_s.max(1e-6)));
    let waited = facts.split.application.seconds;
    // A burst comes faster than what follows it; a program that writes as much all the time has none.
    let pace = (facts.bytes - spent.bytes) / (facts.phase_s - spent.seconds).max(1e-9);
    let faster = spent.bytes >= MIN_BURST_PACE_RATIO * pace * spent.seconds;
    let large = spent.bytes >= MIN_BURST_SHARE * facts.bytes;
    let burst = waited > 0.0 && large && sender.observers.slow_start.rounds >= 2 && faster;
    // Where the application paces the rest, what can be gained is gained in the burst.
    let in_burst = (burst && gain > 1.0).then(|| {
        let busy = (facts.phase_s - waited).max(facts.rtt_min_s);
        let saved = facts.phase_s - facts.phase_s / gain;
        busy / (busy - saved).max(facts.rtt_min_s)
    });
    let in_burst = in_burst.filter(|&faster| faster >= MIN_GAIN_IN_BURST);
    let growth = WindowGrowth {
        rtt_min_s: facts.rtt_min_s,
        bytes: spent.bytes,
        seconds: spent.seconds,
        slow_start: Some(slow_start(facts)),
    };
    let judged = Judged::new(Cause::InitialWindow(growth), share, in_burst.unwrap_or(gain), Some(gain));
    Some(Judged { in_bursts: in_burst.is_some(), ..judged })
}

fn slow_start(facts: &Facts<'_>) -> SlowStartSeen {
    let (sender, start) = (facts.sender, &facts.sender.observers.slow_start);
    let is_window = is_known(facts);
    let segments = start.initial_bytes as f64 / sender.space.mss as f64;
    let first_data: Vec<(u64, u64)> = sender.totals.first_data.map(|(at, number)| (number, at)).into_iter().collect();
    SlowStartSeen {
        rounds: u64::from(start.rounds),
        // Elsewhere than at the sender acknowledgements are placed by round-trip times: where these vary, not even a bound is left.
        first: (is_window || sender.is_exact()).then_some(FirstFlight {
            segments,
            segment_bytes: sender.space.mss,
            is_window,
        }),
        first_data: sights(&first_data),
        exit: start.exit.map(|(_, exit)| match exit {
            Exit::Loss => SlowStartExit::Loss,
            Exit::Echo => SlowStartExit::EcnEcho,
            Exit::Plateau => SlowStartExit::GrowthStopped,
        }),
        exit_s: start.exit.map(|(at, _)| at as f64 / 1e9),
        crept: facts.crept_from().is_some(),
    }
}

/// Whether the first flight was ended by the window, so that it is the initial window: not by pacing, a loss, or acknowledgements
/// that came early on a path whose delay varies by more than the eighth that Linux takes for a queue (`HYSTART_DELAY_THRESH`).
pub(crate) fn is_known(facts: &Facts<'_>) -> bool {
    let start = &facts.sender.observers.slow_start;
    let rtt = &facts.sender.rtt;
    let lost = start.rounds <= 1 && matches!(start.exit, Some((_, Exit::Loss | Exit::Echo)));
    start.initial_known && !lost && rtt.variation <= rtt.smoothed * QUEUE_PART
}
