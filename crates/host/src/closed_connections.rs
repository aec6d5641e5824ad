//! TCP connections of this namespace as they end, with the counters of their whole lives: no privilege is needed.
//!
//! Source: sock_diag(7); `sock_diag_broadcast_destroy`, net/core/sock_diag.c (Linux 4.2).

use crate::error::HostError;
use crate::mem_info::MemInfo;
use crate::netlink::Netlink;
use crate::sockets::{Connection, connection};

/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`, include/uapi/linux/sock_diag.h.
const GROUPS: [u32; 2] = [1, 3];
/// What messages that are not yet read may take: the kernel doubles it, and a message takes 1,280 bytes, so 13,000 find room.
const BUFFER_BYTES: libc::c_int = 8 << 20;
/// Messages of one call of [`ClosedConnections::each`], so that it ends however many connections do.
const MAX_MESSAGES: usize = 1 << 16;

/// The kernel's messages about connections that ended.
#[derive(Debug)]
pub struct ClosedConnections {
    netlink: Netlink,
    missed: u64,
}

impl ClosedConnections {
    /// Receives messages of the current namespace from now on. The buffer is as large as `net.core.rmem_max` allows, or 16 MiB with
    /// CAP_NET_ADMIN.
    ///
    /// # Errors
    /// When the kernel has no such messages, or a filter of system calls refuses them.
    pub fn open() -> Result<Self, HostError> {
        let netlink = Netlink::open_of(libc::NETLINK_SOCK_DIAG)?;
        netlink.set_receive_buffer(BUFFER_BYTES)?;
        netlink.join(&GROUPS, "receive messages about connections that end")?;
        Ok(Self { netlink, missed: 0 })
    }

    /// Gives `seen` each connection that has ended since the last call, and does not wait. The kernel sends a message when it frees a socket: after
    /// its program closed it, and at the latest when TIME_WAIT begins. Of what [`Connection`] holds, `inode`, `uid`, `memory` and the congestion
    /// control are not in it. Sockets that were never connected are left out.
    ///
    /// # Errors
    /// When the kernel refuses. Messages that found no room are no error: [`Self::missed`] counts them.
    pub fn each(&self, mut seen: impl FnMut(&Connection)) -> Result<(), HostError> {
        let visit = |message: &[u8]| {
            if let Some(connection) = connection(message).filter(|one| one.remote.1 != 0) {
                seen(&connection);
            }
        };
        self.netlink.drain(MAX_MESSAGES, "read messages about connections that ended", visit)
    }

    /// Messages since the last call that found the buffer full (`sk_drops`).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn missed(&mut self) -> Result<u64, HostError> {
        let all = MemInfo::of(&self.netlink)?.get("sk_drops");
        Ok(all.saturating_sub(std::mem::replace(&mut self.missed, all)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// Opens and closes a connection that carries so many bytes; the client's port.
    fn connect(listener: &TcpListener, bytes: usize) -> u16 {
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (mut server, _) = listener.accept().expect("a connection");
        client.write_all(&vec![7; bytes]).expect("written");
        server.read_exact(&mut vec![0; bytes]).expect("read");
        client.local_addr().expect("an end").port()
    }

    #[test]
    fn both_ends_of_a_connection_are_reported_with_their_counters() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let closed = ClosedConnections::open().expect("messages");
        let client = connect(&listener, 20_000);
        let (mut found, began) = (Vec::new(), Instant::now());
        while found.len() < 2 {
            assert!(began.elapsed() < Duration::from_secs(10), "{found:?}");
            closed
                .each(|one| {
                    if [(client, port), (port, client)].contains(&(one.local.1, one.remote.1)) {
                        found.push((one.local.1 == client, *one));
                    }
                })
                .expect("messages");
            std::thread::sleep(Duration::from_millis(5));
        }
        for (is_client, one) in found {
            let name = if is_client { "tcpi_bytes_acked" } else { "tcpi_bytes_received" };
            // The kernel counts a SYN and a FIN as a byte each.
            assert!((20_000..=20_002).contains(&one.info.get(name)), "{one:?}");
        }
    }

    #[test]
    fn messages_that_find_no_room_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let mut closed = ClosedConnections::open().expect("messages");
        // The smallest that the kernel gives, SOCK_MIN_RCVBUF: two messages.
        closed.netlink.set_receive_buffer(1).expect("set");
        for _ in 0..50 {
            connect(&listener, 1);
        }
        let began = Instant::now();
        while MemInfo::of(&closed.netlink).expect("figures").get("sk_drops") < 90 {
            assert!(began.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut seen = 0;
        closed.each(|_| seen += 1).expect("what there was room for");
        assert!((1..=10).contains(&seen), "{seen}");
        assert!(closed.missed().expect("a count") >= 90);
        // Room again.
        connect(&listener, 1);
        let mut seen = 0;
        while seen == 0 {
            assert!(began.elapsed() < Duration::from_secs(20));
            closed.each(|_| seen += 1).expect("messages");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
