//! What a tap elsewhere than at the sender tells of it: by timestamps, and by the identification of IPv4.

pub(crate) mod ipid_gaps;
pub(crate) mod one_way_delay;
pub(crate) mod remote_clock;
pub(crate) mod timestamp_rtt;
