//! Load between hosts by iperf3's protocol, at both ends: a client and a server that work with iperf3's own.
//!
//! Control connections of trains and topics share the server's port; they are handed to an [`thalweg_agent::Agent`].
//!
//! [`protocol`] reads and writes messages and has no socket. A test's streams are moved by threads with an epoll each; another thread holds the
//! control connection and looks at the kernel's figures of the streams.
#![warn(clippy::too_many_lines)]

mod client;
mod control;
mod course;
mod error;
pub mod protocol;
mod sampler;
mod server;
mod stream;
mod transactions;
mod worker;

pub use client::{ClientObserver, ClientOptions, run};
pub use error::IperfError;
pub use server::{ServerObserver, ServerOptions, serve};
pub use transactions::{TransactionOptions, transact};
