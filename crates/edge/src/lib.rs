//! The live edge: RTMP in, HTTP-FLV and HLS out.
//!
//! What viewers share is made once and never changes; a viewer owns a cursor, and what a slow one may hold is bounded.

pub mod http;
pub mod hub;
pub mod token;
