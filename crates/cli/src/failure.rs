//! The exit code of a failure.

pub(crate) use thalweg_pipeline::Failure;

use std::process::ExitCode;
use thalweg_pipeline::Party;

/// The code the process ends with.
pub(crate) fn exit_code(failure: &Failure) -> ExitCode {
    code_of(failure.party())
}

/// The code for a failure that this party can mend.
pub(crate) fn code_of(party: Party) -> ExitCode {
    ExitCode::from(match party {
        Party::User => 2,
        Party::Host => 3,
        // As shells have it after SIGINT.
        Party::Stopped => 130,
    })
}
