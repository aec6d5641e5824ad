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
mod reordering;
mod retransmission_timeout;
mod sack_not_translated;
mod send_buffer;
mod window_scale_ignored;
mod window_scaling_missing;

use crate::diagnosis::finding::Rule;

/// Every rule, in the order of [`thalweg_model::Code::ALL`].
pub(crate) const RULES: [Rule; 22] = [
    receive_window::judge,
    window_scaling_missing::judge,
    window_scale_ignored::judge,
    receive_buffer_overrun::judge,
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
