//! The PROXY protocol: what a load balancer says of a connection before the connection's own bytes.
//!
//! Source: HAProxy, "The PROXY protocol, versions 1 & 2" (2020-03-05).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// Longest header of version 1, its end included. Source: §2.1.
const TEXT_MAX: usize = 107;
/// Of version 2, with all that may follow the addresses; larger ones are refused.
const BINARY_MAX: usize = 4_096;
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// What stands where a PROXY header should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no PROXY header of version 1 or 2 where one has to be")]
pub struct NoProxy;

/// A header that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proxied {
    /// Who connected to the proxy; `None` when it is the proxy itself, as for its own health checks.
    pub source: Option<IpAddr>,
    /// Bytes of the header.
    pub used: usize,
}

/// Reads the header at the beginning of `bytes`; `None` while its end has not come.
///
/// # Errors
/// As soon as it is sure that there is none.
pub fn parse(bytes: &[u8]) -> Result<Option<Proxied>, NoProxy> {
    let begins = |with: &[u8]| bytes.iter().zip(with).all(|(one, other)| one == other);
    if begins(SIGNATURE) {
        return if bytes.len() < SIGNATURE.len() { Ok(None) } else { binary(bytes) };
    }
    if begins(b"PROXY ") {
        return if bytes.len() < 6 { Ok(None) } else { text(bytes) };
    }
    Err(NoProxy)
}

fn text(bytes: &[u8]) -> Result<Option<Proxied>, NoProxy> {
    let window = &bytes[..bytes.len().min(TEXT_MAX)];
    let Some(end) = window.windows(2).position(|two| two == b"\r\n") else {
        return if bytes.len() < TEXT_MAX { Ok(None) } else { Err(NoProxy) };
    };
    let line = std::str::from_utf8(&window[..end]).map_err(|_| NoProxy)?;
    let used = end + 2;
    let mut words = line.split(' ').skip(1);
    let kind = words.next().ok_or(NoProxy)?;
    if kind == "UNKNOWN" {
        return Ok(Some(Proxied { source: None, used }));
    }
    let fields: Vec<&str> = words.collect();
    let [source, destination, source_port, destination_port] = fields[..] else { return Err(NoProxy) };
    let is_of_kind = |address: &IpAddr| match kind {
        "TCP4" => address.is_ipv4(),
        "TCP6" => address.is_ipv6(),
        _ => false,
    };
    let address = |text: &str| text.parse().ok().filter(is_of_kind).ok_or(NoProxy);
    let (source, _) = (address(source)?, address(destination)?);
    if source_port.parse::<u16>().is_err() || destination_port.parse::<u16>().is_err() {
        return Err(NoProxy);
    }
    Ok(Some(Proxied { source: Some(source.to_canonical()), used }))
}

fn binary(bytes: &[u8]) -> Result<Option<Proxied>, NoProxy> {
    let Some(&[version_command, family, l1, l0]) = bytes[12..].first_chunk::<4>() else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes([l1, l0]));
    let used = 16 + len;
    let is_local = match version_command {
        0x20 => true,
        0x21 => false,
        _ => return Err(NoProxy),
    };
    // Source: §2.2: the address's family in the upper four bits, the transport in the lower ones.
    let addresses = match family >> 4 {
        1 => 12,
        2 => 36,
        _ => 0,
    };
    if used > BINARY_MAX || (!is_local && len < addresses) {
        return Err(NoProxy);
    }
    let Some(body) = bytes.get(16..used) else { return Ok(None) };
    let source = match family >> 4 {
        _ if is_local => None,
        1 => body.first_chunk::<4>().map(|four| IpAddr::V4(Ipv4Addr::from(*four))),
        2 => body.first_chunk::<16>().map(|sixteen| IpAddr::V6(Ipv6Addr::from(*sixteen)).to_canonical()),
        _ => None,
    };
    Ok(Some(Proxied { source, used }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version_command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        [SIGNATURE, &[version_command, family][..], &(body.len() as u16).to_be_bytes(), body].concat()
    }

    fn source(bytes: &[u8]) -> Option<String> {
        parse(bytes).expect("a header").expect("whole").source.map(|source| source.to_string())
    }

    #[test]
    fn both_versions_tell_the_source() {
        assert_eq!(source(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET").as_deref(), Some("192.0.2.1"));
        assert_eq!(source(b"PROXY TCP6 2001:db8::1 ::1 65535 0\r\n").as_deref(), Some("2001:db8::1"));
        assert_eq!(source(b"PROXY TCP6 ::ffff:192.0.2.9 ::1 65535 0\r\n").as_deref(), Some("192.0.2.9"));
        assert_eq!(source(b"PROXY UNKNOWN whatever\r\n"), None);
        let four = header(0x21, 0x11, &[192, 0, 2, 1, 192, 0, 2, 2, 0, 1, 0, 2]);
        assert_eq!(source(&four).as_deref(), Some("192.0.2.1"));
        let mut six = [0; 40];
        (six[0], six[1], six[15]) = (0x20, 0x01, 7);
        assert_eq!(source(&header(0x21, 0x21, &six)).as_deref(), Some("2001::7"));
        assert_eq!(source(&header(0x20, 0, &[])), None, "the proxy's own");
        assert_eq!(source(&header(0x21, 0x31, &[1; 216])), None, "a local socket");
    }

    #[test]
    fn every_beginning_is_waited_for_and_nothing_else_is_taken() {
        for whole in [b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n".to_vec(), header(0x21, 0x11, &[9; 30])] {
            assert!((0..whole.len()).all(|len| parse(&whole[..len]) == Ok(None)));
            let more = [&whole, &b"GET"[..]].concat();
            assert_eq!(parse(&more).map(|found| found.map(|found| found.used)), Ok(Some(whole.len())));
        }
        let long = [&b"PROXY UNKNOWN "[..], &[b'x'; 120]].concat();
        for odd in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n".to_vec(),
            b"PROXY TCP4 2001:db8::1 192.0.2.2 1 2\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n".to_vec(),
            b"PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.1  192.0.2.2 1 2\r\n".to_vec(),
            b"PROXY \xff\r\n".to_vec(),
            long,
            header(0x11, 0x11, &[0; 12]),
            header(0x22, 0x11, &[0; 12]),
            header(0x21, 0x11, &[0; 11]),
            header(0x21, 0x11, &[0; 4_081]),
        ] {
            assert_eq!(parse(&odd), Err(NoProxy), "{odd:?}");
        }
    }
}
