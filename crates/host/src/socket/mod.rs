//! Non-blocking sockets.

mod client;
mod datagram;
mod options;
pub mod probe;
mod server;
mod stream;
#[cfg(test)]
mod tests;
mod udp;

pub use datagram::DatagramSocket;
pub use udp::{Datagram, STAMP_LEN, Stamped, Udp};

use crate::error::{HostError, check, wrap};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use thalweg_model::SocketSettings;

/// A non-blocking TCP socket of the namespace it was opened in.
#[derive(Debug)]
pub struct Tcp {
    fd: OwnedFd,
    /// For a listener: what accepted sockets do not inherit.
    quickack: Option<bool>,
}

/// Sets how many bytes must have come before any stream socket counts as readable (`SO_RCVLOWAT`).
///
/// A lower number takes effect at once, also for bytes that are already there. Source: `tcp_set_rcvlowat` in net/ipv4/tcp.c.
///
/// # Errors
/// When the kernel refuses.
pub fn wake_after(socket: impl AsFd, bytes: u32) -> Result<(), HostError> {
    let bytes = bytes.clamp(1, i32::MAX as u32) as i32;
    set_number(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes, "SO_RCVLOWAT")
}

fn set_number(socket: BorrowedFd<'_>, level: i32, option: i32, value: i32, name: &str) -> Result<(), HostError> {
    let (fd, len) = (socket.as_raw_fd(), size_of::<i32>() as u32);
    // SAFETY: the number outlives the call and its length is given.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), len) };
    check(result, || format!("set {name} to {value}")).map(drop)
}

impl From<Tcp> for std::net::TcpStream {
    /// The same socket; it still never blocks unless it is set to.
    fn from(socket: Tcp) -> Self {
        Self::from(socket.fd)
    }
}

