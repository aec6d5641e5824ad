//! Rules, one a file: each turns facts into at most one finding. Their explanations are in `docs/verdicts`.

mod application;
mod application_window;
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
pub(crate) const RULES: [Rule; 18] = [
    receive_window::judge,
    window_scaling_missing::judge,
    reader::judge,
    send_buffer::judge,
    initial_window::judge,
    random_loss::judge,
    congestion_loss::judge,
    policer::judge,
    retransmission_timeout::judge,
    path_rate::judge,
    congestion_window_clamp::judge,
    idle_restart::judge,
    delayed_ack::judge,
    path_mtu_black_hole::judge,
    reordering::judge,
    bufferbloat::judge,
    application_window::judge,
    application::judge,
];
