//! Connections reconstructed from packets: what each side sent, what it had heard, and why it sent again.

mod answer_delay;
pub(crate) mod connection;
pub(crate) mod handshake;
pub(crate) mod packet;
pub(crate) mod packet_too_big;
pub(crate) mod range_set;
pub(crate) mod receiver_view;
pub(crate) mod recovery;
pub(crate) mod rtt_estimator;
pub(crate) mod sender;
mod set_back_clock;
pub(crate) mod signals;
pub(crate) mod tap_duplicates;
pub(crate) mod tap_position;