impl From<std::net::TcpStream> for Tcp {
    /// The same socket; the caller has made it non-blocking.
    fn from(socket: std::net::TcpStream) -> Self {
        Self { fd: socket.into(), quickack: None }
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Tcp {
    fn open(settings: &SocketSettings) -> Result<Self, HostError> {
        // SAFETY: no pointers.
        let fd = unsafe {
            libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, libc::IPPROTO_TCP)
        };
        let fd = check(fd, || "open a TCP socket".to_owned())?;
        // SAFETY: the descriptor was just made and has no other owner.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, quickack: settings.quickack };
        socket.apply(settings)?;
        Ok(socket)
    }

    /// Listens on `port` of every address. Accepted sockets have the options, too.
    ///
    /// # Errors
    /// When an option or the port is refused, and when Fast Open is asked for and `net.ipv4.tcp_fastopen` does not let a
    /// listener have it.
    pub fn listen(port: u16, settings: &SocketSettings) -> Result<Self, HostError> {
        let socket = Self::open(settings)?;
        socket.fast_open_listener(settings)?;
        socket.set_number(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1, "SO_REUSEADDR")?;
        let address = raw_address(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        // SAFETY: the address outlives the call and its length is given.
        let bound = unsafe { libc::bind(socket.raw(), (&raw const address).cast(), size_of_val(&address) as u32) };
        check(bound, || format!("bind port {port}"))?;
        // SAFETY: no pointers.
        check(unsafe { libc::listen(socket.raw(), 1024) }, || format!("listen on port {port}"))?;
        Ok(socket)
    }

    /// Begins to connect; the socket becomes writable once it is or has failed.
    ///
    /// With Fast Open and a cookie from an earlier connection it is writable at once though nothing was sent yet: the first
    /// [`Tcp::send`] puts as much as fits into the SYN, and later ones wait for the answer. Without a cookie the SYN asks for
    /// one and goes out at once.
    ///
    /// # Errors
    /// When an option is refused, or the network is unreachable at once.
    pub fn connect(to: SocketAddrV4, settings: &SocketSettings) -> Result<Self, HostError> {
        let socket = Self::open(settings)?;
        socket.fast_open_client(settings)?;
        let address = raw_address(to);
        // SAFETY: the address outlives the call and its length is given.
        let result = unsafe { libc::connect(socket.raw(), (&raw const address).cast(), size_of_val(&address) as u32) };
        if result < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(HostError { act: format!("connect to {to}"), source: io::Error::last_os_error() });
        }
        Ok(socket)
    }

    /// Takes the next connection, if one waits.
    ///
    /// # Errors
    /// When the listening socket is broken.
    pub fn accept(&self) -> Result<Option<Self>, HostError> {
        // SAFETY: the peer's address is not asked for.
        let fd = unsafe {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            libc::accept4(self.raw(), std::ptr::null_mut(), std::ptr::null_mut(), flags)
        };
        if fd < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock {
            return Ok(None);
        }
        let fd = check(fd, || "accept a connection".to_owned())?;
        // SAFETY: the descriptor was just made and has no other owner.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, quickack: self.quickack };
        socket.apply_quickack()?;
        Ok(Some(socket))
    }

    /// How a connection attempt ended, once the socket is writable.
    ///
    /// # Errors
    /// Why it failed.
    pub fn connected(&self) -> Result<(), HostError> {
        match self.number(libc::SOL_SOCKET, libc::SO_ERROR, "SO_ERROR")? {
            0 => Ok(()),
            error => Err(HostError { act: "connect".to_owned(), source: io::Error::from_raw_os_error(error) }),
        }
    }

    /// Sends from `bytes`; returns how many the kernel took, `None` when its buffer is full.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn send(&self, bytes: &[u8]) -> Result<Option<usize>, HostError> {
        // SAFETY: the buffer outlives the call and its length is given.
        let sent = unsafe { libc::send(self.raw(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        self.transferred(sent, "send")
    }

    /// Sends up to `most` bytes of a file from `offset` on, without a copy through this program (sendfile(2)); returns how
    /// many the kernel took, 0 at the file's end, `None` when its buffer is full.
    ///
    /// # Errors
    /// When the connection is broken or the file cannot be read.
    pub fn send_file(&self, file: impl AsFd, offset: u64, most: usize) -> Result<Option<usize>, HostError> {
        let mut offset = offset;
        match rustix::fs::sendfile(self, file, Some(&mut offset), most) {
            Ok(sent) => Ok(Some(sent)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(HostError { act: "send a file".to_owned(), source: error.into() }),
        }
    }

    /// Bytes that were given to the kernel and not sent yet (`SIOCOUTQNSD`).
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn unsent(&self) -> Result<u32, HostError> {
        self.queued(libc::SIOCOUTQNSD, "SIOCOUTQNSD")
    }

    /// Bytes that were given to the kernel and not acknowledged yet, the unsent ones included (`SIOCOUTQ`).
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn unacked(&self) -> Result<u32, HostError> {
        // SIOCOUTQ has the terminals' number for the same.
        self.queued(libc::TIOCOUTQ, "SIOCOUTQ")
    }

    fn queued(&self, request: libc::Ioctl, name: &str) -> Result<u32, HostError> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the number outlives the call.
        check(unsafe { libc::ioctl(self.raw(), request, &raw mut bytes) }, || format!("read {name}"))?;
        Ok(bytes as u32)
    }

    /// Takes up to `most` bytes and throws them away; returns how many, 0 at the end, `None` when there are none yet.
    ///
    /// `MSG_TRUNC` makes the kernel drop them without a copy (tcp(7)); all of its accounting is as for a read.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn discard(&self, most: usize) -> Result<Option<usize>, HostError> {
        // SAFETY: with MSG_TRUNC the kernel writes nothing through the pointer.
        let got = unsafe { libc::recv(self.raw(), std::ptr::null_mut(), most, libc::MSG_TRUNC) };
        self.transferred(got, "receive")
    }

    fn transferred(&self, count: isize, act: &str) -> Result<Option<usize>, HostError> {
        if count >= 0 {
            return Ok(Some(count as usize));
        }
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::WouldBlock {
            return Ok(None);
        }
        Err(HostError { act: act.to_owned(), source: error })
    }

    /// Sets how many bytes must have come before the socket counts as readable (`SO_RCVLOWAT`).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wake_after(&self, bytes: u32) -> Result<(), HostError> {
        wake_after(self, bytes)
    }

    /// Sets the priority of what is sent, 0 to 6, or 7 with privilege (`SO_PRIORITY`): a discipline may queue by it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_priority(&self, priority: u8) -> Result<(), HostError> {
        self.set_number(libc::SOL_SOCKET, libc::SO_PRIORITY, i32::from(priority), "SO_PRIORITY")
    }

    /// Sends FIN; what is queued still goes out.
    ///
    /// # Errors
    /// When the connection is broken.
    pub fn finish(&self) -> Result<(), HostError> {
        wrap(rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Write).map_err(Into::into), || {
            "shut down".to_owned()
        })
    }

    fn set_number(&self, level: i32, option: i32, value: i32, name: &str) -> Result<(), HostError> {
        set_number(self.fd.as_fd(), level, option, value, name)
    }

    fn number(&self, level: i32, option: i32, name: &str) -> Result<i32, HostError> {
        let mut value = 0i32;
        let mut len = size_of::<i32>() as libc::socklen_t;
        // SAFETY: the number outlives the call and its length is given.
        let result = unsafe { libc::getsockopt(self.raw(), level, option, (&raw mut value).cast(), &mut len) };
        check(result, || format!("read {name}"))?;
        Ok(value)
    }

    fn raw(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

fn raw_address(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}
