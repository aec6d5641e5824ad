//! Users at both ends of a local socket, and this process's use of processors.

use std::io;
use std::os::unix::net::UnixStream;
use thalweg_units::Span;

/// This process's user.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user of the process that made the other end.
///
/// # Errors
/// When the kernel does not say.
pub fn user(connection: &UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(connection)?.uid.as_raw())
}

/// Processor time that all threads of this process have taken.
pub fn processor_time() -> Span {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Span::from_secs_f64(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}
