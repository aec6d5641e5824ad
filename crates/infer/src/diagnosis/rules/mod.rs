//! Rules, one a file: each turns facts into at most one finding. Their explanations are in `docs/verdicts`.

mod application;
mod bufferbloat;
mod congestion_loss;
mod congestion_window_clamp;
mod delayed_ack;
mod idle_restart;
pub(crate) mod initial_window;
mod path_mtu_black_hole;
pub(crate) mod path_rate;
mod policer;
mod random_loss;
mod reader;
mod receive_window;
mod reordering;
mod retransmission_timeout;
mod send_buffer;
mod window_scaling_missing;

use crate::diagnosis::finding::Rule;

/// Every rule, in the order of [`thalweg_model::Code::ALL`].
pub(crate) const RULES: [Rule; 17] = [
    receive_window::RULE,
    window_scaling_missing::RULE,
    reader::RULE,
    send_buffer::RULE,
    initial_window::RULE,
    random_loss::RULE,
    congestion_loss::RULE,
    policer::RULE,
    retransmission_timeout::RULE,
    path_rate::RULE,
    congestion_window_clamp::RULE,
    idle_restart::RULE,
    delayed_ack::RULE,
    path_mtu_black_hole::RULE,
    reordering::RULE,
    bufferbloat::RULE,
    application::RULE,
];
