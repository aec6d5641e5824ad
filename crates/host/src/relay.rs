//! Connections accepted in the name of others, and bytes from one to another without a copy through this process.
//!
//! Source: splice(2).

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// What a pipe between two sockets holds; an ordinary user may ask for it by default (`fs.pipe-max-size`).
const PIPE_BYTES: usize = 1 << 20;
/// Connections that wait to be accepted: the kernel's own bound (`net.core.somaxconn`) since Linux 5.4.
const BACKLOG: i32 = 4_096;

/// Listens in the current network namespace at an address that need not be one of its own, but that its routes call local.
///
/// For IPv4 the kernel asks the routes whether an address is local; for IPv6 it looks among the devices' addresses alone, unless the
/// socket is told not to ask (`IPV6_FREEBIND`, ipv6(7)).
///
/// # Errors
/// When the kernel refuses.
pub fn listen_as(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    net::sockopt::set_socket_reuseaddr(&socket, true)?;
    if address.is_ipv6() {
        net::sockopt::set_ipv6_v6only(&socket, true)?;
        net::sockopt::set_ipv6_freebind(&socket, true)?;
    }
    net::bind(&socket, &address)?;
    net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;
    use crate::namespaces::inside;
    use std::io::{Read, Write};
    use std::net::{IpAddr, Ipv6Addr};

    #[test]
    fn addresses_that_routes_call_local_are_listened_at() {
        inside("relay::tests::addresses_that_routes_call_local_are_listened_at", || {
            link::set_up(link::LOOPBACK).expect("up");
            for address in [IpAddr::from([192, 0, 2, 1]), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()] {
                if link::add_default_route(link::LOOPBACK, address.is_ipv6()).is_err() && address.is_ipv6() {
                    crate::namespaces::skip("this host has no IPv6");
                    continue;
                }
                let to = SocketAddr::new(address, 81);
                let listener = listen_as(to).expect("a listener");
                let mut client = TcpStream::connect(to).expect("connected");
                client.write_all(b"hello").expect("sent");
                let mut text = [0; 5];
                listener.set_nonblocking(false).expect("set");
                listener.accept().expect("accepted").0.read_exact(&mut text).expect("received");
                assert_eq!(&text, b"hello");
                assert!(listen_as(to).is_err(), "it is taken");
            }
        });
    }
}
