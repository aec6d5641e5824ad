//! Netlink messages: building, sending, reading answers.
//!
//! Source: linux/netlink.h; rtnetlink(7).

use crate::error::{HostError, check};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const HEADER_LEN: usize = 16;

/// A request under construction.
#[derive(Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Begins a request of `kind` (`RTM_*`); `flags` are added to `NLM_F_REQUEST | NLM_F_ACK`.
    pub(crate) fn new(kind: u16, flags: libc::c_int) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        Self { bytes }
    }

    /// Appends raw bytes, such as the family's own header.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self.pad()
    }

    /// Appends an attribute.
    pub(crate) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let len = u16::try_from(value.len() + 4).expect("invariant: attributes are far below 64 KiB");
        self.bytes.extend(len.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.raw(value)
    }

    /// Appends an attribute holding a number.
    pub(crate) fn number(&mut self, kind: u16, value: u32) -> &mut Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Appends an attribute holding a text with its NUL.
    pub(crate) fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Appends an attribute holding what `fill` appends.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let at = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend(kind.to_ne_bytes());
        fill(self);
        let len = u16::try_from(self.bytes.len() - at).expect("invariant: attributes are far below 64 KiB");
        self.bytes[at..at + 2].copy_from_slice(&len.to_ne_bytes());
        self
    }

    /// What was appended after the header.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[HEADER_LEN..]
    }

    fn pad(&mut self) -> &mut Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }
}

/// A netlink socket of the namespace it was opened in.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// Opens a socket.
    pub(crate) fn open() -> Result<Self, HostError> {
        Self::open_of(libc::NETLINK_ROUTE)
    }

    /// Opens a socket of another family of netlink's.
    pub(crate) fn open_of(family: libc::c_int) -> Result<Self, HostError> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, family) };
        let fd = check(fd, || "open a netlink socket".to_owned())?;
        // SAFETY: the descriptor was just made and has no other owner.
        Ok(Self { socket: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Receives the messages of these multicast groups from now on.
    pub(crate) fn join(&self, groups: &[u32], act: &str) -> Result<(), HostError> {
        // SAFETY: all zeroes is an address, whose number the kernel chooses. Without one the kernel sends the socket no group's messages.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address outlives the call and its length is given.
        let bound = unsafe { libc::bind(self.socket.as_raw_fd(), (&raw const address).cast(), len) };
        check(bound, || act.to_owned())?;
        for &group in groups {
            let joined = self.set(libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, group as libc::c_int);
            check(joined, || act.to_owned())?;
        }
        Ok(())
    }

    /// Lets messages that are not yet read take twice this, in bytes; without CAP_NET_ADMIN twice `net.core.rmem_max` at most.
    pub(crate) fn set_receive_buffer(&self, bytes: libc::c_int) -> Result<(), HostError> {
        if self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes) == 0 {
            return Ok(());
        }
        check(self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, bytes), || "set a netlink buffer".to_owned()).map(drop)
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> libc::c_int {
        let len = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the value outlives the call and its length is given.
        unsafe { libc::setsockopt(self.socket.as_raw_fd(), level, option, (&raw const value).cast(), len) }
    }

    /// Gives `visit` the payload of each message that is there, `most` at most, and does not wait. Lost messages are no error.
    pub(crate) fn drain(&self, most: usize, act: &str, mut visit: impl FnMut(&[u8])) -> Result<(), HostError> {
        let mut buffer = [0u8; 8 * 1024];
        for _ in 0..most {
            // SAFETY: the buffer outlives the call and its length is given.
            let got = unsafe {
                let fd = self.socket.as_raw_fd();
                libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
            };
            if got < 0 {
                let source = io::Error::last_os_error();
                match source.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(()),
                    // The buffer was full, once for all that found no room.
                    Some(libc::ENOBUFS | libc::EINTR) => continue,
                    _ => return Err(HostError { act: act.to_owned(), source }),
                }
            }
            let message = &buffer[..got as usize];
            let len = (u32_at(message, 0) as usize).min(message.len());
            if let Some(payload) = message.get(HEADER_LEN..len) {
                visit(payload);
            }
        }
        Ok(())
    }

    /// Sends `message` and returns the payloads of all answers before the acknowledgement.
    pub(crate) fn request(&self, message: &mut Message, act: &str) -> Result<Vec<Vec<u8>>, HostError> {
        let mut answers = Vec::new();
        self.each(message, act, |payload| answers.push(payload.to_vec()))?;
        Ok(answers)
    }

    /// Sends `message` and gives `visit` the payload of each answer before the acknowledgement.
    pub(crate) fn each(&self, message: &mut Message, act: &str, mut visit: impl FnMut(&[u8])) -> Result<(), HostError> {
        let wrap = |source: io::Error| HostError { act: act.to_owned(), source };
        let len = message.bytes.len() as u32;
        message.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        // SAFETY: the buffer outlives the call.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), message.bytes.as_ptr().cast(), message.bytes.len(), 0) };
        if sent < 0 {
            return Err(wrap(io::Error::last_os_error()));
        }
        let mut buffer = vec![0u8; 64 * 1024];
        loop {
            // SAFETY: the buffer outlives the call and its length is given.
            let got = unsafe { libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            if got < 0 {
                return Err(wrap(io::Error::last_os_error()));
            }
            let mut rest = &buffer[..got as usize];
            while rest.len() >= HEADER_LEN {
                let len = u32_at(rest, 0) as usize;
                if len < HEADER_LEN || len > rest.len() {
                    return Err(wrap(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "netlink answer of impossible length",
                    )));
                }
                let kind = u16::from_ne_bytes([rest[4], rest[5]]);
                let payload = &rest[HEADER_LEN..len];
                if kind == libc::NLMSG_ERROR as u16 {
                    let code = u32_at(payload, 0) as i32;
                    return if code == 0 { Ok(()) } else { Err(wrap(io::Error::from_raw_os_error(-code))) };
                }
                if kind == libc::NLMSG_DONE as u16 {
                    return Ok(());
                }
                visit(payload);
                rest = &rest[len.next_multiple_of(4).min(rest.len())..];
            }
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The attributes in `bytes`: kinds, without the nested flag, and values.
pub(crate) fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while bytes.len() >= 4 {
        let len = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let kind = u16::from_ne_bytes([bytes[2], bytes[3]]) & 0x3fff;
        if len < 4 || len > bytes.len() {
            break;
        }
        found.push((kind, &bytes[4..len]));
        bytes = &bytes[len.next_multiple_of(4).min(bytes.len())..];
    }
    found
}

/// The 32-bit number at `at`, zero past the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
}

/// The 64-bit number at `at`, zero past the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |b| u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nest() {
        let mut message = Message::new(16, 0);
        message.number(1, 7).nest(2, |inner| {
            inner.text(3, "abc").attribute(4, &[9]);
        });
        let outer = attributes(&message.bytes[HEADER_LEN..]);
        assert_eq!(outer[0], (1, &7u32.to_ne_bytes()[..]));
        let inner = attributes(outer[1].1);
        assert_eq!(inner, vec![(3, &b"abc\0"[..]), (4, &[9u8][..])]);
    }

    #[test]
    fn impossible_lengths_end_the_list() {
        assert!(attributes(&[3, 0, 1, 0]).is_empty());
        assert!(attributes(&[200, 0, 1, 0, 5]).is_empty());
    }
}
