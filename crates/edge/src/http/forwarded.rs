//! Whom a proxy forwards for.

use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// The client in an `X-Forwarded-For` field that came from a trusted proxy: the last address that is no trusted proxy's own, since
/// anyone may write what stands before it. `None` where there is none.
pub fn client(field: &str, trusted: &[IpNet]) -> Option<IpAddr> {
    let mut nearest = None;
    for part in field.rsplit(',').map(str::trim) {
        let bare = part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(part);
        let read = bare.parse().ok().or_else(|| part.parse::<SocketAddr>().ok().map(|address| address.ip()));
        // What is no address was not written by a proxy worth its name, nor was what stands before.
        let Some(address) = read.map(|address: IpAddr| address.to_canonical()) else { break };
        nearest = Some(address);
        if !is_trusted(address, trusted) {
            break;
        }
    }
    nearest
}

/// Whether an address is one of a trusted proxy.
pub fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_trusted_proxies_wrote_is_believed() {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().expect("a network")).into();
        let of = |field: &str| client(field, &trusted).map(|address| address.to_string());
        for (field, found) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("1.1.1.1, 192.0.2.1", Some("192.0.2.1")),
            ("1.1.1.1, 192.0.2.1, 10.1.2.3,2001:db8::1", Some("192.0.2.1")),
            ("10.9.9.9, 10.1.1.1", Some("10.9.9.9")),
            ("192.0.2.1:4711", Some("192.0.2.1")),
            ("[2001:7f8::1]:80", Some("2001:7f8::1")),
            ("[2001:7f8::1]", Some("2001:7f8::1")),
            ("::ffff:192.0.2.7", Some("192.0.2.7")),
            ("192.0.2.1, unknown", None),
            ("192.0.2.1, unknown, 10.1.1.1", Some("10.1.1.1")),
            ("", None),
            (",,,", None),
        ] {
            assert_eq!(of(field).as_deref(), found, "{field}");
        }
    }
}
