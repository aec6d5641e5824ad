//! Link types, by the numbers capture files give them.

use std::fmt;

/// What the bytes of a captured packet begin with.
///
/// Source: the LINKTYPE registry, <https://www.tcpdump.org/linktypes.html>.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family in the capturing host's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: Self = Self(9);
    /// Raw IP as some BSDs number it in files.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP as OpenBSD numbers it in files.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP with HDLC-like framing.
    pub const PPP_HDLC: Self = Self(50);
    /// IPv4 or IPv6, without a link header.
    pub const RAW: Self = Self(101);
    /// OpenBSD loopback: four bytes of address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4, without a link header.
    pub const IPV4: Self = Self(228);
    /// IPv6, without a link header.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// Whether [`decode`](crate::decode) knows this link type.
    pub const fn is_known(self) -> bool {
        matches!(
            self,
            Self::NULL
                | Self::ETHERNET
                | Self::PPP
                | Self::RAW_BSD
                | Self::RAW_OPENBSD
                | Self::PPP_HDLC
                | Self::RAW
                | Self::LOOP
                | Self::LINUX_SLL
                | Self::IPV4
                | Self::IPV6
                | Self::LINUX_SLL2
        )
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::PPP | Self::PPP_HDLC => "PPP",
            Self::RAW_BSD | Self::RAW_OPENBSD | Self::RAW => "raw IP",
            Self::LOOP => "OpenBSD loopback",
            Self::LINUX_SLL => "Linux cooked v1",
            Self::LINUX_SLL2 => "Linux cooked v2",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self(105) => "IEEE 802.11",
            Self(127) => "IEEE 802.11 with radiotap",
            Self(189 | 220) => "USB",
            Self(number) => return write!(f, "link type {number}"),
        };
        f.write_str(name)
    }
}
