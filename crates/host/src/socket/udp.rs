//! Non-blocking UDP sockets whose packets carry their number and when they were sent.
//!
//! Source: udp(7), socket(7), recvmmsg(2).

use super::raw_address;
use crate::error::{HostError, check};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use thalweg_units::{Span, Timestamp};

/// Bytes every payload begins with: its number and when it was sent, in nanoseconds, each of 64 bits in network order.
pub const STAMP_LEN: usize = 16;
/// Packets one call receives at most.
const BATCH: usize = 64;
/// Room for a receive timestamp: a control header, aligned, and a `timespec`.
const CONTROL_WORDS: usize = 8;

/// A non-blocking UDP socket of the namespace it was opened in.
#[derive(Debug)]
pub struct Udp {
    fd: OwnedFd,
    payload: Vec<u8>,
}

/// A packet that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Where it came from.
    pub from: SocketAddrV4,
    /// Its number, as the sender gave it.
    pub number: u64,
    /// When it was sent, as the sender gave it.
    pub sent: Span,
    /// When this host's kernel had it (`SO_TIMESTAMPNS`), by the clock of the day; of what came just after the host was first asked for such times, when
    /// it was read.
    pub received: Timestamp,
    /// Its payload's length in bytes, the number and the time included.
    pub len: usize,
}

/// A packet that came from the peer of a connected socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// The first 64 bits of its payload: its number.
    pub number: u64,
    /// The next 64 bits, which are when it was sent or any other mark of the sender.
    pub sent: Span,
    /// When this host's kernel had it, as in [`Datagram::received`].
    pub received: Timestamp,
    /// Its payload's length in bytes.
    pub len: usize,
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Udp {
    /// A socket on `port` of every address; 0 is any free port.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn bind(port: u16) -> Result<Self, HostError> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) }, || "open a UDP socket".to_owned())?;
        // SAFETY: the descriptor was just made and has no other owner.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, payload: Vec::new() };
        socket.set(libc::SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS")?;
        let address = raw_address(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        // SAFETY: the address outlives the call and its length is given.
        let bound = unsafe { libc::bind(fd, (&raw const address).cast(), size_of_val(&address) as u32) };
        check(bound, || format!("bind UDP port {port}"))?;
        Ok(socket)
    }

    /// A socket on any free port, whose packets go to `to`.
    ///
    /// # Errors
    /// When there is no way there.
    pub fn connect(to: SocketAddrV4) -> Result<Self, HostError> {
        let socket = Self::bind(0)?;
        let address = raw_address(to);
        // SAFETY: the address outlives the call and its length is given.
        let result = unsafe { libc::connect(socket.raw(), (&raw const address).cast(), size_of_val(&address) as u32) };
        check(result, || format!("connect UDP to {to}"))?;
        Ok(socket)
    }

    /// The port it is on.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn port(&self) -> Result<u16, HostError> {
        // SAFETY: `sockaddr_in` is plain data for which zeroes are valid.
        let mut own: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        let mut len = size_of_val(&own) as u32;
        // SAFETY: the address and its length outlive the call.
        let result = unsafe { libc::getsockname(self.raw(), (&raw mut own).cast(), &mut len) };
        check(result, || "read a UDP socket's own port".to_owned())?;
        Ok(u16::from_be(own.sin_port))
    }

    /// Sets how many bytes of packets, as the kernel counts them, may wait to be sent and to be received.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_buffers(&self, bytes: u32) -> Result<(), HostError> {
        self.set(libc::SO_SNDBUFFORCE, bytes, "SO_SNDBUF")?;
        self.set(libc::SO_RCVBUFFORCE, bytes, "SO_RCVBUF")
    }

    /// Sends a packet of `len` bytes, at least [`STAMP_LEN`], where the socket is connected to; whether the send buffer had
    /// room for it.
    ///
    /// # Errors
    /// When the other end refuses packets, or the packet is too long.
    pub fn send(&mut self, number: u64, now: Span, len: usize) -> Result<bool, HostError> {
        self.fill(number, now, len);
        // SAFETY: the buffer outlives the call and its length is given.
        let sent = unsafe { libc::send(self.raw(), self.payload.as_ptr().cast(), self.payload.len(), 0) };
        sent_all(sent)
    }

    /// As [`Udp::send`], to any address.
    ///
    /// # Errors
    /// As for [`Udp::send`].
    pub fn send_to(&mut self, to: SocketAddrV4, number: u64, now: Span, len: usize) -> Result<bool, HostError> {
        self.fill(number, now, len);
        let address = raw_address(to);
        // SAFETY: the buffer and the address outlive the call and their lengths are given.
        let sent = unsafe {
            let (payload, address_len) = (self.payload.as_ptr().cast(), size_of_val(&address) as u32);
            libc::sendto(self.raw(), payload, self.payload.len(), 0, (&raw const address).cast(), address_len)
        };
        sent_all(sent)
    }

    fn fill(&mut self, number: u64, now: Span, len: usize) {
        self.payload.resize(len.max(STAMP_LEN), 0);
        self.payload[..8].copy_from_slice(&number.to_be_bytes());
        self.payload[8..STAMP_LEN].copy_from_slice(&now.as_nanos().to_be_bytes());
    }

    /// Takes every packet that has come, in order; one that is too short to carry a number is left out.
    ///
    /// # Errors
    /// When the other end refuses packets.
    pub fn receive(&self, mut each: impl FnMut(Datagram)) -> Result<(), HostError> {
        loop {
            let (count, full) = self.receive_batch(&mut each)?;
            if count == 0 || !full {
                return Ok(());
            }
        }
    }

    fn receive_batch(&self, each: &mut impl FnMut(Datagram)) -> Result<(usize, bool), HostError> {
        receive_batch(self.fd.as_fd(), &mut |name, stamped| {
            let from =
                SocketAddrV4::new(Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr)), u16::from_be(name.sin_port));
            let Stamped { number, sent, received, len } = stamped;
            each(Datagram { from, number, sent, received, len });
        })
    }
    fn set(&self, option: libc::c_int, value: u32, name: &str) -> Result<(), HostError> {
        // SAFETY: the number outlives the call and its length is given.
        let result = unsafe {
            let len = size_of::<u32>() as u32;
            libc::setsockopt(self.raw(), libc::SOL_SOCKET, option, (&raw const value).cast(), len)
        };
        check(result, || format!("set {name} to {value}")).map(drop)
    }

    fn raw(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

/// Takes every packet that has come to a socket of any family, in order; one that is too short to carry a number is left out.
pub(super) fn receive_all(socket: BorrowedFd<'_>, mut each: impl FnMut(Stamped)) -> Result<(), HostError> {
    loop {
        let (count, full) = receive_batch(socket, &mut |_, stamped| each(stamped))?;
        if count == 0 || !full {
            return Ok(());
        }
    }
}

/// Takes as many packets as one call gives; returns how many, and whether there may be more. The name is the sender's if it has an IPv4 address.
fn receive_batch(
    socket: BorrowedFd<'_>,
    each: &mut impl FnMut(&libc::sockaddr_in, Stamped),
) -> Result<(usize, bool), HostError> {
    let mut stamps = [[0u8; STAMP_LEN]; BATCH];
    let mut controls = [[0u64; CONTROL_WORDS]; BATCH];
    // SAFETY: these structs are plain data for which zeroes are valid.
    let (mut names, mut parts, mut heads) = unsafe {
        let names: [libc::sockaddr_in; BATCH] = std::mem::zeroed();
        let parts: [libc::iovec; BATCH] = std::mem::zeroed();
        let heads: [libc::mmsghdr; BATCH] = std::mem::zeroed();
        (names, parts, heads)
    };
    for at in 0..BATCH {
        parts[at] = libc::iovec { iov_base: stamps[at].as_mut_ptr().cast(), iov_len: STAMP_LEN };
        let head = &mut heads[at].msg_hdr;
        head.msg_name = (&raw mut names[at]).cast();
        head.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
        head.msg_iov = &raw mut parts[at];
        head.msg_iovlen = 1;
        head.msg_control = controls[at].as_mut_ptr().cast();
        head.msg_controllen = size_of_val(&controls[at]);
    }
    // SAFETY: every pointer in the headers is to one of the arrays above, which outlive the call; MSG_TRUNC makes the
    // kernel tell a packet's whole length, not write more.
    let got = unsafe {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        libc::recvmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), BATCH as u32, flags, std::ptr::null_mut())
    };
    if got < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock {
        return Ok((0, false));
    }
    let got = check(got, || "receive UDP packets".to_owned())? as usize;
    for at in 0..got {
        let len = heads[at].msg_len as usize;
        if len < STAMP_LEN {
            continue;
        }
        let word = |from: usize| u64::from_be_bytes(std::array::from_fn(|byte| stamps[at][from + byte]));
        let (number, sent) = (word(0), Span::from_nanos(word(8)));
        each(&names[at], Stamped { number, sent, received: received(&heads[at].msg_hdr), len });
    }
    Ok((got, got == BATCH))
}

