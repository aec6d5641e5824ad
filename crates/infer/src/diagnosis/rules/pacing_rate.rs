//! The sender paces its data below what the path takes.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use thalweg_model::{Cause, PacedData, Vantage};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if !is_paced(facts) {
        return None;
    }
    let paced = facts.sender.observers.send_spacing.paced(facts.sender.space.mss)?;
    let cause = PacedData {
        rate_bps: paced.rate * 8.0,
        piece_bytes: paced.bytes,
        interval_s: paced.interval_s,
        pieces: paced.pieces,
        even: paced.even,
        at_sender: facts.vantage == Vantage::Sender,
    };
    let (weight, gain) = facts.weigh_bound(facts.split.send_buffer);
    Some(Judged::new(Cause::PacingRate(cause), facts.limits().send_buffer, weight, gain))
}

/// Whether a flight that stands still is one that a pacing timer sends, and neither a buffer's nor a clamp's.
pub(super) fn is_paced(facts: &Facts<'_>) -> bool {
    let sender = facts.sender;
    facts.limits().send_buffer > 0.0
        && facts.wakes.is_none()
        && sender.observers.send_spacing.paced(sender.space.mss).is_some()
}
