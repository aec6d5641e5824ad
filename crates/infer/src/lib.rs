//! From a capture to causes: packets become connections, connections become facts, facts are judged by rules, one a file.
//!
//! Everything is one pass over the packets with bounded memory for each connection; what needs the whole connection (the
//! path's rate, the shares of its time) is worked out from summaries when the capture ends.
#![warn(clippy::too_many_lines)]
#![forbid(unsafe_code)]

mod capture;
mod diagnosis;
mod error;
mod estimate;
mod event;
mod flow;
mod flow_table;
mod hash;
mod observe;
mod reset;
mod shared_path;
pub mod socket;
mod tcp;
#[cfg(test)]
mod testing;

pub use capture::{
    CaptureDecoder, CaptureDiagnosis, Options, Shard, ShardResult, copy_headers, diagnose_file, diagnose_file_until,
    diagnose_file_with, diagnose_reader, diagnose_reader_with, merge,
};
pub use error::Error;
pub use flow::failed_flow::FailedFlow;
pub use flow::ranking::is_slowed;
pub use flow::retained::Retain;
pub use flow_table::{PlotSelection, TcpPacket};
