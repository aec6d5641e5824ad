//! Live media between an encoder and players, as state machines: bytes in, bytes out. No socket, no clock, no thread.
//!
//! Whatever the bytes are, nothing here panics, and what is held for them has a bound.
//!
//! - [`rtmp::Session`] is a publisher's connection as the server has it. Give it what the socket has, take what happens:
//!
//!   ```
//!   # use thalweg_media::rtmp::{Event, Limits, Refusal, Session};
//!   # fn read() -> &'static [u8] { b"\x03" }
//!   # let (random, allowed) = ([0; 1536], true);
//!   let mut session = Session::new(random, Limits::default());
//!   let mut input: &[u8] = read();
//!   while let Some(event) = session.handle(&mut input)? {
//!       match event {
//!           // The answer may come later: until then `is_waiting()`, and nothing is taken off `input`.
//!           Event::Publish { app, name, query } if allowed => session.accept(),
//!           Event::Publish { .. } => session.refuse(Refusal::Denied),
//!           Event::Tag(tag) => drop((tag.kind, tag.timestamp_ms, tag.payload)),
//!           Event::Unpublish => {}
//!           _ => {}
//!       }
//!   }
//!   // What is left in `input` is given again with what comes next. Then write `output()`, and say how much went: `sent(n)`.
//!   let n = session.output().len();
//!   session.sent(n);
//!   # Ok::<(), thalweg_media::rtmp::SessionError>(())
//!   ```
//!
//!   An error ends the connection: send what `output()` holds, and close. Closing by the publisher without `Unpublish` before is
//!   for the caller to notice.
//! - [`rtmp::Publisher`] is the other side, for tests and load.
//! - [`Ingest`] turns a publisher's tags into [`Config`]s, metadata and [`Unit`]s on one [`Timeline`] that never goes back. A unit
//!   does not say what brought it, so that other protocols and codecs can be added beside these.
//! - [`flv`] writes units, configurations and tags into bytes, and reads tags out of them: HTTP-FLV.
//! - [`ts`] writes them into MPEG-TS, and takes that apart strictly.
//! - [`hls::Segmenter`] cuts units in segments, [`hls::Window`] lists them in playlists and says when one may be forgotten; and
//!   [`hls::Checker`] holds successive playlists against RFC 8216.
//! - [`avc`] and [`aac`] know of the codecs what a server has to.
//! - [`demo::Demo`] is a stream of its own: a moving picture with sound.
//! - [`metadata`] reads what a publisher says of its stream.
//! - [`amf`] is what commands and metadata are made of.

#![warn(clippy::too_many_lines)]

pub mod aac;
pub mod amf;
pub mod avc;
mod bits;
mod codec;
pub mod demo;
pub mod flv;
pub mod hls;
mod ingest;
pub mod metadata;
mod mp3;
pub mod rtmp;
mod tag;
mod timeline;
pub mod ts;
mod unit;

pub use aac::AacConfig;
pub use avc::AvcConfig;
pub use codec::{CodecId, Foreign};
pub use ingest::{Arrival, Ingest, IngestError};
pub use mp3::{Mp3Config, Mp3Error};
pub use tag::{Tag, TagKind};
pub use timeline::{Placed, Timeline};
pub use unit::{Config, Track, Unit};
