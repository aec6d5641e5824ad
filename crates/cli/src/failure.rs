//! The exit code of a failure.

pub(crate) use pipeline::Failure;

use pipeline::Party;
use std::process::ExitCode;

/// The code the process ends with.
pub(crate) fn exit_code(failure: &Failure) -> ExitCode {
    ExitCode::from(match failure.party() {
        Party::User => 2,
        Party::Host => 3,
        // As shells have it after SIGINT.
        Party::Stopped => 130,
    })
}
