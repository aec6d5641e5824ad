//! The transfer was over before the congestion window had grown.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact, seen};
use crate::diagnosis::gain::weight_of_time;
use crate::diagnosis::words;
use crate::estimate::view::QUEUE_PART;
use crate::observe::slow_start::Exit;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::InitialWindow, judge };

/// Part of the bytes that must have moved in slow start for a flow that is paced by its application afterwards to be judged by
/// its start: a burst smaller than a tenth of a stream is not what its user waits for.
const BURST_PART: f64 = 0.1;
/// And so many times faster than the rest it must have moved, for all that slow start is slow.
const BURST_PACE: f64 = 1.5;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
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
    let faster = spent.bytes >= BURST_PACE * pace * spent.seconds;
    let burst =
        waited > 0.0 && spent.bytes >= BURST_PART * facts.bytes && sender.observers.slow_start.rounds >= 2 && faster;
    // Where the application paces the rest, what can be gained is gained in the burst.
    let weight = if burst && gain > 1.0 {
        let busy = (facts.phase_s - waited).max(facts.rtt_min_s);
        let saved = facts.phase_s - facts.phase_s / gain;
        let in_burst = busy / (busy - saved).max(facts.rtt_min_s);
        if in_burst >= 1.5 { in_burst.max(weight_of_time(limits.application) * 1.01) } else { gain }
    } else {
        gain
    };
    let segments = sender.observers.slow_start.initial_bytes as f64 / sender.space.mss as f64;
    // Elsewhere than at the sender acknowledgements are placed by round-trip times: where these vary, not even a bound is left.
    let first = if is_known(facts) {
        Some(format!("about {segments:.0} segments"))
    } else if sender.times_acks {
        Some(format!("at least {segments:.0} segments"))
    } else {
        None
    };
    let claim = match facts.crept_from() {
        Some(ended) => format!(
            "Slow start ended without a loss after {}, and the window crept up from there: that took {} of the time.",
            words::time(ended),
            words::percent(share)
        ),
        None => format!(
            "{} of the time is growth of the congestion window{} over {} round trips of {}.",
            words::percent(share),
            first.as_ref().map_or(String::new(), |first| format!(" from {first}")),
            sender.observers.slow_start.rounds.max(1),
            words::time(facts.rtt_min_s),
        ),
    };
    let evidence = vec![
        seen(
            first.map_or_else(
                || "the first data; its window cannot be told from here".to_owned(),
                |first| format!("the first flight is {first} of {} bytes", sender.space.mss),
            ),
            &sender.totals.first_data.map(|(at, number)| (number, at)).into_iter().collect::<Vec<_>>(),
        ),
        fact(format!(
            "{} were delivered in {} of window growth; slow start {}",
            words::size(spent.bytes),
            words::time(spent.seconds),
            match sender.observers.slow_start.exit {
                None => "did not end before the data did".to_owned(),
                Some((at, Exit::Loss)) => format!("ended with a loss at {}", words::time(at as f64 / 1e9)),
                Some((at, Exit::Echo)) => format!("ended with an ECN echo at {}", words::time(at as f64 / 1e9)),
                Some((at, Exit::Plateau)) => format!("ended without loss at {}", words::time(at as f64 / 1e9)),
            }
        )),
    ];
    Some(Judged { share, weight, gain: Some(gain), claim, evidence, depends_on: None })
}

/// Whether the first flight was ended by the window, so that it is the initial window: not by pacing, a loss, or acknowledgements
/// that came early on a path whose delay varies by more than the eighth that Linux takes for a queue (`HYSTART_DELAY_THRESH`).
pub(crate) fn is_known(facts: &Facts<'_>) -> bool {
    let start = &facts.sender.observers.slow_start;
    let rtt = &facts.sender.rtt;
    let lost = start.rounds <= 1 && matches!(start.exit, Some((_, Exit::Loss | Exit::Echo)));
    start.initial_known && !lost && rtt.variation <= rtt.smoothed * QUEUE_PART
}
