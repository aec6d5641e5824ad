//! The main flows as a library, without a terminal: run a scenario and diagnose it, prove a remedy.
//!
//! [`Bench`] runs arms in the lab and reads their captures; [`fix`] runs a scenario as found, plans what mends it, and runs it again.
//! An [`Observer`] receives notes and progress.

#![warn(clippy::too_many_lines)]

mod bench;
mod failure;
pub mod fix;
mod observer;
mod out_folder;
mod remedy;
mod samples;
pub mod whole;

pub use bench::{ArmFindings, Bench, BenchOptions, PLOTS_MAX, Ran, Task};
pub use failure::{Failure, Party};
pub use observer::{Observer, Silent};
pub use out_folder::OutFolder;
