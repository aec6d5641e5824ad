//! Bytes from one connection to another, without a copy through this process.
//!
//! Source: splice(2).

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::io;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// What a pipe between two sockets holds; an ordinary user may ask for it by default (`fs.pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;

/// Passes the bytes of `from` on to `to` until there are no more, and then ends that direction of `to`.
///
/// # Errors
/// When either connection breaks.
pub fn pass(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (out, into) = pipe_with(PipeFlags::CLOEXEC)?;
    // A smaller pipe does as well.
    let _ = fcntl_setpipe_size(&into, PIPE_BYTES);
    loop {
        let mut waiting = match splice(from, None, &into, None, PIPE_BYTES, SpliceFlags::MOVE) {
            Ok(0) => return to.shutdown(Shutdown::Write),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        while waiting > 0 {
            match splice(&out, None, to, None, waiting, SpliceFlags::MOVE) {
                Ok(count) => waiting -= count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Makes the connection end with a reset when it is closed.
pub fn end_with_reset(connection: &TcpStream) {
    // If the kernel refuses, it ends in order.
    let _ = rustix::net::sockopt::set_socket_linger(connection, Some(Duration::ZERO));
}

/// Takes [`end_with_reset`] back.
pub fn end_in_order(connection: &TcpStream) {
    // If the kernel refuses, the connection ends with a reset.
    let _ = rustix::net::sockopt::set_socket_linger(connection, None);
}
