//! A network path as a pure state machine over [`thalweg_model::PathDirection`].
//!
//! Packets with arrival times go in, departures with their times come out. Nothing here reads a clock, opens a socket or
//! starts a thread: the same packets, times and [`thalweg_units::Seed`] give the same departures, whenever they are asked for.
//!
//! A packet passes the policer, the bottleneck (queue, then rate or trace) and the propagation (listed losses, black hole,
//! random loss, duplication, corruption, jitter and delay), which is the order of the virtual lab.
//!
//! A [`Switch`] joins the paths of several hosts: its ports share a buffer.
//!
//! Every stage acts on wire segments. A [`Packet`] may hold the many segments of one TSO or USO frame; segments that leave
//! at the same time leave as one [`Departure`].
#![forbid(unsafe_code)]

mod bottleneck;
mod chance;
mod counters;
mod delay;
mod delay_line;
pub mod distribution;
mod loss;
mod one_way;
mod packet;
mod policer;
mod propagation;
mod queue;
mod random;
mod shaper;
mod switch;
mod token_bucket;
mod trace;

pub use counters::{Counters, DropReason, Tally};
pub use delay_line::Departure;
pub use one_way::{OneWay, Unsupported};
pub use packet::{Lengths, Packet};
pub use switch::{PortCounters, Switch};
