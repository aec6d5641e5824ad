//! What the kernel refused.

use std::io;
use thiserror::Error;

/// A system call that failed, and what it was about.
#[derive(Debug, Error)]
#[error("cannot {act}: {source}")]
pub struct HostError {
    /// What was tried, on which object.
    pub act: String,
    /// What the kernel said.
    pub source: io::Error,
}

/// Turns the result of a C call into `Ok` or the error in `errno`.
pub(crate) fn check(result: libc::c_int, act: impl FnOnce() -> String) -> Result<libc::c_int, HostError> {
    if result < 0 { Err(HostError { act: act(), source: io::Error::last_os_error() }) } else { Ok(result) }
}

/// Gives an I/O error its object.
pub(crate) fn wrap<T>(result: io::Result<T>, act: impl FnOnce() -> String) -> Result<T, HostError> {
    result.map_err(|source| HostError { act: act(), source })
}
