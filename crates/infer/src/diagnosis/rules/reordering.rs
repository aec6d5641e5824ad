//! Packets overtake each other, and the sender takes that for loss.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::gain::weight_of_time;
use crate::diagnosis::loss_cost::LossCost;
use thalweg_model::{Cause, OvertakenPackets, Vantage};

/// Packets sent again in vain, or times that some were overtaken, from which on it is no chance: one small packet that goes before a burst makes all of it
/// late. `one_packet_before_a_burst_is_no_reordering` holds it.
const MIN_PACKETS: u64 = 3;

/// Whether most of what was sent again was not lost, but late.
pub(super) fn is_it(facts: &Facts<'_>) -> bool {
    let losses = &facts.sender.losses;
    // More than half proven needless (RFC 8985 §1 on what reordering does), and reported by acknowledgements: a timer that runs out too early, or a
    // probe, is not set off by what came late.
    let told = losses.fast >= MIN_PACKETS && losses.fast * 2 > losses.total;
    let needless = losses.spurious - losses.repeated;
    let in_vain = told && needless >= MIN_PACKETS && needless * 2 > losses.total;
    in_vain
        || facts.sender.scoreboard.overtakings >= MIN_PACKETS
            && losses.total > 0
            && facts.sender.scoreboard.out_of_order >= losses.total
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
