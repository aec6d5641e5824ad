//! Silences that only a timer ended.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, sights};
use crate::event::RetransmitKind;
use thalweg_model::{Cause, Timeouts};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let losses = &facts.sender.losses;
    let share = facts.limits().timeout;
    if share <= 0.0 {
        return None;
    }
    // After a timeout the window restarts at one segment: the repair and growth that follow are its cost too.
    let after = facts.split.loss_recovery.and(facts.split.congestion_window).part(facts.timer_part());
    let gain = facts.gain_without(facts.split.timeout.and(after), 0.0);
    let fired: Vec<_> = losses.episodes.iter().filter(|loss| loss.kind != RetransmitKind::Fast).collect();
    let never_repaired = losses.in_vain.is_some() && fired.is_empty();
    let longest = fired.iter().map(|loss| loss.silence).chain(losses.in_vain).max().unwrap_or(0);
    let first: Vec<(u64, u64)> = fired.iter().take(3).map(|loss| (loss.number, loss.at)).collect();
    let cause = Timeouts {
        timeouts: losses.timeouts,
        probes: Some(losses.probe),
        longest_s: Some(longest as f64 / 1e9),
        never_repaired,
        sights: sights(&first),
    };
    Some(Judged::new(Cause::RetransmissionTimeout(cause), share, gain, Some(gain)))
}
