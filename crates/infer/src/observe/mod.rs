//! What is counted about one direction of a connection while it lasts; nothing here concludes anything.

pub(crate) mod congestion_control;
pub(crate) mod example_packets;
pub(crate) mod flight_levels;
pub(crate) mod gap_spacing;
pub(crate) mod idle_restarts;
pub(crate) mod log_histogram;
pub(crate) mod loss_episodes;
pub(crate) mod microbursts;
pub(crate) mod nagle_delayed_ack;
pub(crate) mod packet_trains;
pub(crate) mod plot_series;
pub(crate) mod policer_log;
pub(crate) mod reordering;
pub(crate) mod rtt_before_loss;
pub(crate) mod slow_start;
pub(crate) mod sndbuf_wakeups;
pub(crate) mod tail_losses;
pub(crate) mod time_by_limit;
pub(crate) mod window_growth;
