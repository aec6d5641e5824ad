//! Silences that only a timer ended.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, Rule, seen};
use crate::diagnosis::words;
use crate::event::RetransmitKind;
use thalweg_model::Code;

pub(crate) const RULE: Rule = Rule { code: Code::RetransmissionTimeout, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let losses = &facts.sender.losses;
    let share = facts.limits().timeout;
    if share <= 0.0 {
        return None;
    }
    // After a timeout the window begins anew at one segment: the repair and growth that follow are its cost too.
    let after = facts.split.loss_recovery.and(facts.split.congestion_window).part(facts.timer_part());
    let gain = facts.gain_without(facts.split.timeout.and(after), 0.0);
    let fired: Vec<_> = losses.episodes.iter().filter(|loss| loss.kind != RetransmitKind::Fast).collect();
    let claim = if let (Some(silence), true) = (losses.in_vain, fired.is_empty()) {
        format!(
            "Something was missing when packets stopped coming, and never came: nothing for {}, {} of the time. The sender waited for its timer, or what that sent was lost as well.",
            words::time(silence as f64 / 1e9),
            words::percent(share),
        )
    } else {
        let longest = fired.iter().map(|loss| loss.silence).chain(losses.in_vain).max().unwrap_or(0);
        format!(
            "The sender was silent for {} of the time until a timer fired: {} and {}, the longest silence {}.",
            words::percent(share),
            words::count(losses.timeouts, "timeout"),
            words::count(losses.probe, "tail loss probe"),
            words::time(longest as f64 / 1e9),
        )
    };
    let first: Vec<(u64, u64)> = fired.iter().take(3).map(|loss| (loss.number, loss.at)).collect();
    let mut evidence = Vec::new();
    if !first.is_empty() {
        evidence.push(seen("the retransmissions that ended the silences".to_owned(), &first));
    }
    Some(Judged { share, weight: gain, gain: Some(gain), claim, evidence, depends_on: None })
}
