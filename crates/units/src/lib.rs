//! The quantities of networking as types that parse what people type (`3gbit`, `35ms`, `64KiB`) and print it back.
//!
//! Every type is a plain integer inside (bits per second, bytes, nanoseconds), so that equality and hashing are exact.

#![warn(clippy::too_many_lines, clippy::struct_excessive_bools)]

mod bytes;
pub mod figures;
mod quantity;
mod rate;
mod ratio;
mod seed;
mod seq;
mod span;
mod timestamp;

pub use bytes::Bytes;
pub use quantity::ParseError;
pub use rate::Rate;
pub use ratio::Ratio;
pub use seed::Seed;
pub use seq::SeqNum;
pub use span::Span;
pub use timestamp::Timestamp;
