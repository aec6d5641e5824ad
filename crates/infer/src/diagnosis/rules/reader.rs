//! The receiving program does not read fast enough.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, seen};
use crate::diagnosis::words;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::Reader, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().reader;
    if share <= 0.0 {
        return None;
    }
    let gain = facts.gain_without(facts.split.reader, 0.0);
    let sender = facts.sender;
    let claim = format!(
        "The receiving program reads too slowly: for {} of the time its window was closed or below three quarters of its largest ({} zero windows, largest {}).",
        words::percent(share),
        sender.window.zero_windows,
        words::size(sender.window.max as f64),
    );
    let mut evidence = Vec::new();
    if sender.window.zero_windows > 0 {
        evidence.push(seen(
            format!("{} advertisements of a window of zero", sender.window.zero_windows),
            &sender.observers.examples.zero_window,
        ));
    }
    if sender.window.full > 0 {
        evidence.push(seen(
            format!("{} packets filled the window", sender.window.full),
            &sender.observers.examples.window_full,
        ));
    }
    Some(Judged { share, weight: gain, gain: facts.capacity.map(|_| gain), claim, evidence, depends_on: None })
}
