//! RTMP between publishers and a server: handshake, chunks, messages and the sessions above them. No socket, no clock.
//!
//! Source: Adobe, "Real-Time Messaging Protocol (RTMP) specification" 1.0 (2012); the digests of the handshake are in none, and are
//! as Flash players and FFmpeg send them.

mod aggregate;
mod chunk;
mod command;
mod cut;
mod handshake;
mod message;
mod publisher;
mod session;

pub use chunk::{ChunkError, ChunkReader};
pub use cut::ChunkWriter;
pub use handshake::{Handshake, HandshakeError};
pub use message::{Message, MessageKind};
pub use publisher::{Publisher, PublisherError, PublisherEvent};
pub use session::{Event, Limits, Refusal, Session, SessionError};
