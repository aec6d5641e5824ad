//! Connections to anywhere, from an address of choice.

use super::Tcp;
use super::server::stream_socket;
use crate::error::{HostError, wrap};
use rustix::io::Errno;
use rustix::net::{self, sockopt};
use std::net::{IpAddr, SocketAddr};
use thalweg_model::SocketSettings;

impl Tcp {
    /// Begins to connect; the socket becomes writable once it is or has failed. `from` is the address it comes from, for the kernel to
    /// choose where it is `None`; `rcvbuf` is its receive buffer in bytes (`SO_RCVBUF`). With `fastopen` the SYN leaves with the first
    /// write where the kernel has the other end's cookie, and the socket is writable from the beginning.
    ///
    /// # Errors
    /// When there is no descriptor left, `from` is not this host's, or the network is unreachable at once.
    pub fn connect_from(
        from: Option<IpAddr>,
        to: SocketAddr,
        rcvbuf: Option<usize>,
        fastopen: bool,
    ) -> Result<Self, HostError> {
        let connecting = || -> std::io::Result<Self> {
            let tcp = Self { fd: stream_socket(to)?, quickack: None };
            // As players have it: a request does not wait for the acknowledgement of the end of a handshake.
            sockopt::set_tcp_nodelay(&tcp, true)?;
            if let Some(rcvbuf) = rcvbuf {
                sockopt::set_socket_recv_buffer_size(&tcp, rcvbuf)?;
            }
            if let Some(from) = from {
                // The port is chosen when it connects: so it need only differ from those in use towards the same place.
                let number = libc::IP_BIND_ADDRESS_NO_PORT;
                tcp.set_number(libc::IPPROTO_IP, number, 1, "IP_BIND_ADDRESS_NO_PORT").map_err(|error| error.source)?;
                net::bind(&tcp, &SocketAddr::new(from, 0))?;
            }
            if fastopen {
                let settings = SocketSettings { fastopen: Some(1), ..SocketSettings::default() };
                tcp.fast_open_client(&settings).map_err(|error| error.source)?;
            }
            match net::connect(&tcp, &to) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(tcp),
                Err(error) => Err(error.into()),
            }
        };
        wrap(connecting(), || format!("connect to {to}"))
    }

    /// Whether it is connected by now.
    ///
    /// # Errors
    /// Why the attempt failed.
    pub fn is_connected(&self) -> Result<bool, HostError> {
        self.connected()?;
        match net::getpeername(self) {
            Ok(_) => Ok(true),
            Err(Errno::NOTCONN) => Ok(false),
            Err(error) => Err(HostError { act: "connect".to_owned(), source: error.into() }),
        }
    }
}
