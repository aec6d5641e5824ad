//! This host's TCP connections, as the kernel knows them: no privilege is needed to ask.
//!
//! Source: sock_diag(7); linux/inet_diag.h.

use crate::error::HostError;
use crate::mem_info::MemInfo;
use crate::netlink::{Message, Netlink, attributes, u32_at};
use crate::tcp_info::TcpInfo;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// States in which data moves, as bits by number (include/net/tcp_states.h): established, and those of closing but TIME_WAIT.
const MOVING: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// `TCP_SYN_SENT`.
const OPENING: u32 = 1 << 2;
/// Length of `struct inet_diag_msg`.
const MESSAGE_LEN: usize = 72;

/// A connection of this host's.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// Number the kernel gives no other socket.
    pub cookie: u64,
    /// The socket's inode: what `/proc/PID/fd` calls it; 0 for one that no program holds any more.
    pub inode: u32,
    /// The user whom the socket belongs to.
    pub uid: u32,
    /// The kernel's number of the state, include/net/tcp_states.h.
    pub state: u8,
    /// This host's end.
    pub local: (IpAddr, u16),
    /// The other end.
    pub remote: (IpAddr, u16),
    /// Bytes received and not yet read by the program.
    pub unread: u32,
    /// Bytes written and not yet acknowledged.
    pub unacknowledged: u32,
    /// The fields of `TCP_INFO`.
    pub info: TcpInfo,
    /// The fields of `SO_MEMINFO`.
    pub memory: MemInfo,
    congestion_control: [u8; 16],
}

impl Connection {
    /// The name of the congestion control; empty where it was not asked for.
    pub fn congestion_control(&self) -> &str {
        let text = self.congestion_control.split(|&byte| byte == 0).next().unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

/// Asks for all connections of the namespace in which data moves.
///
/// # Errors
/// When the kernel refuses, or has no `inet_diag`.
pub fn connections() -> Result<Vec<Connection>, HostError> {
    let mut found = Vec::new();
    let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
    visit(MOVING, extensions, |connection| found.push(*connection))?;
    Ok(found)
}

/// Asks for all connections of the namespace, those that are being opened too, with the names of their congestion controls, and keeps none.
///
/// # Errors
/// When the kernel refuses, or has no `inet_diag`.
pub fn each_connection(seen: impl FnMut(&Connection)) -> Result<(), HostError> {
    let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
    visit(MOVING | OPENING, extensions, seen)
}

fn visit(states: u32, extensions: u8, mut seen: impl FnMut(&Connection)) -> Result<(), HostError> {
    let netlink = Netlink::open_of(libc::NETLINK_SOCK_DIAG)?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        // `struct inet_diag_req_v2`: family, protocol, extensions, padding, states, and an identity that is all zeroes.
        let mut request = [0u8; 56];
        request[..3].copy_from_slice(&[family as u8, libc::IPPROTO_TCP as u8, extensions]);
        request[4..8].copy_from_slice(&states.to_ne_bytes());
        let mut message = Message::new(SOCK_DIAG_BY_FAMILY, libc::NLM_F_DUMP);
        message.raw(&request);
        netlink.each(&mut message, "list this host's connections", |answer| {
            if let Some(connection) = connection(answer) {
                seen(&connection);
            }
        })?;
    }
    Ok(())
}

/// Whether a socket of the current namespace accepts TCP connections; `false` where the kernel does not say.
pub fn any_listens() -> bool {
    const LISTENING: u32 = 1 << 10;
    let found = [libc::AF_INET, libc::AF_INET6].map(|family| {
        let mut request = [0u8; 56];
        request[..2].copy_from_slice(&[family as u8, libc::IPPROTO_TCP as u8]);
        request[4..8].copy_from_slice(&LISTENING.to_ne_bytes());
        let mut message = Message::new(SOCK_DIAG_BY_FAMILY, libc::NLM_F_DUMP);
        message.raw(&request);
        let netlink = Netlink::open_of(libc::NETLINK_SOCK_DIAG)?;
        netlink.request(&mut message, "list listening sockets")
    });
    found.into_iter().flatten().any(|answers| !answers.is_empty())
}

/// Reads `struct inet_diag_msg` and its attributes; `None` without `INET_DIAG_INFO`.
pub(crate) fn connection(answer: &[u8]) -> Option<Connection> {
    let head: &[u8; MESSAGE_LEN] = answer.first_chunk()?;
    let address = |at: usize| {
        if i32::from(head[0]) == libc::AF_INET {
            Some(IpAddr::V4(Ipv4Addr::from(*head[at..].first_chunk::<4>()?)))
        } else {
            Some(IpAddr::V6(Ipv6Addr::from(*head[at..].first_chunk::<16>()?)).to_canonical())
        }
    };
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (mut info, mut memory, mut congestion_control) = (None, None, [0; 16]);
    for (kind, bytes) in attributes(&answer[MESSAGE_LEN..]) {
        match kind {
            INET_DIAG_INFO => info = Some(bytes),
            INET_DIAG_SKMEMINFO => memory = Some(bytes),
            INET_DIAG_CONG => congestion_control.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
            _ => {}
        }
    }
    Some(Connection {
        inode: u32_at(head, 68),
        uid: u32_at(head, 64),
        state: head[1],
        cookie: u64::from(u32_at(head, 44)) | u64::from(u32_at(head, 48)) << 32,
        local: (address(8)?, port(4)),
        remote: (address(24)?, port(6)),
        unread: u32_at(head, 56),
        unacknowledged: u32_at(head, 60),
        info: TcpInfo::from_bytes(info?),
        memory: memory.map(MemInfo::from_bytes).unwrap_or_default(),
        congestion_control,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_is_found_with_its_figures() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let at = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(at).expect("a connection");
        let _server = listener.accept().expect("a connection");
        client.write_all(&[7; 1_000]).expect("written");
        let ends = (client.local_addr().expect("an end").port(), at.port());
        let found = connections().expect("answers");
        let near = found.iter().find(|c| (c.local.1, c.remote.1) == ends).expect("the client's");
        let far = found.iter().find(|c| (c.remote.1, c.local.1) == ends).expect("the server's");
        assert_eq!((near.local.0, near.remote.0), (at.ip(), at.ip()));
        assert_eq!((near.info.get("tcpi_bytes_sent"), far.unread), (1_000, 1_000));
        assert_ne!(near.cookie, far.cookie);
    }

    #[test]
    fn one_that_is_seen_names_its_congestion_control_and_its_owner() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let at = listener.local_addr().expect("an address");
        let client = TcpStream::connect(at).expect("a connection");
        let mut found = None;
        each_connection(|one| found = found.or((one.remote.1 == at.port()).then_some(*one))).expect("answers");
        let found = found.expect("the client's");
        let link = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&client)));
        assert_eq!(link.expect("a link").display().to_string(), format!("socket:[{}]", found.inode));
        assert_eq!((found.uid, found.state), (rustix::process::geteuid().as_raw(), 1));
        assert!(!found.congestion_control().is_empty());
    }

    #[test]
    fn cut_answers_are_left_out() {
        for len in 0..MESSAGE_LEN + 8 {
            assert!(connection(&vec![2; len]).is_none());
        }
    }
}
