//! What a server's sockets need besides: listeners that share a port, peers' addresses, several buffers in one send.
//!
//! Source: socket(7), tcp(7), ip(7).

use super::Tcp;
use crate::error::{HostError, wrap};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, sockopt};
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;
use thalweg_model::{KeepAlive, SocketSettings};
use thalweg_units::Span;

/// A socket for connections towards or at `address`, which never blocks.
pub(super) fn stream_socket(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    net::socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
}

/// A socket that is bound to `address`, for listening; `is_shared` where others may be, too (`SO_REUSEPORT`).
fn bound(address: SocketAddr, is_shared: bool) -> Result<OwnedFd, Errno> {
    let fd = stream_socket(address)?;
    // Connections that have ended may still have the port.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    sockopt::set_socket_reuseport(&fd, is_shared)?;
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&fd, true)?;
    }
    net::bind(&fd, &address)?;
    Ok(fd)
}

impl Tcp {
    /// Listens at `address`, which other sockets of this user's may share (`SO_REUSEPORT`): the kernel spreads connections over
    /// them. An IPv6 address takes IPv6 only.
    ///
    /// # Errors
    /// When the address is not this host's, or the port is taken.
    pub fn listen_shared(address: SocketAddr, backlog: u16) -> Result<Self, HostError> {
        let act = || format!("listen at {address}");
        let listening = || {
            let fd = bound(address, true)?;
            net::listen(&fd, i32::from(backlog))?;
            Ok::<_, Errno>(fd)
        };
        let fd = wrap(listening().map_err(Into::into), act)?;
        Ok(Self { fd, quickack: None })
    }

    /// Refuses an address at which a socket listens already. A second server could share the port by [`Self::listen_shared`], and each
    /// would get a part of the connections.
    ///
    /// # Errors
    /// When it is listened at, or may not be by this user.
    pub fn refuse_taken(address: SocketAddr) -> Result<(), HostError> {
        wrap(bound(address, false).map(drop).map_err(Into::into), || format!("listen at {address}"))
    }

    /// Sets each option of a listener on its own; returns those that the kernel refused, by name. What it accepts has them, too.
    ///
    /// A send buffer past `net.core.wmem_max` needs `force` and privilege; without them it is as large as the kernel allows.
    pub fn apply_each(&self, settings: &SocketSettings, keep_alive: Option<KeepAlive>) -> Vec<HostError> {
        let one = SocketSettings::default;
        let mut refused: Vec<HostError> = Vec::new();
        for single in [
            SocketSettings { congestion: settings.congestion.clone(), ..one() },
            SocketSettings { notsent_lowat: settings.notsent_lowat, ..one() },
            SocketSettings { nodelay: settings.nodelay, ..one() },
            SocketSettings { max_pacing_rate: settings.max_pacing_rate, ..one() },
            SocketSettings { user_timeout: settings.user_timeout, ..one() },
            SocketSettings { rto_min: settings.rto_min, ..one() },
            SocketSettings { delack_max: settings.delack_max, ..one() },
            SocketSettings { rcvbuf: settings.rcvbuf, force: settings.force, ..one() },
            SocketSettings { window_clamp: settings.window_clamp, ..one() },
        ] {
            refused.extend(self.apply(&single).err());
        }
        refused.extend(self.fast_open_listener(settings).err());
        if let Some(bytes) = settings.sndbuf
            && let Err(error) = self.apply(&SocketSettings { sndbuf: Some(bytes), force: settings.force, ..one() })
        {
            refused.extend(Some(error).filter(|_| settings.force == Some(true)));
            let bytes = usize::try_from(bytes.get()).unwrap_or(usize::MAX).min(i32::MAX as usize);
            let set = sockopt::set_socket_send_buffer_size(&self.fd, bytes);
            refused.extend(wrap(set.map_err(Into::into), || format!("set SO_SNDBUF to {bytes}")).err());
        }
        if let Some(times) = keep_alive {
            let seconds = |span: Span| Duration::from_secs(span.as_secs_f64().ceil().max(1.0) as u64);
            let set = || {
                sockopt::set_socket_keepalive(&self.fd, true)?;
                sockopt::set_tcp_keepidle(&self.fd, seconds(times.idle))?;
                sockopt::set_tcp_keepintvl(&self.fd, seconds(times.interval))?;
                sockopt::set_tcp_keepcnt(&self.fd, times.count.max(1))
            };
            refused.extend(wrap(set().map_err(Into::into), || "set SO_KEEPALIVE".to_owned()).err());
        }
        refused
    }

