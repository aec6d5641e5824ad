//! A host's TCP sockets, live: what the kernel says of them in, rows, a screen and metrics out.
//!
//! No socket, clock or thread: [`Tracker`] takes what was observed and when, [`View`] takes keys, [`draw`] fills a buffer. The judgement is
//! the doctor's ([`thalweg_infer::socket`]).
#![warn(clippy::too_many_lines)]

mod backlog;
mod bursts;
mod column;
mod detail;
mod filter;
mod metrics;
mod otlp;
mod prometheus;
mod screen;
mod table;
mod totals;
mod tracker;
mod view;

pub use bursts::{Bursts, BusyBin, FlowId, MapBuilder, Port, Resent, bursts_text, flow_of};
pub use column::{Column, ColumnSet};
pub use filter::{Filter, FilterError};
pub use otlp::{OtlpPeriod, otlp_request};
pub use prometheus::exposition;
pub use screen::draw;
pub use table::plain;
pub use totals::Totals;
pub use tracker::{Observed, Tracker};
pub use view::{Key, Mode, View};

#[cfg(test)]
mod tests;
