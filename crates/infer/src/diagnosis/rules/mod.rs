//! Rules, one a file: each turns facts into at most one finding. Their explanations are in `docs/verdicts`.

mod application;
mod application_window;
mod bufferbloat;
mod congestion_loss;
mod congestion_window_clamp;
mod delayed_ack;
mod idle_restart;
pub(crate) mod initial_window;
mod pacing_rate;
mod path_mtu_black_hole;
pub(crate) mod path_rate;
mod policer;
mod random_loss;
mod reader;
mod receive_buffer_overrun;
mod receive_window;
mod receiver_drops;
mod reordering;
mod retransmission_timeout;
mod sack_not_translated;
mod send_buffer;
mod window_scale_ignored;
mod window_scaling_missing;

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Rule;
use crate::tcp::recovery::Losses;

/// Every rule, in the order of [`thalweg_model::Code::ALL`].
pub(crate) const RULES: [Rule; 23] = [
    receive_window::judge,
    window_scaling_missing::judge,
    window_scale_ignored::judge,
    receive_buffer_overrun::judge,
    receiver_drops::judge,
    reader::judge,
    send_buffer::judge,
    initial_window::judge,
    random_loss::judge,
    congestion_loss::judge,
    policer::judge,
    retransmission_timeout::judge,
    path_rate::judge,
    congestion_window_clamp::judge,
    pacing_rate::judge,
    idle_restart::judge,
    delayed_ack::judge,
    path_mtu_black_hole::judge,
    sack_not_translated::judge,
    reordering::judge,
    bufferbloat::judge,
    application_window::judge,
    application::judge,
];

/// Packets sent again in vain from which on it is no chance. `one_packet_before_a_burst_is_no_reordering` holds it.
const MIN_NEEDLESS: u64 = 3;

/// Whether more than half of what was sent again is proven needless (RFC 8985 §1 on what reordering does, RFC 5682 §1 on a timer that runs out too
/// early): the path lost nothing.
fn are_needless(losses: &Losses) -> bool {
    let needless = losses.spurious - losses.repeated;
    needless >= MIN_NEEDLESS && needless * 2 > losses.total
}

/// Whether losses are of another kind than the rules of random and of congestion losses are about.
fn explains_losses(facts: &Facts<'_>) -> bool {
    facts.bucket.is_some()
        || are_needless(&facts.sender.losses)
        || reordering::is_it(facts)
        || receiver_drops::arrived(facts).is_some()
}