    /// Takes the next connection, if one waits, and who it is from. One that broke while it waited is passed over.
    ///
    /// # Errors
    /// When there is no descriptor or memory left for it; it then still waits.
    pub fn accept_from(&self) -> Result<Option<(Self, SocketAddr)>, HostError> {
        loop {
            match net::acceptfrom_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((fd, peer)) => {
                    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                    let peer = peer.unwrap_or(SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0));
                    return Ok(Some((Self { fd, quickack: None }, peer)));
                }
                Err(Errno::AGAIN) => return Ok(None),
                // Source: accept(2), "Error handling": these are the new connection's, not the listener's.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::NETDOWN | Errno::PROTO | Errno::NETUNREACH) => {}
                Err(error) => {
                    return Err(HostError { act: "accept a connection".to_owned(), source: error.into() });
                }
            }
        }
    }

    /// The address this end has.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn local(&self) -> Result<SocketAddr, HostError> {
        let name = net::getsockname(&self.fd).and_then(SocketAddr::try_from);
        wrap(name.map_err(Into::into), || "read a socket's own address".to_owned())
    }

    /// Takes what has come, as much as fits; 0 at the end, `None` when there is nothing yet.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn receive(&self, into: &mut [u8]) -> Result<Option<usize>, HostError> {
        loop {
            match net::recv(&self.fd, &mut *into, RecvFlags::empty()) {
                Ok((got, _)) => return Ok(Some(got)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(HostError { act: "receive".to_owned(), source: error.into() }),
            }
        }
    }

    /// With `true` holds back packets that are not full, for 200 ms at most; with `false` sends them (`TCP_CORK`).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn cork(&self, on: bool) -> Result<(), HostError> {
        wrap(net::sockopt::set_tcp_cork(&self.fd, on).map_err(Into::into), || "set TCP_CORK".to_owned())
    }

    /// Sends nothing more; the other side reads an end behind what was sent. What it sends can still be received.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn end_sending(&self) -> Result<(), HostError> {
        wrap(net::shutdown(&self.fd, net::Shutdown::Write).map_err(Into::into), || "end sending".to_owned())
    }

    /// Sends from several buffers, one after the other; returns how many bytes the kernel took, `None` when its buffer is full.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn send_parts(&self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, HostError> {
        loop {
            match net::sendmsg(&self.fd, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
                Ok(sent) => return Ok(Some(sent)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(HostError { act: "send".to_owned(), source: error.into() }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use thalweg_units::{Bytes, Rate};

    fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            match look() {
                Some(found) => return found,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn two_listeners_share_a_port_and_tell_who_came() {
        let one = Tcp::listen_shared("127.0.0.1:0".parse().expect("an address"), 128).expect("listening");
        let address = one.local().expect("told");
        let two = Tcp::listen_shared(address, 128).expect("listening");
        let clients: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(address).expect("connected")).collect();
        let mut came = [0, 0];
        for (count, listener) in came.iter_mut().zip([&one, &two]) {
            while let Some((_, peer)) = listener.accept_from().expect("accepted") {
                assert!(clients.iter().any(|client| client.local_addr().expect("an address") == peer));
                *count += 1;
            }
        }
        assert_eq!(came[0] + came[1], 64);
        assert!(came[0] > 0 && came[1] > 0, "{came:?}");
    }

    #[test]
    fn a_port_that_is_listened_at_is_not_free() {
        let one = Tcp::listen_shared("127.0.0.1:0".parse().expect("an address"), 16).expect("listening");
        let address = one.local().expect("told");
        let error = Tcp::refuse_taken(address).expect_err("taken");
        assert_eq!(error.source.kind(), std::io::ErrorKind::AddrInUse);
        let client = TcpStream::connect(address).expect("connected");
        let (near, _) = until(|| one.accept_from().expect("accepted"));
        // The end that closes first keeps the port for a minute.
        drop((one, near, client));
        Tcp::refuse_taken(address).expect("free");
    }

    #[test]
    fn what_is_accepted_has_the_listeners_options() {
        let listener = Tcp::listen_shared("127.0.0.1:0".parse().expect("an address"), 16).expect("listening");
        let settings = SocketSettings {
            congestion: Some("reno".to_owned()),
            notsent_lowat: Some(Bytes::new(16_384)),
            sndbuf: Some(Bytes::new(50_000)),
            nodelay: Some(true),
            max_pacing_rate: Some(Rate::from_bits_per_second(8_000_000)),
            user_timeout: Some(Span::from_millis(9_000)),
            ..SocketSettings::default()
        };
        let second = Span::from_millis(1_000);
        let keep_alive = KeepAlive { idle: second, interval: second, count: 3 };
        assert!(listener.apply_each(&settings, Some(keep_alive)).is_empty());
        let odd = SocketSettings { congestion: Some("nonesuch".to_owned()), ..settings };
        let refused = listener.apply_each(&odd, None);
        assert!(refused.len() == 1 && refused[0].act.contains("TCP_CONGESTION"), "{refused:?}");
        let mut client = TcpStream::connect(listener.local().expect("told")).expect("connected");
        let (near, _) = until(|| listener.accept_from().expect("accepted"));
        let have = near.read_back().expect("read");
        assert_eq!((have["congestion"].as_str(), have["notsent_lowat"].as_str()), ("reno", "16384"));
        assert_eq!((have["sndbuf"].as_str(), have["user_timeout"].as_str()), ("100000", "9s"));
        assert_eq!((have["nodelay"].as_str(), have["max_pacing_rate"].as_str()), ("1", "8mbit"));
        assert!(sockopt::socket_keepalive(&near).expect("told"));
        let size = Some(Bytes::new(64 << 20));
        let forced = SocketSettings { sndbuf: size, rcvbuf: size, force: Some(true), ..SocketSettings::default() };
        let forcing = Tcp::listen_shared("127.0.0.1:0".parse().expect("an address"), 16).expect("listening");
        let refused = forcing.apply_each(&forced, None);
        let have = forcing.read_back().expect("read");
        let has_all = have["sndbuf"] == "134217728" && have["rcvbuf"] == "134217728";
        assert!(has_all && refused.is_empty() || refused.len() == 2, "{have:?} {refused:?}");
        client.write_all(b"hello").expect("sent");
        let mut got = [0; 16];
        assert_eq!(until(|| near.receive(&mut got).expect("received")), 5);
        assert_eq!(near.receive(&mut got).expect("received"), None);
        let parts = [IoSlice::new(b"good "), IoSlice::new(b"day")];
        assert_eq!(near.send_parts(&parts).expect("sent"), Some(8));
        drop(near);
        let mut text = String::new();
        client.read_to_string(&mut text).expect("received");
        assert_eq!(text, "good day");
    }

    #[test]
    fn an_address_of_another_host_is_refused() {
        let error = Tcp::listen_shared("192.0.2.1:80".parse().expect("an address"), 16).expect_err("not ours");
        assert!(error.to_string().starts_with("cannot listen at 192.0.2.1:80: "), "{error}");
    }
}
