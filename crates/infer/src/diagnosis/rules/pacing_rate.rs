//! The sender paces its data below what the path takes.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::observe::send_spacing::PacedPieces;
use thalweg_model::{Cause, PacedData, Vantage};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let paced = paced(facts)?;
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

/// What a pacing timer sends, where that is the flight that stands still, and neither a buffer's nor a clamp's.
pub(super) fn paced(facts: &Facts<'_>) -> Option<PacedPieces> {
    let sender = facts.sender;
    let stands = facts.limits().send_buffer > 0.0 && facts.wakes.is_none();
    sender.observers.send_spacing.paced(sender.space.mss, sender.rtt.least().unwrap_or(u64::MAX)).filter(|_| stands)
}
