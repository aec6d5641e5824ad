//! Addresses of sockets in their one form.

use std::net::SocketAddr;

/// The address; one of IPv4 that is mapped into IPv6 (RFC 4291 §2.5.5.2) as that of IPv4. Sockets of IPv6 here take IPv6 only.
///
/// ```
/// let mapped = thalweg_model::canonical("[::ffff:127.0.0.1]:80".parse()?);
/// assert_eq!(mapped.to_string(), "127.0.0.1:80");
/// assert_eq!(thalweg_model::canonical("[fe80::1%3]:80".parse()?).to_string(), "[fe80::1%3]:80");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn canonical(mut address: SocketAddr) -> SocketAddr {
    if address.is_ipv6() && address.ip().to_canonical().is_ipv4() {
        address.set_ip(address.ip().to_canonical());
    }
    address
}
