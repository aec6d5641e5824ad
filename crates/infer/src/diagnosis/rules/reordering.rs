//! Packets overtake each other, and the sender takes that for loss.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::gain::weight_of_time;
use crate::diagnosis::loss_cost::LossCost;
use thalweg_model::{Cause, OvertakenPackets, Vantage};

/// Times that packets were overtaken from which on it is no chance: one small packet that goes before a burst makes all of it late.
/// `one_packet_before_a_burst_is_no_reordering` holds it.
const MIN_OVERTAKINGS: u64 = 3;

/// Whether most of what was sent again was not lost, but late.
pub(super) fn is_it(facts: &Facts<'_>) -> bool {
    let (losses, board) = (&facts.sender.losses, &facts.sender.scoreboard);
    // Reported by acknowledgements: a timer that runs out too early, or a probe, is not set off by what came late.
    let told = losses.fast >= super::MIN_NEEDLESS && losses.fast * 2 > losses.total;
    // What overtakes on its way is seen where it arrives.
    let is_refuted = facts.vantage == Vantage::Receiver && board.overtakings == 0 && board.out_of_order == 0;
    told && super::are_needless(losses) && !is_refuted
        || board.overtakings >= MIN_OVERTAKINGS && losses.total > 0 && board.out_of_order >= losses.total
}

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if !is_it(facts) {
        return None;
    }
    let cost = LossCost::of(facts);
    let losses = &facts.sender.losses;
    // Elsewhere than at the sender late packets make its pauses look like the program's.
    let afar = if facts.vantage == Vantage::Sender { 0.0 } else { facts.limits().application };
    let share = (cost.share + afar).min(1.0);
    let weight = if afar > 0.0 { cost.gain.max(weight_of_time(share)) } else { cost.gain };
    let known_gain = cost.known_gain;
    let cause = OvertakenPackets {
        repairs: cost.repairs,
        needless: losses.spurious,
        late: facts.sender.scoreboard.out_of_order,
    };
    Some(Judged::new(Cause::Reordering(cause), share, weight, known_gain))
}
