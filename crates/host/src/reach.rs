//! Reaching a server by its name: the first of its addresses that answers.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use thiserror::Error;

/// Time in which one address has to answer: two SYNs are sent again in it, after 1 and 3 s (RFC 6298 §2.1 and §5.5).
pub const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Why a server was not reached.
#[derive(Debug, Error)]
pub enum ReachError {
    /// A name that has no address.
    #[error("cannot find the address of '{host}': {source}")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// No address of the server answers; `to` is the last one that was tried.
    #[error("cannot connect to {to}: {source}")]
    Connect {
        /// The address.
        to: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// Connects to a name, or an address with or without brackets: tries its addresses in the order of the resolver (RFC 6724 §6) until `connect`
/// succeeds with one, and returns what that gave and the address.
///
/// # Errors
/// [`ReachError`] when there is no address, or none answers.
pub fn first_answer<T>(
    host: &str,
    port: u16,
    connect: impl FnMut(SocketAddr) -> io::Result<T>,
) -> Result<(T, SocketAddr), ReachError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let none = |source| ReachError::Resolve { host: host.to_owned(), source };
    let addresses = (bare, port).to_socket_addrs().map_err(none)?;
    first_of(addresses, connect)
        .unwrap_or_else(|| Err(none(io::Error::new(io::ErrorKind::NotFound, "it has no address"))))
}

/// The first of these that `connect` succeeds with; `None` where there is none at all.
fn first_of<T>(
    addresses: impl Iterator<Item = SocketAddr>,
    mut connect: impl FnMut(SocketAddr) -> io::Result<T>,
) -> Option<Result<(T, SocketAddr), ReachError>> {
    let mut failed = None;
    for to in addresses {
        match connect(to) {
            Ok(connection) => return Some(Ok((connection, to))),
            Err(source) => failed = Some(Err(ReachError::Connect { to, source })),
        }
    }
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_address_that_refuses_is_passed_over() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let listens = listener.local_addr().expect("its address");
        let refuses = SocketAddr::from(([127, 0, 0, 2], listens.port()));
        let (_, to) =
            first_of([refuses, listens].into_iter(), TcpStream::connect).expect("addresses").expect("an answer");
        assert_eq!(to, listens);
        let all = first_of([refuses].into_iter(), TcpStream::connect).expect("addresses");
        assert_eq!(
            all.expect_err("nobody listens").to_string(),
            format!("cannot connect to {refuses}: Connection refused (os error 111)")
        );
        assert!(first_of([].into_iter(), TcpStream::connect).is_none());
    }

    #[test]
    fn brackets_of_an_address_are_no_part_of_it() {
        let connect = |to: SocketAddr| Ok(to.to_string());
        assert_eq!(first_answer("[::1]", 7, connect).expect("an address").0, "[::1]:7");
        let error = first_answer("no-such-host.invalid", 7, connect).expect_err("RFC 6761 has no such name");
        assert!(error.to_string().starts_with("cannot find the address of 'no-such-host.invalid'"), "{error}");
    }
}
