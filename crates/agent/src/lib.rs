//! Packet trains and messages between two hosts, over one control connection that a token protects.
//!
//! [`message`] reads and writes messages and has no socket. `thalweg load serve` hands connections whose cookie is of this protocol to an
//! [`Agent`]; [`udp_train`] and [`topics`] are the clients. A client that was let in is also an admission for streams of iperf3's protocol.
#![warn(clippy::too_many_lines)]

mod agent;
mod client;
mod clock;
mod control;
mod error;
pub mod message;
mod session;
mod token;
mod topics;
mod train;

pub use agent::{Agent, AgentObserver};
pub use client::{Admission, ServerAddress};
pub use error::AgentError;
pub use token::{InvalidToken, TOKEN_CHARS_MAX, TOKEN_CHARS_MIN, Token};
pub use topics::{NamedTopic, TopicsOptions, topics};
pub use train::{TrainOptions, udp_train};
