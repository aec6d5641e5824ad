//! What a fresh connection of the current namespace has of its sysctls.

use crate::error::{HostError, check, wrap};
use crate::tcp_info::TcpInfo;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// The sysctls whose effect is seen.
pub const SEEN: [&str; 6] = [
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];
/// Bits of `tcpi_options`. Source: linux/tcp.h, `TCPI_OPT_*`.
const OPTIONS: [(&str, u64); 3] =
    [("net.ipv4.tcp_timestamps", 1), ("net.ipv4.tcp_sack", 2), ("net.ipv4.tcp_window_scaling", 4)];
/// Source: include/net/tcp.h, `TCP_CA_NAME_MAX`.
const NAME_MAX: usize = 16;

/// Opens a connection over loopback, and says what it has by the sysctl it comes from: a name, 0 or 1, and of buffers the size they begin
/// with.
///
/// # Errors
/// When there is no loopback device that is up.
pub fn connection() -> Result<BTreeMap<&'static str, String>, HostError> {
    let act = || "open a connection over loopback".to_owned();
    let listener = wrap(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)), act)?;
    let address = wrap(listener.local_addr(), act)?;
    let client = wrap(TcpStream::connect(address), act)?;
    let info = TcpInfo::of(&client)?;
    let mut seen: BTreeMap<&'static str, String> =
        OPTIONS.iter().map(|(name, bit)| (*name, u64::from(info.get("tcpi_options") & bit != 0).to_string())).collect();
    seen.insert("net.ipv4.tcp_congestion_control", congestion(&client)?);
    // A connection's buffers may have grown by now; a listener's are as sockets begin.
    seen.insert("net.ipv4.tcp_rmem", number(&listener, libc::SO_RCVBUF)?.to_string());
    seen.insert("net.ipv4.tcp_wmem", number(&listener, libc::SO_SNDBUF)?.to_string());
    Ok(seen)
}

fn congestion(socket: &TcpStream) -> Result<String, HostError> {
    let mut name = [0u8; NAME_MAX];
    let mut len = NAME_MAX as libc::socklen_t;
    // SAFETY: the buffer outlives the call and its length is given.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &mut len,
        )
    };
    check(result, || "read TCP_CONGESTION".to_owned())?;
    Ok(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}

fn number(socket: &TcpListener, option: libc::c_int) -> Result<i32, HostError> {
    let mut value: libc::c_int = 0;
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the number outlives the call and its length is given.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw mut value).cast(), &mut len) };
    check(result, || "read a socket's buffer".to_owned())?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::inside;
    use crate::sysctl;
    use std::process::Command;

    #[test]
    fn a_fresh_connection_has_what_was_set() {
        inside("socket::probe::tests::a_fresh_connection_has_what_was_set", || {
            let up = || Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip").success();
            assert!(connection().is_err(), "loopback is down");
            assert!(up());
            for (name, value, seen) in [
                ("net.ipv4.tcp_congestion_control", "reno", "reno"),
                ("net.ipv4.tcp_rmem", "4096 99999 4194304", "99999"),
                ("net.ipv4.tcp_wmem", "4096 55555 4194304", "55555"),
                ("net.ipv4.tcp_sack", "0", "0"),
                ("net.ipv4.tcp_timestamps", "0", "0"),
                ("net.ipv4.tcp_window_scaling", "0", "0"),
            ] {
                sysctl::write(name, value).expect(name);
                let found = connection().expect("a connection");
                assert_eq!(found[name], seen, "{name}");
            }
            let found = connection().expect("a connection");
            assert_eq!(found.keys().copied().collect::<Vec<_>>(), SEEN);
        });
    }
}
