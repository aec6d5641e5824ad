//! The receiver's buffer overruns with data out of order.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, counted};
use crate::diagnosis::gain::weight_of_time;
use thalweg_model::{Cause, OverrunBuffer};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let sender = facts.sender;
    let pruned = sender.observers.pruned.as_ref()?;
    // Two proofs: the receiver's acknowledgement, and that the sender took it so.
    if pruned.proofs.count == 0 || pruned.again == 0 || facts.phase_s <= 0.0 {
        return None;
    }
    let share = (pruned.repair as f64 / 1e9 / facts.phase_s).min(1.0);
    let cause = OverrunBuffer {
        dropped: counted(&pruned.proofs),
        again_bytes: pruned.again,
        refused: (!sender.is_exact()).then_some(pruned.refused),
        window_bytes: pruned.window.unwrap_or(0),
        window_max_bytes: sender.window.max,
        segment_bytes: sender.totals.bytes as f64 / sender.totals.data_packets.max(1) as f64,
    };
    // The losses that made the gaps would remain.
    Some(Judged::new(Cause::ReceiveBufferOverrun(cause), share, weight_of_time(share), None))
}
