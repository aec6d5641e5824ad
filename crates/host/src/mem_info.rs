//! A socket's memory, as `SO_MEMINFO` and `INET_DIAG_SKMEMINFO` tell it.
//!
//! Source: include/uapi/linux/sock_diag.h, `SK_MEMINFO_*`; net/core/sock.c, `sk_get_meminfo`.

use crate::error::{HostError, check};
use std::os::fd::{AsFd, AsRawFd};

/// The kernel's names, in its order.
const FIELDS: [&str; 9] = [
    "sk_rmem_alloc",
    "sk_rcvbuf",
    "sk_wmem_alloc",
    "sk_sndbuf",
    "sk_fwd_alloc",
    "sk_wmem_queued",
    "sk_optmem",
    "sk_backlog",
    "sk_drops",
];

/// Bytes that a socket's queues hold, and may hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemInfo([u32; FIELDS.len()]);

impl MemInfo {
    /// Asks the kernel.
    ///
    /// # Errors
    /// When the descriptor is no socket.
    pub fn of(socket: impl AsFd) -> Result<Self, HostError> {
        let mut info = Self::default();
        let mut len = size_of_val(&info.0) as libc::socklen_t;
        // SAFETY: the array outlives the call and its length is given.
        let result = unsafe {
            let fd = socket.as_fd().as_raw_fd();
            libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, info.0.as_mut_ptr().cast(), &mut len)
        };
        check(result, || "read SO_MEMINFO".to_owned())?;
        Ok(info)
    }

    /// What the kernel sent by another way; what is missing is zero.
    pub(crate) fn from_bytes(from: &[u8]) -> Self {
        let mut info = Self::default();
        for (to, from) in info.0.iter_mut().zip(from.as_chunks().0) {
            *to = u32::from_ne_bytes(*from);
        }
        info
    }

    /// The fields by name, in the kernel's order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        FIELDS.iter().zip(&self.0).map(|(name, value)| (*name, u64::from(*value)))
    }

    /// The field of that name; zero where there is none.
    pub fn get(&self, name: &str) -> u64 {
        self.fields().find(|field| field.0 == name).map_or(0, |field| field.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ways_of_asking_agree() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (server, _) = listener.accept().expect("a connection");
        client.write_all(&[7; 10_000]).expect("written");
        let asked = MemInfo::of(&server).expect("an answer");
        assert!(
            asked.get("sk_rmem_alloc") >= 10_000 && asked.get("sk_rcvbuf") > asked.get("sk_rmem_alloc"),
            "{asked:?}"
        );
        let port = server.peer_addr().expect("an end").port();
        let found = crate::sockets::connections().expect("answers");
        let told = found.iter().find(|connection| connection.remote.1 == port).expect("the server's");
        assert_eq!(told.memory, asked);
        assert_eq!(asked.get("sk_nothing"), 0);
    }
}
