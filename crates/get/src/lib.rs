//! Downloads over as many ranges as the receive window needs: measures, decides, stores, resumes.

#![warn(clippy::too_many_lines)]

pub mod answer;
pub mod backoff;
mod begin;
pub mod checksum;
mod client;
pub mod controller;
pub mod division;
mod download;
pub mod error;
pub mod fields;
pub mod file_name;
pub mod journal;
pub mod limits;
pub mod options;
pub mod proxy;
pub mod range_set;
pub mod rate_limit;
pub mod store;
mod transfer;
mod trust;
pub mod window;
mod worker;

pub use checksum::Checksum;
pub use client::{Header, HeaderRefused, header};
pub use download::run;
pub use error::{Blame, GetError, Left};
pub use options::{Observer, Options, Output, Progress};
pub use proxy::ProxySettings;
