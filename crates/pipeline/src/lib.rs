//! The main flows as a library, without a terminal: run a scenario and diagnose it, fit a path to a capture, prove a remedy.
//!
//! [`Bench`] runs arms in the lab and reads their captures. [`fix::scenario`] runs a scenario as found, plans what mends it, and runs it
//! again; [`fix::capture`] does so on a path that it fits to a captured connection. [`bundle`] writes that for others to rerun.
//! [`diagnose::diagnose_many`] diagnoses captures and gives them to [`diagnose::Sink`]s. An [`Observer`] receives notes and progress.

#![warn(clippy::too_many_lines)]

mod arm_findings;
mod bench;
pub mod bundle;
mod captured_flow;
mod chance;
pub mod diagnose;
mod explore;
mod failure;
mod fit;
pub mod fix;
mod lab_runs;
mod observer;
mod out_folder;
mod remedy;
mod rival;
mod samples;
mod score;
mod search;
pub mod whole;

pub use arm_findings::ArmFindings;
pub use bench::{Bench, BenchOptions, PLOTS_MAX, Ran, Task};
pub use failure::{Failure, Party};
pub use observer::{Observer, Silent};
pub use out_folder::{OutFolder, folder_name};

#[cfg(test)]
#[path = "../../infer/tests/merged/mod.rs"]
mod merged;
