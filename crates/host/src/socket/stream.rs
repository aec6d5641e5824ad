//! Streams between hosts: listeners with a port of their own, connections with all options set before the SYN, and what the
//! kernel says of them.
//!
//! Source: tcp(7), socket(7), ip(7).

use super::Tcp;
use super::server::stream_socket;
use crate::error::{HostError, wrap};
use crate::mem_info::MemInfo;
use crate::poll::Poller;
use crate::tcp_info::TcpInfo;
use rustix::io::Errno;
use rustix::net::{self, sockopt};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use thalweg_model::SocketSettings;

/// Sets the byte of type of service that packets carry, as `IP_TOS` or `IPV6_TCLASS` by the family of `address`.
pub(super) fn set_service(socket: impl AsFd, address: SocketAddr, service: u8) -> Result<(), HostError> {
    let set = if address.is_ipv4() {
        sockopt::set_ip_tos(socket, service)
    } else {
        sockopt::set_ipv6_tclass(socket, u32::from(service))
    };
    wrap(set.map_err(Into::into), || format!("set the type of service to {service}"))
}

impl Tcp {
    /// Listens at `address`, which no other socket may share. An IPv6 address takes IPv6 only.
    ///
    /// # Errors
    /// When the address is not this host's, or the port is taken.
    pub fn listen_alone(address: SocketAddr, backlog: u16) -> Result<Self, HostError> {
        let listening = || {
            let fd = stream_socket(address)?;
            sockopt::set_socket_reuseaddr(&fd, true)?;
            if address.is_ipv6() {
                sockopt::set_ipv6_v6only(&fd, true)?;
            }
            net::bind(&fd, &address)?;
            net::listen(&fd, i32::from(backlog))?;
            Ok::<_, Errno>(fd)
        };
        let fd = wrap(listening().map_err(Into::into), || format!("listen at {address}"))?;
        Ok(Self { fd, quickack: None })
    }

    /// Begins to connect with these options, set before the SYN; the socket becomes writable once it is connected or has failed.
    /// `segment_bytes` is `TCP_MAXSEG`, which also bounds what the other end sends; `service` is the type of service.
    ///
    /// # Errors
    /// The option the kernel refused, by name; or why the network is unreachable at once.
    pub fn connect_stream(
        to: SocketAddr,
        settings: &SocketSettings,
        segment_bytes: Option<u16>,
        service: Option<u8>,
    ) -> Result<Self, HostError> {
        let act = || format!("connect to {to}");
        let fd = wrap(stream_socket(to).map_err(Into::into), act)?;
        let tcp = Self { fd, quickack: settings.quickack };
        tcp.apply(settings)?;
        if let Some(bytes) = segment_bytes {
            tcp.set_number(libc::IPPROTO_TCP, libc::TCP_MAXSEG, i32::from(bytes), "TCP_MAXSEG")?;
        }
        if let Some(service) = service {
            tcp.set_service(to, service)?;
        }
        match net::connect(&tcp, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(tcp),
            Err(error) => wrap(Err(error.into()), act),
        }
    }

    /// Waits until the connection is there, for `limit` at most.
    ///
    /// # Errors
    /// Why there is none.
    pub fn wait_connected(&self, limit: Duration) -> Result<(), HostError> {
        let poller = Poller::new()?;
        poller.add_edges(self, 0)?;
        let deadline = Instant::now() + limit;
        let mut ready = Vec::new();
        while !self.is_connected()? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return wrap(Err(ErrorKind::TimedOut.into()), || "connect".to_owned());
            }
            poller.wait(Some(left), &mut ready)?;
        }
        Ok(())
    }

    /// Sets the byte of type of service that packets to `peer` carry.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_service(&self, peer: SocketAddr, service: u8) -> Result<(), HostError> {
        set_service(self, peer, service)
    }

    /// The largest segment that this connection sends, in bytes (`TCP_MAXSEG`).
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn segment_bytes(&self) -> Result<u32, HostError> {
        Ok(self.number(libc::IPPROTO_TCP, libc::TCP_MAXSEG, "TCP_MAXSEG")?.unsigned_abs())
    }

    /// The name of the congestion control; empty where the kernel does not say.
    pub fn congestion(&self) -> String {
        sockopt::tcp_congestion(self).unwrap_or_default()
    }

    /// The send and the receive buffer, in bytes of memory (`SO_SNDBUF`, `SO_RCVBUF`).
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn buffers(&self) -> Result<(usize, usize), HostError> {
        let read = || Ok((sockopt::socket_send_buffer_size(self)?, sockopt::socket_recv_buffer_size(self)?));
        wrap(read().map_err(|error: Errno| error.into()), || "read a socket's buffers".to_owned())
    }

    /// What `TCP_INFO` and `SO_MEMINFO` say now.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn figures(&self) -> Result<(TcpInfo, MemInfo), HostError> {
        Ok((TcpInfo::of(self)?, MemInfo::of(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use thalweg_units::Bytes;

    #[test]
    fn options_are_set_before_the_connection_is_made() {
        let listener = Tcp::listen_alone("127.0.0.1:0".parse().expect("an address"), 16).expect("listening");
        let address = listener.local().expect("told");
        assert!(Tcp::listen_alone(address, 16).is_err(), "the port is shared");
        let settings = SocketSettings {
            congestion: Some("reno".to_owned()),
            sndbuf: Some(Bytes::new(40_000)),
            rcvbuf: Some(Bytes::new(50_000)),
            ..SocketSettings::default()
        };
        let near = Tcp::connect_stream(address, &settings, Some(1_000), Some(0x20)).expect("connecting");
        let deadline = Instant::now() + Duration::from_secs(5);
        let far = loop {
            match listener.accept_from().expect("accepted") {
                Some((far, _)) => break far,
                None => assert!(Instant::now() < deadline, "nothing came"),
            }
        };
        assert!(near.is_connected().expect("connected"));
        assert_eq!((near.congestion().as_str(), near.buffers().expect("told")), ("reno", (80_000, 100_000)));
        // The timestamp option takes 12 bytes of a segment (RFC 9293 §3.7.1: the MSS does not count options).
        assert_eq!((near.segment_bytes().expect("told"), far.segment_bytes().expect("told")), (988, 988));
        assert_eq!(sockopt::ip_tos(&near).expect("told"), 0x20);
    }
}