/// The kernel's timestamp among the control messages; the epoch where there is none.
fn received(head: &libc::msghdr) -> Timestamp {
    // SAFETY: the kernel has set the header's control length to what it wrote, so that the first message lies within.
    let first = unsafe { libc::CMSG_FIRSTHDR(head).as_ref() };
    let Some(message) = first.filter(|m| m.cmsg_level == libc::SOL_SOCKET && m.cmsg_type == libc::SCM_TIMESTAMPNS)
    else {
        return Timestamp::from_nanos(0);
    };
    // SAFETY: a message of this type holds a `timespec`; it may not be aligned.
    let time: libc::timespec = unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(message).cast()) };
    Timestamp::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn sent_all(sent: isize) -> Result<bool, HostError> {
    if sent >= 0 {
        return Ok(true);
    }
    let source = io::Error::last_os_error();
    match source.kind() {
        io::ErrorKind::WouldBlock => Ok(false),
        _ => Err(HostError { act: "send a UDP packet".to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link;
    use crate::namespaces::inside;

    #[test]
    fn packets_come_with_number_and_times() {
        inside("socket::udp::tests::packets_come_with_number_and_times", || {
            link::set_up(link::LOOPBACK).expect("up");
            let there = Udp::bind(0).expect("bound");
            let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, there.port().expect("a port"));
            let mut here = Udp::connect(to).expect("connected");
            for number in 0..100 {
                assert!(here.send(number, Span::from_micros(number), 100 + number as usize).expect("sent"));
            }
            assert!(Udp::bind(0).expect("bound").send_to(to, 100, Span::ZERO, 0).expect("sent"));
            let mut got = Vec::new();
            there.receive(|packet| got.push(packet)).expect("received");
            assert_eq!(got.len(), 101);
            for (at, packet) in got.iter().enumerate().take(100) {
                assert_eq!(
                    (packet.number, packet.len, packet.sent),
                    (at as u64, 100 + at, Span::from_micros(at as u64))
                );
            }
            assert_eq!(got[100].len, STAMP_LEN);
            assert!(got.iter().all(|packet| packet.received.as_nanos() > 0));
            // The host begins to note times a moment after it is first asked to (`net_enable_timestamp`); packets that came before have that of
            // their reading, which is after the times of those that followed them.
            let back = got.windows(2).filter(|two| two[1].received < two[0].received).count();
            assert!(back <= 1, "times go back {back} times");
        });
    }
}
