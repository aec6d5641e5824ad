//! The addresses of the path's two ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Where the program is; 198.18.0.0/15 is for measurements. Source: RFC 2544 appendix C.2.2.
const NEAR_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const FAR_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Local addresses. Source: RFC 4193.
const NEAR_V6: Ipv6Addr = Ipv6Addr::new(0xfd98, 0x1218, 0, 0, 0, 0, 0, 2);
const FAR_V6: Ipv6Addr = Ipv6Addr::new(0xfd98, 0x1218, 0, 0, 0, 0, 0, 1);

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    pub(crate) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// Bits of the network that both ends are in.
    pub(crate) const fn bits(self) -> u8 {
        match self {
            Self::V4 => 30,
            Self::V6 => 64,
        }
    }

    /// Whether this network namespace has a way to the Internet by this family; nothing is sent.
    pub(crate) fn leads_away(self) -> bool {
        // Documentation's addresses: RFC 5737, RFC 3849.
        let (own, there): (IpAddr, IpAddr) = match self {
            Self::V4 => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
            Self::V6 => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()),
        };
        UdpSocket::bind((own, 0)).is_ok_and(|socket| socket.connect(SocketAddr::new(there, 9)).is_ok())
    }
}

/// The address of the program's end.
pub const fn near(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(NEAR_V4),
        Family::V6 => IpAddr::V6(NEAR_V6),
    }
}

/// The address of the other end, which stands for this host's loopback.
pub const fn far(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(FAR_V4),
        Family::V6 => IpAddr::V6(FAR_V6),
    }
}

/// Whether it is an address of the other end.
pub(crate) fn is_far(address: IpAddr) -> bool {
    Family::ALL.iter().any(|family| far(*family) == address.to_canonical())
}
