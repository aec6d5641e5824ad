//! The live edge: RTMP in, HTTP-FLV and HLS out.
//!
//! What viewers share is made once and never changes; a viewer owns a cursor, and what a slow one may hold is bounded.

pub mod api;
pub mod clerk;
pub mod demo;
pub mod hooks;
pub mod http;
pub mod hub;
pub mod ingest;
pub mod journal;
pub mod log;
pub mod playout;
mod reload;
pub mod routes;
pub mod server;
mod slab;
pub mod tls;
pub mod token;
pub mod worker;
