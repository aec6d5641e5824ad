//! Downloads over as many ranges as the receive window needs: measures, decides, stores, resumes.

pub mod backoff;
pub mod checksum;
pub mod controller;
pub mod division;
pub mod error;
pub mod fields;
pub mod file_name;
pub mod journal;
pub mod proxy;
pub mod range_set;
pub mod rate_limit;
pub mod store;
