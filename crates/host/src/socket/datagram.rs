//! Connected UDP sockets of any family, which never block: one for each stream of a load.
//!
//! Source: udp(7), socket(7), ip(7).

use super::set_number;
use super::stream::set_service;
use super::udp::{Stamped, receive_all};
use crate::error::{HostError, wrap};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A UDP socket whose packets go to one peer, or that takes them from all.
#[derive(Debug)]
pub struct DatagramSocket {
    fd: OwnedFd,
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl DatagramSocket {
    fn open(address: SocketAddr) -> Result<Self, Errno> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        Ok(Self { fd: net::socket_with(family, SocketType::DGRAM, flags, None)? })
    }

    /// A socket at `address`, which other sockets of this user's may share (`SO_REUSEPORT`): those that are connected have the
    /// packets of their peers, and the others have the rest.
    ///
    /// # Errors
    /// When the address is not this host's, or the port is taken.
    pub fn bind(address: SocketAddr) -> Result<Self, HostError> {
        let binding = || {
            let socket = Self::open(address)?;
            sockopt::set_socket_reuseport(&socket, true)?;
            if address.is_ipv6() {
                sockopt::set_ipv6_v6only(&socket, true)?;
            }
            net::bind(&socket, &address)?;
            Ok::<_, Errno>(socket)
        };
        wrap(binding().map_err(Into::into), || format!("bind UDP at {address}"))
    }

    /// A socket on any free port, whose packets go to `to`.
    ///
    /// # Errors
    /// When there is no way there.
    pub fn connected(to: SocketAddr) -> Result<Self, HostError> {
        let socket = wrap(Self::open(to).map_err(Into::into), || "open a UDP socket".to_owned())?;
        socket.connect(to)?;
        Ok(socket)
    }

    /// From now on sends to `to` and takes packets from there only; what waits already may be from others.
    ///
    /// # Errors
    /// When there is no way there.
    pub fn connect(&self, to: SocketAddr) -> Result<(), HostError> {
        wrap(net::connect(&self.fd, &to).map_err(Into::into), || format!("connect UDP to {to}"))
    }

    /// Asks for this many bytes in each direction (`SO_SNDBUF`, `SO_RCVBUF`); the kernel grants at most `net.core.wmem_max` and
    /// `net.core.rmem_max`, doubled.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_buffers(&self, bytes: usize) -> Result<(), HostError> {
        let set = || {
            sockopt::set_socket_send_buffer_size(&self.fd, bytes)?;
            sockopt::set_socket_recv_buffer_size(&self.fd, bytes)
        };
        wrap(set().map_err(Into::into), || format!("set the buffers of a UDP socket to {bytes} bytes"))
    }

    /// Asks for this many bytes of packets that wait to be sent (`SO_SNDBUF`): a small one keeps packets from waiting in this host.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_send_buffer(&self, bytes: usize) -> Result<(), HostError> {
        let set = sockopt::set_socket_send_buffer_size(&self.fd, bytes);
        wrap(set.map_err(Into::into), || format!("set SO_SNDBUF to {bytes}"))
    }

    /// The kernel notes when packets arrive (`SO_TIMESTAMPNS`), for [`DatagramSocket::receive_stamped`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn note_arrivals(&self) -> Result<(), HostError> {
        set_number(self.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS")
    }

    /// Takes every packet that has come, in order, with the time at which the kernel had it; one of less than 16 bytes is left out.
    ///
    /// # Errors
    /// When the other end refuses packets.
    pub fn receive_stamped(&self, each: impl FnMut(Stamped)) -> Result<(), HostError> {
        receive_all(self.as_fd(), each)
    }

    /// Sets the byte of type of service that packets to `peer` carry.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_service(&self, peer: SocketAddr, service: u8) -> Result<(), HostError> {
        set_service(self, peer, service)
    }

    /// Packets carry the don't-fragment bit, and those that are too long are refused.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn never_fragment(&self, peer: SocketAddr) -> Result<(), HostError> {
        let set = if peer.is_ipv4() {
            sockopt::set_ip_mtu_discover(&self.fd, sockopt::Ipv4PathMtuDiscovery::DO)
        } else {
            sockopt::set_ipv6_mtu_discover(&self.fd, sockopt::Ipv6PathMtuDiscovery::DO)
        };
        wrap(set.map_err(Into::into), || "set IP_MTU_DISCOVER".to_owned())
    }

    /// Sends one packet; whether there was room for it.
    ///
    /// A refusal by the other end (`ECONNREFUSED`, from an ICMP message about an earlier packet) is an error of this call.
    ///
    /// # Errors
    /// When the other end refuses packets, or the packet is too long.
    pub fn send(&self, bytes: &[u8]) -> Result<bool, HostError> {
        loop {
            match net::send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(true),
                // A full queue of the device, as with a full buffer: udp(7).
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(error) => return Err(HostError { act: "send a UDP packet".to_owned(), source: error.into() }),
            }
        }
    }

    /// Takes one packet, as much of it as fits; returns its whole length and whom it is from, `None` when none has come.
    ///
    /// # Errors
    /// When the other end refuses packets.
    pub fn receive(&self, into: &mut [u8]) -> Result<Option<(usize, Option<SocketAddr>)>, HostError> {
        loop {
            match net::recvfrom(&self.fd, &mut *into, RecvFlags::TRUNC) {
                Ok((_, len, from)) => return Ok(Some((len, from.and_then(|from| SocketAddr::try_from(from).ok())))),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(HostError { act: "receive a UDP packet".to_owned(), source: error.into() }),
            }
        }
    }

    /// The address this end has.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn local(&self) -> Result<SocketAddr, HostError> {
        let name = net::getsockname(&self.fd).and_then(SocketAddr::try_from);
        wrap(name.map_err(Into::into), || "read a UDP socket's own address".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn next(socket: &DatagramSocket, into: &mut [u8]) -> (usize, Option<SocketAddr>) {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            match socket.receive(into).expect("received") {
                Some(got) => return got,
                None => assert!(Instant::now() < deadline, "nothing came"),
            }
        }
    }

    #[test]
    fn a_connected_socket_shares_a_port_and_has_its_peers_packets() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = DatagramSocket::bind(address.parse().expect("an address")) else {
                assert!(address.starts_with('['), "no IPv4");
                continue;
            };
            let address = listener.local().expect("told");
            let near = DatagramSocket::connected(address).expect("connected");
            assert!(near.send(b"hello").expect("sent"));
            let mut got = [0; 3];
            let (len, from) = next(&listener, &mut got);
            assert_eq!((len, from, &got), (5, near.local().ok(), b"hel"));
            let stamp = [7u64.to_be_bytes(), 9u64.to_be_bytes()].concat();
            listener.note_arrivals().expect("noted");
            assert!(near.send(&stamp).expect("sent"));
            let (mut stamped, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(5));
            while stamped.is_empty() && Instant::now() < deadline {
                listener.receive_stamped(|packet| stamped.push(packet)).expect("received");
            }
            assert_eq!((stamped[0].number, stamped[0].sent.as_nanos(), stamped[0].len), (7, 9, 16));
            assert!(stamped[0].received.as_nanos() > 0);
            let own = DatagramSocket::bind(address).expect("shared");
            own.connect(from.expect("told")).expect("connected");
            assert!(near.send(b"again").expect("sent"));
            assert_eq!(next(&own, &mut got).0, 5);
            assert!(listener.receive(&mut got).expect("received").is_none());
        }
    }
}
