//! The receiver's window is smaller than the path holds.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, fact, seen};
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::ReceiveWindow, judge };

/// The largest window without scaling (RFC 9293 §3.1).
const UNSCALED_MAX: u64 = 65_535;

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if lacks_scaling(facts) {
        return None;
    }
    judge_window(facts)
}

/// Whether it is the missing option that keeps the window small: one that stays below half of what it could be is kept there by its buffer.
pub(super) fn lacks_scaling(facts: &Facts<'_>) -> bool {
    facts.connection.opening.lacks_scaling() && (UNSCALED_MAX / 2..=UNSCALED_MAX).contains(&facts.sender.window.max)
}

/// The finding, whatever keeps the window small.
pub(super) fn judge_window(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().receive_window;
    if share <= 0.0 {
        return None;
    }
    let (weight, gain) = facts.weigh_bound(facts.split.receive_window);
    let sender = facts.sender;
    let window = if sender.window.full > 0 {
        sender.window.full_sum / sender.window.full as f64
    } else {
        sender.window.max as f64
    };
    let claim = format!(
        "The receiver's window was full for {1} of the time, at {0} on average; over a round trip of {2} that allows {3}.",
        words::size(window),
        words::percent(share),
        words::time(facts.rtt_min_s),
        words::rate(window / facts.rtt_min_s.max(1e-6)),
    );
    let mut evidence = vec![seen(
        format!("{} packets filled the window to within one segment", sender.window.full),
        &sender.observers.examples.window_full,
    )];
    if let Some(largest) = sender.observers.examples.largest_window {
        evidence.push(seen(format!("the largest window advertised is {} bytes", sender.window.max), &[largest]));
    }
    if let (Some(capacity), Some(bdp)) = (facts.capacity, facts.bdp()) {
        let (rate, size) = (words::rate(capacity), words::size(bdp));
        evidence.push(fact(if facts.blurred {
            format!("delays that vary bunch packets up: the path delivers {rate} at least, so it holds {size} or more in a round trip")
        } else {
            format!("the path delivers bursts at {rate}, so it holds {size} in a round trip")
        }));
    }
    Some(Judged { share, weight, gain, claim, evidence, depends_on: None })
}
