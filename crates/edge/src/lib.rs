//! The live edge: RTMP in, HTTP-FLV and HLS out.
//!
//! What viewers share is made once and never changes; a viewer owns a cursor, and what a slow one may hold is bounded.

#![warn(clippy::too_many_lines)]

pub mod api;
pub mod connection_limits;
pub mod demo;
pub mod hooks;
pub mod http;
pub mod hub;
pub mod ingest;
pub mod journal;
pub mod journal_budget;
pub mod log;
pub mod playout;
mod reload;
pub mod routes;
pub mod server;
pub mod session_stats;
pub mod shared;
mod slab;
pub mod tls;
pub mod token;
pub mod viewer;
pub mod viewer_registry;
pub mod worker;
