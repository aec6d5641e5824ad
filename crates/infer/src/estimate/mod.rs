//! Estimates from what was observed of a finished direction: rates, levels, origins, and the partition of its time.

pub(crate) mod application_window;
pub(crate) mod busy_bottleneck;
pub(crate) mod capacity;
pub(crate) mod change_points;
pub(crate) mod data_phase;
pub(crate) mod departure_times;
pub(crate) mod emptied_buffer;
pub(crate) mod flight_level;
pub(crate) mod loss_origin;
pub(crate) mod partition;
pub(crate) mod queue_direction;
pub(crate) mod receive_buffer;
pub(crate) mod round_trips;
pub(crate) mod sliding_min;
pub(crate) mod standing_queue;
pub(crate) mod token_bucket;
pub(crate) mod view;
