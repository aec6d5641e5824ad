//! A firewall changes sequence numbers, and not those in selective acknowledgements.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, counted};
use thalweg_model::{Cause, ForeignBlocks};

/// Blocks about data that was never sent: one may be a damaged packet. `a_firewall_that_leaves_blocks_as_they_are_is_named` holds it.
const MIN_BLOCKS: u64 = 3;
/// And their part of all, in tenths: one in thirty of numbers at random looks like a number of the connection's.
/// `a_firewall_that_leaves_blocks_as_they_are_is_named` holds it.
const MIN_TENTHS: u64 = 9;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let board = &facts.sender.scoreboard;
    let (count, of) = (facts.sender.observers.foreign_blocks.count, board.sack_blocks);
    if count < MIN_BLOCKS || count * 10 < of * MIN_TENTHS {
        return None;
    }
    let (share, weight) = facts.weigh_repair();
    let blocks = counted(&facts.sender.observers.foreign_blocks);
    let cause = Cause::SackNotTranslated(ForeignBlocks { blocks, of });
    // The losses themselves would remain, repaired within a round trip.
    Some(Judged::new(cause, share, weight, None))
}
