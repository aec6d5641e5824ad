//! Players by the thousand, against any live-streaming server: what they ask for, when, and what they had to wait for.
//!
//! A player polls as players do: by the media sequence of the playlist (RFC 8216 §6.3), each with a session of its own. Times are
//! counted from when something was due, not from when a busy client got to it, so a slow server cannot hide behind a slow client
//! (coordinated omission).

#![warn(clippy::too_many_lines)]

mod connection;
mod flv;
mod format;
mod glance;
mod hls;
mod plan;
mod player;
mod playlist;
mod playout;
mod request;
mod response;
mod segment;
mod tally;
pub mod tls;
mod worker;

pub use plan::{Kind, LoadError, Plan};
pub use tally::{Tally, Times};
pub use worker::run;
