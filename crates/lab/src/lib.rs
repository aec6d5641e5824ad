//! Scenarios run on the Linux kernel's own TCP: in virtual time, or in real time on this host's kernel.
//!
//! [`kernel`] builds and finds lab kernels; [`run`] runs a scenario's arms and repeats, each in a guest of its own;
//! [`guest_main`] is what the same program does as the first process of such a guest, and [`live_main`] what it does as a run in real
//! time.

#![warn(clippy::too_many_lines)]

mod boot;
mod compare;
mod engine;
mod episodes;
mod error;
mod exits;
mod guest;
mod join;
pub mod kernel;
mod live;
mod plan;
mod quantiles;
mod run;
mod run_journal;
mod scratch;
mod single_run;
mod summary;

pub use boot::{BootError, Progress as GuestProgress};
pub use compare::compare;
pub use engine::Engine;
pub use error::LabError;
pub use exits::{check, unexpected_exits};
pub use guest::{live_main, main as guest_main};
pub use join::{JoinError, join};
pub use live::{NotLive, check_live};
pub use plan::{CaptureEnds, RunOptions};
pub use run::{LabArm, LabRun, Part, RunEvent, RunRequest, across, run};
pub use run_journal::RunJournal;
pub use scratch::Scratch;
pub use single_run::SingleRun;
pub use summary::{compare_arms, difference};

/// Whether this process was started as a run in real time.
pub fn is_live_run() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == boot::LIVE_RUN)
}
