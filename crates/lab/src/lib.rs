//! Scenarios run on the Linux kernel's own TCP: in virtual time, or in real time on this host's kernel.
//!
//! [`kernel`] builds and finds lab kernels; [`run`] runs a scenario's arms and repeats, each in a guest of its own;
//! [`guest_main`] is what the same program does as the first process of such a guest, and [`live_part`] what it does as a run in real
//! time. [`keep_hosts`] leaves the hosts of a scenario up, in real time and without its workload.

#![warn(clippy::too_many_lines)]

mod boot;
mod compare;
mod engine;
mod episodes;
mod error;
mod exits;
mod guest;
mod join;
mod keeper;
pub mod kernel;
mod live;
mod plan;
mod quantiles;
mod run;
mod run_journal;
mod scratch;
mod single_run;
mod summary;

use std::process::ExitCode;

pub use boot::{BootError, Progress as GuestProgress};
pub use compare::compare;
pub use engine::Engine;
pub use error::LabError;
pub use exits::{check, unexpected_exits};
pub use guest::main as guest_main;
pub use join::{JoinError, join};
pub use keeper::keep_hosts;
pub use live::{NotLive, check_live, check_live_path};
pub use plan::{CaptureEnds, RunOptions};
pub use run::{LabArm, LabRun, Part, RunEvent, RunRequest, across, run};
pub use run_journal::RunJournal;
pub use scratch::Scratch;
pub use single_run::SingleRun;
pub use summary::{compare_arms, difference};

/// Does what this process was started for, if it was by a run in real time or to keep hosts up.
pub fn live_part() -> Option<ExitCode> {
    match std::env::args_os().nth(1)?.to_str()? {
        boot::LIVE_RUN => Some(guest::live_main()),
        keeper::KEEP_HOSTS => Some(guest::keep_main()),
        _ => None,
    }
}
