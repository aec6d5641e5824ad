//! From a capture to causes: packets become connections, connections become facts, facts are judged by rules, one a file.
//!
//! Everything is one pass over the packets with bounded memory for each connection; what needs the whole connection (the
//! path's rate, the shares of its time) is worked out from summaries when the capture ends.

#![forbid(unsafe_code)]

mod backlog;
mod buffer;
mod bursts;
mod connection;
mod counts;
mod diagnose;
mod drawn;
mod echo;
mod engine;
mod error;
mod facts;
mod family;
mod finished;
mod flights;
mod flow;
#[cfg(test)]
mod handmade;
mod handshake;
mod heights;
mod held;
mod holes;
mod kept;
mod key;
mod late;
mod legs;
mod life;
mod order;
mod packet;
mod phase;
mod places;
mod policer;
mod queue;
mod ranges;
mod rate;
mod recovery;
mod restarts;
mod room;
mod rounds;
mod rtt;
mod rules;
pub mod sampled;
mod sender;
mod shared;
mod shown;
mod signals;
mod spans;
mod start;
mod table;
mod thin;
mod timeline;
mod together;
mod wakes;
mod words;

pub use diagnose::{
    CaptureDiagnosis, Options, diagnose_file, diagnose_file_with, diagnose_reader, diagnose_reader_with,
};
pub use engine::{Intake, Part, Shard, join};
pub use error::Error;
pub use kept::Wanted;
pub use order::is_slowed;
pub use rules::explain;
pub use table::{Drawn, Seen};
